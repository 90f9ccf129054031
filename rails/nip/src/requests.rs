//! The three messages that this rail sends. The order of elements is the order of the NIP
//! specification; the names are those of its versions since 9, not the older
//! `DestinationBankCode` and `AccountName`.

use railhead_rail::fields;
use railhead_rail::types::{Field, Payment};

use crate::amount;
use crate::session;
use crate::settings::Settings;
use crate::xml::Document;

/// NIP's limit on a narration.
const NARRATION_CHARS_MAX: usize = 100;

/// Asks for the name on an account.
///
/// # Errors
/// A sentence, where the account lacks what the message needs.
pub fn name_enquiry(
    session: &str,
    account: &[Field],
    settings: &Settings,
) -> Result<Vec<u8>, String> {
    Ok(Document::new("NESingleRequest")
        .element("SessionID", session)
        .element("DestinationInstitutionCode", required(account, "institution_code")?)
        .element("ChannelCode", &settings.channel_code)
        .element("AccountNumber", required(account, "account_number")?)
        .finish())
}

/// Orders a transfer.
///
/// # Errors
/// A sentence, where the payment lacks what the message needs. Nothing must be sent then.
pub fn transfer(payment: &Payment, settings: &Settings) -> Result<Vec<u8>, String> {
    if !session::is_session(&payment.reference) {
        return Err("the payment's reference is not a SessionID".into());
    }
    // The Central Bank's rules on instant transfers make a name enquiry mandatory.
    let resolution = payment.resolution.as_ref().ok_or("the name enquiry is missing")?;
    let amount = amount::naira(payment.amount_minor).ok_or("the amount is not positive")?;
    let recipient = &payment.recipient;
    let found = |name| fields::value(&resolution.attributes, name);
    let narration: String = payment.narration.chars().take(NARRATION_CHARS_MAX).collect();
    Ok(Document::new("FTSingleCreditRequest")
        .element("SessionID", &payment.reference)
        .element("NameEnquiryRef", &resolution.reference)
        .element("DestinationInstitutionCode", required(recipient, "institution_code")?)
        .element("ChannelCode", &settings.channel_code)
        .element("BeneficiaryAccountName", &resolution.name)
        .element("BeneficiaryAccountNumber", required(recipient, "account_number")?)
        .element("BeneficiaryBankVerificationNumber", found("bvn"))
        .element("BeneficiaryKYCLevel", found("kyc_level"))
        .element("OriginatorAccountName", &settings.originator_account_name)
        .element("OriginatorAccountNumber", &settings.originator_account_number)
        .element("OriginatorBankVerificationNumber", &settings.originator_bvn)
        .element("OriginatorKYCLevel", &settings.originator_kyc_level)
        .element("TransactionLocation", &settings.transaction_location)
        .element("Narration", &narration)
        .element("PaymentReference", &payment.payout)
        .element("Amount", &amount)
        .finish())
}

/// Asks what became of the transfer with this SessionID. The query repeats that SessionID
/// and has none of its own.
#[must_use]
pub fn status_query(session: &str, settings: &Settings) -> Vec<u8> {
    Document::new("TSQuerySingleRequest")
        .element("SourceInstitutionCode", &settings.institution_code)
        .element("ChannelCode", &settings.channel_code)
        .element("SessionID", session)
        .finish()
}

fn required<'a>(all: &'a [Field], name: &str) -> Result<&'a str, String> {
    fields::find(all, name).ok_or_else(|| format!("the account's {name} is missing"))
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use railhead_rail::types::Payment;

    use super::{name_enquiry, status_query, transfer};
    use crate::fixtures::{self, REFERENCE};
    use crate::settings::Settings;

    fn settings() -> Settings {
        fixtures::install();
        Settings::read()
    }

    fn text(body: Vec<u8>) -> String {
        String::from_utf8(body).expect("UTF-8")
    }

    #[test]
    fn a_transfer_in_the_order_of_the_specification() {
        let sent = text(transfer(&fixtures::payment(), &settings()).expect("a message"));
        let expected = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?><FTSingleCreditRequest>\
             <SessionID>{REFERENCE}</SessionID>\
             <NameEnquiryRef>999998261121095959000000000001</NameEnquiryRef>\
             <DestinationInstitutionCode>000013</DestinationInstitutionCode>\
             <ChannelCode>7</ChannelCode>\
             <BeneficiaryAccountName>ADA OBI</BeneficiaryAccountName>\
             <BeneficiaryAccountNumber>0123456785</BeneficiaryAccountNumber>\
             <BeneficiaryBankVerificationNumber>22212345678</BeneficiaryBankVerificationNumber>\
             <BeneficiaryKYCLevel>3</BeneficiaryKYCLevel>\
             <OriginatorAccountName>RAILHEAD SETTLEMENT</OriginatorAccountName>\
             <OriginatorAccountNumber>0000000000</OriginatorAccountNumber>\
             <OriginatorBankVerificationNumber></OriginatorBankVerificationNumber>\
             <OriginatorKYCLevel>3</OriginatorKYCLevel>\
             <TransactionLocation>6.4300747,3.4110715</TransactionLocation>\
             <Narration>Invoice 17</Narration>\
             <PaymentReference>po_0001</PaymentReference>\
             <Amount>1250.50</Amount></FTSingleCreditRequest>"
        );
        assert_eq!(sent, expected);
    }

    #[test]
    fn the_other_messages() {
        let account = fixtures::payment().recipient;
        let sent = text(name_enquiry(REFERENCE, &account, &settings()).expect("a message"));
        assert!(sent.ends_with(&format!(
            "<NESingleRequest><SessionID>{REFERENCE}</SessionID>\
             <DestinationInstitutionCode>000013</DestinationInstitutionCode>\
             <ChannelCode>7</ChannelCode><AccountNumber>0123456785</AccountNumber>\
             </NESingleRequest>"
        )));
        let sent = text(status_query(REFERENCE, &settings()));
        assert!(sent.ends_with(&format!(
            "<TSQuerySingleRequest><SourceInstitutionCode>999998</SourceInstitutionCode>\
             <ChannelCode>7</ChannelCode><SessionID>{REFERENCE}</SessionID>\
             </TSQuerySingleRequest>"
        )));
    }

    #[test]
    fn narrations_are_escaped_once_and_cut_between_characters() {
        let narration = format!("<b>&amp; {}", "ọ".repeat(200));
        let payment = Payment { narration, ..fixtures::payment() };
        let sent = text(transfer(&payment, &settings()).expect("a message"));
        let expected = format!("<Narration>&lt;b&gt;&amp;amp; {}</Narration>", "ọ".repeat(91));
        assert!(sent.contains(&expected), "{sent}");
    }

    #[test]
    fn nothing_is_sent_for_a_payment_that_is_not_whole() {
        let whole = fixtures::payment;
        for payment in [
            Payment { reference: String::new(), ..whole() },
            Payment { reference: "po_0001".into(), ..whole() },
            Payment { resolution: None, ..whole() },
            Payment { amount_minor: 0, ..whole() },
            Payment { amount_minor: -1, ..whole() },
            Payment { recipient: Vec::new(), ..whole() },
        ] {
            assert!(transfer(&payment, &settings()).is_err());
        }
    }
}
