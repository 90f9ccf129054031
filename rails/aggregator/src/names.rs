//! In whose name a wallet is registered.
//!
//! The aggregator tells the name and compares nothing: the host compares. Not every aggregator can
//! tell it, so the operator turns it on with the setting `name_check`.

use railhead_rail::fields;
use railhead_rail::json::Object as Body;
use railhead_rail::strict::Object;
use railhead_rail::types::{Enquiry, Refusal, Resolution, Verdict};
use serde::Deserialize;

use crate::gateway::{self, Answer, NAME};
use crate::words;

/// Codes that say something of the wallet, and not of the question.
const REFUSING: [&str; 2] = ["ACCOUNT_NOT_FOUND", "ACCOUNT_NOT_ACTIVE"];

#[derive(Deserialize)]
struct Holder {
    operator: String,
    account: String,
    name: String,
}

/// Asks in whose name the recipient's wallet is.
#[must_use]
pub fn resolve(enquiry: &Enquiry) -> Verdict {
    if !crate::settings::checks_names() {
        return Verdict::Unavailable("names are not asked for over this route".to_owned());
    }
    let account = |name| fields::value(&enquiry.account, name);
    let (operator, number) = (account("mobile_operator"), account("mobile_number"));
    if operator.is_empty() || number.is_empty() {
        return Verdict::Unavailable("there is no wallet to ask about".to_owned());
    }
    let body = Body::new().text("operator", operator).text("account", number);
    match gateway::post(NAME, None, body.text("currency", &enquiry.currency).finish()) {
        Ok(answer) => verdict(&answer, (operator, number)),
        Err(why) => Verdict::Unavailable(why),
    }
}

fn verdict(answer: &Answer, (operator, number): (&str, &str)) -> Verdict {
    match answer.status {
        200 => {
            let read = serde_json::from_slice::<Object<Holder>>(&answer.body);
            let is_ours = |it: &Holder| it.operator == operator && it.account == number;
            let holder = read.ok().map(|Object(holder)| holder).filter(is_ours);
            let name = holder.map(|holder| words::name(&holder.name)).unwrap_or_default();
            if name.is_empty() {
                return Verdict::Unavailable("the aggregator tells no name".to_owned());
            }
            Verdict::Named(Resolution { name, reference: String::new(), attributes: Vec::new() })
        }
        404 => {
            let problem = answer.problem();
            let meaning = crate::codes::refusing(&problem.code);
            match meaning.filter(|_| REFUSING.contains(&problem.code.as_str())) {
                Some(meaning) if problem.account == number => {
                    Verdict::Refused(Refusal { code: problem.code, message: meaning.to_owned() })
                }
                _ => Verdict::Unavailable(answer.sentence()),
            }
        }
        _ => Verdict::Unavailable(answer.sentence()),
    }
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use railhead_rail::host::double;
    use railhead_rail::types::{Enquiry, Verdict};

    use super::resolve;
    use crate::fixtures;

    fn enquiry() -> Enquiry {
        Enquiry::about(&fixtures::payment())
    }

    #[test]
    fn nobody_is_asked_where_the_operator_has_not_turned_it_on() {
        let mut host = fixtures::host();
        host.settings.insert("name_check".into(), "off".into());
        let sent = double::install_with(host, Ok((200, String::new())));
        assert!(matches!(resolve(&enquiry()), Verdict::Unavailable(_)));
        assert!(sent.borrow().is_empty());
        let sent = fixtures::aggregator(Ok((200, String::new())));
        let nobody = Enquiry { account: Vec::new(), ..enquiry() };
        assert!(matches!(resolve(&nobody), Verdict::Unavailable(_)));
        assert!(sent.borrow().is_empty());
    }

    #[test]
    fn names_are_told() {
        let told =
            "{\"operator\":\"telecel\",\"account\":\"233201234567\",\"name\":\" Ama Mensah\"}";
        let sent = fixtures::aggregator(Ok((200, told.into())));
        let Verdict::Named(found) = resolve(&enquiry()) else { panic!("a name") };
        assert_eq!(found.name, "Ama Mensah");
        let asked = "{\"operator\":\"telecel\",\"account\":\"233201234567\",\"currency\":\"GHS\"}";
        assert_eq!(double::body(&sent), asked);
        let request = &sent.borrow()[0];
        assert_eq!((&*request.call, &*request.path), ("name", ""));
        // There is nothing that must be done once.
        assert!(request.headers.iter().all(|it| it.name != "Idempotency-Key"));
    }
}
