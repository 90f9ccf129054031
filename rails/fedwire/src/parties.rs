//! Names and addresses as messages have them.
//!
//! Since November 2026 an address has town and country in elements of their own; the street has
//! one, too, if it fits there, and otherwise stands in up to two lines.

use railhead_rail::fields;
use railhead_rail::types::{Field, Payment};

use crate::charset::{fitting, says_something, tidy};
use crate::settings::Settings;
use crate::xml::Writer;

/// Most characters of a name.
pub const NAME_MAX: usize = 140;
/// Most characters of a street, and of a line of an address.
pub const STREET_MAX: usize = 70;
/// Most characters of a town or of a state.
pub const TOWN_MAX: usize = 35;
/// Most characters of a ZIP code.
const ZIP_CODE_MAX: usize = 16;

/// A person, a company or a bank, in the characters of messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Party {
    name: String,
    street: String,
    town: String,
    state: String,
    zip_code: String,
    country: String,
}

impl Party {
    /// The recipient of a payment.
    #[must_use]
    pub fn recipient(recipient: &[Field]) -> Self {
        Self::of(recipient, fields::value(recipient, "name"))
    }

    /// The recipient's bank.
    #[must_use]
    pub fn bank(recipient: &[Field]) -> Self {
        let value = |name| fields::value(recipient, name);
        Self {
            name: fitting(value("bank_name"), NAME_MAX),
            street: tidy(value("bank_address.line1")),
            town: fitting(value("bank_address.city"), TOWN_MAX),
            country: value("bank_address.country").to_owned(),
            ..Self::default()
        }
    }

    /// Who pays: the sender that the payment names, or whose account is debited.
    #[must_use]
    pub fn payer(payment: &Payment, settings: &Settings) -> Self {
        Self::sender(payment).unwrap_or_else(|| Self {
            name: fitting(&settings.debtor_name, NAME_MAX),
            street: tidy(&settings.debtor_street),
            town: fitting(&settings.debtor_city, TOWN_MAX),
            state: fitting(&settings.debtor_state, TOWN_MAX),
            zip_code: fitting(&settings.debtor_zip_code, ZIP_CODE_MAX),
            country: settings.debtor_country.clone(),
        })
    }

    /// The sender that the payment names, if it names one.
    #[must_use]
    pub fn sender(payment: &Payment) -> Option<Self> {
        let value = |name| fields::value(&payment.sender, name);
        let business = value("business_name").to_owned();
        let person = format!("{} {}", value("first_name"), value("last_name"));
        let mut names = [business, person].into_iter().map(|name| tidy(&name));
        let name = names.find(|name| says_something(name))?;
        Some(Self::of(&payment.sender, &name))
    }

    fn of(given: &[Field], name: &str) -> Self {
        let value = |name| fields::value(given, name);
        Self {
            name: fitting(name, NAME_MAX),
            street: tidy(value("street")),
            town: fitting(value("city"), TOWN_MAX),
            state: fitting(value("state"), TOWN_MAX),
            zip_code: fitting(value("zip_code"), ZIP_CODE_MAX),
            country: value("country").to_ascii_uppercase(),
        }
    }

    /// Whether it has a name that can be read.
    #[must_use]
    pub fn is_named(&self) -> bool {
        says_something(&self.name)
    }

    /// Whether it has town and country, without which there is no address.
    #[must_use]
    pub fn has_address(&self) -> bool {
        let is_country =
            self.country.len() == 2 && self.country.bytes().all(|byte| byte.is_ascii_uppercase());
        is_country && says_something(&self.town)
    }

    /// Writes name and address. There is no address without a name, nor without town and country.
    pub fn write(&self, writer: &mut Writer) {
        if !self.is_named() {
            return;
        }
        writer.leaf("Nm", &self.name);
        if !self.has_address() {
            return;
        }
        let fits = self.street.len() <= STREET_MAX;
        let lines = if fits { Vec::new() } else { lines(&self.street) };
        writer.within("PstlAdr", |writer| {
            writer.leaf("StrtNm", if fits { &self.street } else { "" });
            writer.leaf("PstCd", &self.zip_code);
            writer.leaf("TwnNm", &self.town);
            writer.leaf("CtrySubDvsn", &self.state);
            writer.leaf("Ctry", &self.country);
            lines.iter().for_each(|line| writer.leaf("AdrLine", line));
        });
    }
}

/// A long street in two lines, which end with a word where that is possible.
fn lines(street: &str) -> Vec<String> {
    let head: String = street.chars().take(STREET_MAX + 1).collect();
    let at = head.rfind(' ').filter(|at| *at > 0).unwrap_or(STREET_MAX);
    let (first, rest) = street.split_at_checked(at).unwrap_or((street, ""));
    vec![fitting(first, STREET_MAX), fitting(rest, STREET_MAX)]
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use railhead_rail::fields::{field, set};
    use railhead_rail::types::Payment;

    use super::{Party, lines};
    use crate::fixtures;
    use crate::settings::Settings;
    use crate::xml::Writer;

    fn written(party: &Party) -> String {
        let mut writer = Writer::default();
        party.write(&mut writer);
        writer.finish().split_once("?>").map(|(_, text)| text.to_owned()).unwrap_or_default()
    }

    #[test]
    fn structured_addresses() {
        let mut recipient = fixtures::recipient();
        assert_eq!(
            written(&Party::recipient(&recipient)),
            "<Nm>Jane Smith</Nm><PstlAdr><StrtNm>1 Main Street</StrtNm><PstCd>62701</PstCd>\
             <TwnNm>Springfield</TwnNm><CtrySubDvsn>IL</CtrySubDvsn><Ctry>US</Ctry></PstlAdr>"
        );
        set(&mut recipient, "street", "");
        set(&mut recipient, "state", "");
        set(&mut recipient, "zip_code", "");
        assert_eq!(
            written(&Party::recipient(&recipient)),
            "<Nm>Jane Smith</Nm><PstlAdr><TwnNm>Springfield</TwnNm><Ctry>US</Ctry></PstlAdr>"
        );
        for (name, value) in [("city", "Москва"), ("country", "USA"), ("country", "")] {
            let mut recipient = fixtures::recipient();
            set(&mut recipient, name, value);
            assert_eq!(written(&Party::recipient(&recipient)), "<Nm>Jane Smith</Nm>");
        }
        set(&mut recipient, "name", "-");
        assert_eq!(written(&Party::recipient(&recipient)), "");
    }

    #[test]
    fn streets_that_do_not_fit() {
        let mut recipient = fixtures::recipient();
        let street = "The Very Long Building of the Society for the Naming of Long Buildings, \
                      Entrance at the Corner of Main Street";
        set(&mut recipient, "street", street);
        let text = written(&Party::recipient(&recipient));
        assert!(text.contains(
            "<Ctry>US</Ctry><AdrLine>The Very Long Building of the Society for the Naming of Long\
             </AdrLine><AdrLine>Buildings, Entrance at the Corner of Main Street</AdrLine></PstlAdr>"
        ));
        assert!(!text.contains("StrtNm"));
        for street in ["x".repeat(140), format!("{} y", "x".repeat(90)), "é".repeat(80)] {
            assert!(lines(&street).iter().all(|line| line.chars().count() <= 70), "{street}");
        }
    }

    #[test]
    fn who_pays() {
        fixtures::install();
        let settings = Settings::read();
        let plain = fixtures::payment();
        let own = written(&Party::payer(&plain, &settings));
        assert!(own.starts_with("<Nm>RAILHEAD DEMO</Nm><PstlAdr><StrtNm>1 Demo Street</StrtNm>"));
        let person = vec![field("first_name", "Ada"), field("last_name", "Obi")];
        let named = Payment { sender: person.clone(), ..plain.clone() };
        // Whose address it is not, nobody is given.
        assert_eq!(written(&Party::payer(&named, &settings)), "<Nm>Ada Obi</Nm>");
        let mut placed = person;
        set(&mut placed, "city", "Lagos");
        set(&mut placed, "country", "ng");
        let placed = Payment { sender: placed, ..plain.clone() };
        assert!(
            written(&Party::payer(&placed, &settings))
                .ends_with("<PstlAdr><TwnNm>Lagos</TwnNm><Ctry>NG</Ctry></PstlAdr>")
        );
        let company = vec![field("business_name", "Obi & Sons"), field("first_name", "Ada")];
        let company = Payment { sender: company, ..plain };
        assert_eq!(written(&Party::payer(&company, &settings)), "<Nm>Obi &amp; Sons</Nm>");
    }
}
