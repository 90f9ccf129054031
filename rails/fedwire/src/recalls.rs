//! Asking for a wire back.
//!
//! What settled is final. The recipient's bank may send it back, if it likes, and then it comes as a
//! return of its own (see [`crate::notices`]). What the gateway still has, it calls off itself.

use railhead_rail::types::{Finding, Payment, RecallReason, RecallRequest, Receipt, ReturnOfFunds};

use crate::codes;
use crate::days;
use crate::gateway::{self, RECALL};
use crate::imad::{self, Purpose};
use crate::messages::{self, Sending};
use crate::payments::{found, now_ms, useless};
use crate::reports::{self, Report, ReturnReport};
use crate::settings::Settings;

/// Answers that the recipient's bank may give: it will return it, it looks into it, it will not.
const CONFIRMATIONS: &[&str] = &["ACCR", "CNCL", "IPAY", "PDCR", "PECR", "RJCR"];

/// Asks for it.
#[must_use]
pub fn recall(payment: &Payment, request: &RecallRequest) -> Finding {
    ask(payment, request).unwrap_or_else(Finding::Unknown)
}

fn ask(payment: &Payment, request: &RecallRequest) -> Result<Finding, String> {
    let settings = Settings::of(payment);
    let now_ms = now_ms(payment);
    let sending = Sending::earlier(payment, &settings)?;
    let id = imad::of(days::cycle(now_ms), &settings.source_id, request.serial, Purpose::Recall)
        .ok_or("no IMAD can be made: source_id is not eight capitals and digits")?;
    let message =
        messages::recall((payment, code(request.reason)), &settings, &sending, (&id, now_ms))?;
    let response = gateway::post(RECALL, message)?;
    if !(200..=202).contains(&response.status) {
        return Err(useless(&response));
    }
    let report = reports::read(&response.body)
        .map_err(|why| format!("the gateway answered HTTP {}, and {why}", response.status))?;
    match report {
        Report::Status(report) => found(payment, &report, &response),
        Report::Acknowledgement { about } if about == id => Ok(underway("requested")),
        Report::Resolution(resolution)
            if resolution.uetr == payment.reference
                && CONFIRMATIONS.contains(&resolution.confirmation.as_str()) =>
        {
            Ok(underway(&resolution.confirmation))
        }
        Report::Return(report) if report.uetr.as_ref() == Some(&payment.reference) => {
            returned(&report).map(Finding::Returned).ok_or_else(|| useless(&response))
        }
        _ => Err(useless(&response)),
    }
}

/// ISO 20022's code for why a wire is asked back.
const fn code(reason: RecallReason) -> &'static str {
    match reason {
        RecallReason::CustomerRequest => "CUST",
        RecallReason::Duplicate => "DUPL",
        RecallReason::TechnicalProblem => "TECH",
        RecallReason::Fraud => "FRAD",
        RecallReason::WrongAmount => "AM09",
        RecallReason::WrongAccount => "AC03",
    }
}

/// Nothing has changed yet, and perhaps never will.
fn underway(code: &str) -> Finding {
    Finding::Accepted(Receipt {
        code: code.to_owned(),
        network_id: None,
        amount_minor: None,
        facts: Vec::new(),
    })
}

/// What came back; `None` where the message does not say how much.
#[must_use]
pub fn returned(report: &ReturnReport) -> Option<ReturnOfFunds> {
    let code = codes::plain(report.reason.as_deref().unwrap_or("returned"));
    Some(ReturnOfFunds {
        message: codes::returned(&code),
        code,
        amount_minor: report.amount_minor?,
        network_id: Some(report.imad.clone()),
    })
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use railhead_rail::imports::http::Failure;
    use railhead_rail::types::{Finding, Payment};

    use super::recall;
    use crate::fixtures::{self, REFERENCE, body, gateway, payment, status};

    fn answered(status: u16, text: &str) -> Finding {
        let _sent = gateway(Ok((status, text.to_owned())));
        recall(&payment(), &fixtures::recall_request())
    }

    #[test]
    fn what_is_asked() {
        let sent = gateway(Err(Failure::NoAnswer("timeout".into())));
        assert!(matches!(recall(&payment(), &fixtures::recall_request()), Finding::Unknown(_)));
        let text = body(&sent);
        for part in [
            "<Assgnmt><Id>20261123B1QDRCQR000006</Id><Assgnr><Agt><FinInstnId><ClrSysMmbId>\
             <ClrSysId><Cd>USABA</Cd></ClrSysId><MmbId>011104238</MmbId>",
            "<Assgne><Agt><FinInstnId><ClrSysMmbId><ClrSysId><Cd>USABA</Cd></ClrSysId>\
             <MmbId>121042882</MmbId>",
            "<OrgnlMsgId>20261123B1QDRCQR000005</OrgnlMsgId>",
            "<OrgnlIntrBkSttlmAmt Ccy=\"USD\">1250.50</OrgnlIntrBkSttlmAmt>\
             <OrgnlIntrBkSttlmDt>2026-11-23</OrgnlIntrBkSttlmDt>\
             <CxlRsnInf><Rsn><Cd>CUST</Cd></Rsn></CxlRsnInf>",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }

    #[test]
    fn what_answers_mean() {
        let accepted = |found: &Finding, code: &str| matches!(found, Finding::Accepted(receipt) if receipt.code == code);
        let taken = fixtures::acknowledged("20261123B1QDRCQR000006");
        assert!(accepted(&answered(200, &taken), "requested"));
        assert!(accepted(&answered(202, &taken), "requested"));
        for code in ["ACCR", "CNCL", "IPAY", "PDCR", "PECR", "RJCR"] {
            assert!(accepted(&answered(200, &fixtures::resolution(code)), code), "{code}");
        }
        let called_off = answered(200, &status("CANC", ""));
        assert!(matches!(&called_off, Finding::Refused(refusal) if refusal.code == "CANC"));
        let settled = answered(200, &status("ACSC", ""));
        assert!(matches!(settled, Finding::Paid(_)), "{settled:?}");
        let back = answered(200, &fixtures::returned("1250.50"));
        assert!(matches!(&back, Finding::Returned(funds) if funds.amount_minor == 125_050));
        let part = answered(200, &fixtures::returned("0.01"));
        assert!(matches!(&part, Finding::Returned(funds) if funds.amount_minor == 1));
    }

    #[test]
    fn what_says_nothing() {
        let other = "8a562c67-ca16-48ba-b074-65581be6f011";
        for (code, text) in [
            (200, fixtures::acknowledged("20261123B1QDRCQR000005")),
            (200, fixtures::resolution("ABCD")),
            (200, fixtures::resolution("CNCL").replace(REFERENCE, other)),
            (200, status("CANC", "").replace(REFERENCE, other)),
            (200, fixtures::returned("1250.50").replace(REFERENCE, other)),
            (200, fixtures::returned("x")),
            (200, fixtures::rejection("20261123B1QDRCQR000006", "E433")),
            (200, "<html/>".to_owned()),
            (500, status("CANC", "")),
            (409, status("CANC", "")),
            (404, status("CANC", "")),
        ] {
            let found = answered(code, &text);
            assert!(matches!(found, Finding::Unknown(_)), "{code} {text}: {found:?}");
        }
        let _sent = gateway(Ok((200, status("CANC", ""))));
        let nothing = Payment { amount_minor: 0, ..payment() };
        assert!(matches!(recall(&nothing, &fixtures::recall_request()), Finding::Unknown(_)));
    }
}
