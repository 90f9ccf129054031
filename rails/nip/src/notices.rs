//! What the gateway sends by itself: a transfer that came back, and a status that it pushes.
//!
//! The host has checked the caller's token. Still nothing here ends a payment: a pushed
//! status only makes the host ask, and a return concerns a payment that was made.

use railhead_rail::types::{Finding, News, Notice, Reply, ReturnOfFunds, Subject};

use crate::amount;
use crate::session;
use crate::xml::{self, Document, Element};

/// Where transfers that come back arrive.
const TRANSFER: &str = "/nip/fundtransfersingleitem_dc";
/// Where the gateway pushes statuses.
const STATUS_PUSH: &str = "/nip/txnstatusresponse";

/// A beneficiary's bank sends money back as a transfer of its own, whose payment reference
/// names the SessionID of the transfer that it returns.
const RETURN_MARK: &str = "RVSL/";

/// Elements of a transfer that its answer repeats, in the order of the specification.
const REPEATED: [&str; 16] = [
    "SessionID",
    "NameEnquiryRef",
    "DestinationInstitutionCode",
    "ChannelCode",
    "BeneficiaryAccountName",
    "BeneficiaryAccountNumber",
    "BeneficiaryBankVerificationNumber",
    "BeneficiaryKYCLevel",
    "OriginatorAccountName",
    "OriginatorAccountNumber",
    "OriginatorBankVerificationNumber",
    "OriginatorKYCLevel",
    "TransactionLocation",
    "Narration",
    "PaymentReference",
    "Amount",
];

/// Reads a message; the answer's body and the news.
///
/// # Errors
/// A sentence, where the message is not ours to take. The gateway then gets no answer of
/// NIP, and a transfer is not credited to anybody here.
pub fn receive(path: &str, body: &[u8]) -> Result<(Reply, Vec<Notice>), String> {
    match path {
        TRANSFER => returned(&xml::read(body, "FTSingleCreditRequest")?),
        STATUS_PUSH => pushed(&xml::read(body, "TSQuerySingleResponse")?),
        _ => Err("this rail receives nothing under this path".into()),
    }
}

fn returned(credit: &Element) -> Result<(Reply, Vec<Notice>), String> {
    if !session::is_session(credit.get("SessionID")) {
        return Err("the transfer has no SessionID".into());
    }
    let reference = credit
        .get("PaymentReference")
        .strip_prefix(RETURN_MARK)
        .ok_or("the transfer returns no payment, and this rail takes no other")?;
    let reference = session(reference)?;
    let message = match credit.get("Narration") {
        "" => "The beneficiary's bank sent the payment back",
        narration => narration,
    };
    // A return has no response code; the mark stands in its place.
    let code = RETURN_MARK.trim_end_matches('/');
    let amount_minor = amount::kobo(credit.get("Amount")).ok_or("the return has no amount")?;
    let returned = ReturnOfFunds {
        code: code.into(),
        message: message.into(),
        amount_minor,
        network_id: Some(credit.get("SessionID").to_owned()),
    };
    let answer = REPEATED
        .iter()
        .fold(Document::new("FTSingleCreditResponse"), |answer, name| {
            answer.element(name, credit.get(name))
        })
        .element("ResponseCode", "00");
    Ok((reply(answer), vec![about(reference, News::Found(Finding::Returned(returned)))]))
}

fn pushed(status: &Element) -> Result<(Reply, Vec<Notice>), String> {
    let reference = session(status.get("SessionID"))?;
    // NIP has no message for having received a pushed status. Gateways go by the HTTP
    // status; the body confirms the SessionID to people who read logs.
    let answer = Document::new("TSQuerySingleAcknowledgement")
        .element("SessionID", &reference)
        .element("ResponseCode", "00");
    Ok((reply(answer), vec![about(reference, News::Ask)]))
}

fn about(reference: String, news: News) -> Notice {
    Notice { about: Subject::Reference(reference), news }
}

fn reply(answer: Document) -> Reply {
    Reply::ok("application/xml", &answer.finish())
}

/// The SessionID of a payment. It may begin with an institution code that is no longer the
/// setting's: which of them are payments of ours is the host's to know.
fn session(named: &str) -> Result<String, String> {
    if session::is_session(named) {
        Ok(named.to_owned())
    } else {
        Err("the message names no SessionID".into())
    }
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use railhead_rail::types::{Finding, News, Notice, Subject};

    use super::{TRANSFER, receive};
    use crate::fixtures::{self, REFERENCE};
    use crate::xml;

    fn credit(payment_reference: &str) -> String {
        format!(
            "<ns2:FTSingleCreditRequest xmlns:ns2=\"http://core.nip.nibss/\">\
             <SessionID>000013261122080000000000000077</SessionID>\
             <BeneficiaryAccountName>RAILHEAD SETTLEMENT</BeneficiaryAccountName>\
             <BeneficiaryAccountNumber>0000000000</BeneficiaryAccountNumber>\
             <OriginatorAccountName>A &amp; B</OriginatorAccountName>\
             <Narration>Account closed</Narration>\
             <PaymentReference>{payment_reference}</PaymentReference>\
             <Amount>1250.50</Amount></ns2:FTSingleCreditRequest>"
        )
    }

    fn status(session: &str) -> String {
        format!(
            "<TSQuerySingleResponse><SessionID>{session}</SessionID>\
             <ResponseCode>00</ResponseCode></TSQuerySingleResponse>"
        )
    }

    #[test]
    fn a_return_of_our_payment() {
        fixtures::install();
        let message = credit(&format!("RVSL/{REFERENCE}"));
        let (answer, notices) = receive(TRANSFER, message.as_bytes()).expect("a return");
        let [Notice { about, news: News::Found(Finding::Returned(returned)) }] = notices.as_slice()
        else {
            panic!("{notices:?}");
        };
        assert_eq!(*about, Subject::Reference(REFERENCE.into()));
        assert_eq!((returned.code.as_str(), returned.message.as_str()), ("RVSL", "Account closed"));
        assert_eq!(returned.amount_minor, 125_050);
        assert_eq!(answer.content_type, "application/xml");
        let answer = xml::read(&answer.body, "FTSingleCreditResponse").expect("an answer");
        for (name, value) in [
            ("SessionID", "000013261122080000000000000077"),
            ("ResponseCode", "00"),
            ("OriginatorAccountName", "A & B"),
            ("Amount", "1250.50"),
        ] {
            assert_eq!(answer.get(name), value, "{name}");
        }
        let silent = message.replace("Account closed", "");
        let (_, notices) = receive(TRANSFER, silent.as_bytes()).expect("a return");
        let News::Found(Finding::Returned(returned)) = &notices[0].news else {
            panic!("{notices:?}")
        };
        assert_eq!(returned.message, "The beneficiary's bank sent the payment back");
    }

    #[test]
    fn a_pushed_status_is_only_a_reason_to_ask() {
        fixtures::install();
        let (answer, notices) =
            receive("/nip/txnstatusresponse", status(REFERENCE).as_bytes()).expect("a notice");
        assert_eq!(
            notices,
            [Notice { about: Subject::Reference(REFERENCE.into()), news: News::Ask }]
        );
        let answer = xml::read(&answer.body, "TSQuerySingleAcknowledgement").expect("an answer");
        assert_eq!(answer.get("SessionID"), REFERENCE);
    }

    #[test]
    fn payments_that_left_under_another_institution_code() {
        fixtures::install();
        let earlier = REFERENCE.replace("999998", "000013");
        let about = Subject::Reference(earlier.clone());
        let message = credit(&format!("RVSL/{earlier}"));
        let (_, notices) = receive(TRANSFER, message.as_bytes()).expect("a return");
        assert_eq!(notices[0].about, about);
        let pushed = receive("/nip/txnstatusresponse", status(&earlier).as_bytes());
        assert_eq!(pushed.expect("a notice").1, [Notice { about, news: News::Ask }]);
    }

    #[test]
    fn what_is_not_ours_to_take() {
        fixtures::install();
        let short = &REFERENCE[1..];
        for reference in ["", "salary", REFERENCE, "RVSL/", &format!("RVSL/{short}")] {
            assert!(receive(TRANSFER, credit(reference).as_bytes()).is_err(), "{reference}");
        }
        let nameless = credit(&format!("RVSL/{REFERENCE}")).replace("SessionID", "Session");
        assert!(receive(TRANSFER, nameless.as_bytes()).is_err());
        let free = credit(&format!("RVSL/{REFERENCE}")).replace("1250.50", "");
        assert!(receive(TRANSFER, free.as_bytes()).is_err());
        for session in ["", "1", short] {
            let body = status(session);
            assert!(receive("/nip/txnstatusresponse", body.as_bytes()).is_err(), "{session}");
        }
        for (path, body) in [
            ("/nip/other", status(REFERENCE)),
            (TRANSFER, status(REFERENCE)),
            (TRANSFER, String::new()),
            ("/nip/txnstatusresponse", credit(&format!("RVSL/{REFERENCE}"))),
        ] {
            assert!(receive(path, body.as_bytes()).is_err(), "{path} {body}");
        }
    }
}
