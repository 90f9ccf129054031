//! In whose name a wallet is registered.
//!
//! MTN tells it to whom it has granted that, and compares nothing: the host compares. The operator
//! turns it on with the setting `name_check`.

use railhead_rail::fields;
use railhead_rail::types::{Enquiry, Refusal, Resolution, Verdict};

use crate::gateway::{self, Answer, NAME};
use crate::settings::Settings;

/// Asks in whose name the recipient's wallet is.
#[must_use]
pub fn resolve(enquiry: &Enquiry) -> Verdict {
    if !Settings::read().checks_names {
        return Verdict::Unavailable("names are not asked for over this route".to_owned());
    }
    let number = fields::value(&enquiry.account, "mobile_number");
    if number.is_empty() {
        return Verdict::Unavailable("there is no wallet to ask about".to_owned());
    }
    match gateway::send(NAME, &format!("{number}/basicuserinfo"), Vec::new(), Vec::new()) {
        Ok(answer) => verdict(&answer),
        Err(why) => Verdict::Unavailable(why),
    }
}

fn verdict(answer: &Answer) -> Verdict {
    match answer.status {
        200 => {
            let part = |name| answer.body.text(name).trim();
            let name = format!("{} {}", part("given_name"), part("family_name"));
            match name.trim() {
                "" => Verdict::Unavailable("MTN tells no name".to_owned()),
                name => Verdict::Named(Resolution {
                    name: name.to_owned(),
                    reference: String::new(),
                    attributes: Vec::new(),
                }),
            }
        }
        // The gateway in front says 404 too, without a code, of a path that is not there.
        404 if answer.code() == "RESOURCE_NOT_FOUND" => Verdict::Refused(Refusal {
            code: answer.code().to_owned(),
            message: "The number has no MTN wallet".to_owned(),
        }),
        _ => Verdict::Unavailable(answer.sentence()),
    }
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
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
        let sent = railhead_rail::host::double::install_with(host, Ok((200, String::new())));
        assert!(matches!(resolve(&enquiry()), Verdict::Unavailable(_)));
        let nobody = Enquiry { account: Vec::new(), ..enquiry() };
        fixtures::install();
        assert!(matches!(resolve(&nobody), Verdict::Unavailable(_)));
        assert!(sent.borrow().is_empty());
    }

    #[test]
    fn names_are_told() {
        let sent =
            fixtures::mtn(Ok((200, "{\"given_name\":\"Ama \",\"family_name\":\"Mensah\"}".into())));
        let Verdict::Named(found) = resolve(&enquiry()) else { panic!("a name") };
        assert_eq!(found.name, "Ama Mensah");
        let sent = sent.borrow();
        assert_eq!((&*sent[0].call, &*sent[0].path), ("name", "233241234567/basicuserinfo"));
    }
}
