//! A payment as both kinds of messages carry it.

use railhead_rail::fields;
use railhead_rail::types::{Field, Opening, Payment, Refusal};

use crate::amount::{self, CENTS_MAX};
use crate::settings::Settings;
use crate::xml::Document;
use crate::{bic, charset, iban, reference};

/// Room for names (EPC125-05), for a street, for a town and for a postal code.
const NAME_MAX: usize = 70;
const STREET_MAX: usize = 70;
const TOWN_MAX: usize = 35;
const POSTAL_CODE_MAX: usize = 16;
/// Room for what the payment is for.
const REMITTANCE_MAX: usize = 140;

/// A payment in the network's characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// Our reference: the `EndToEndId`.
    pub reference: String,
    /// How much, in cents.
    pub cents: i64,
    /// Whom.
    pub name: String,
    /// To which account.
    pub iban: String,
    /// At which bank.
    pub bic: String,
    /// What for; empty where nothing is said.
    pub remittance: String,
    /// On whose behalf; empty where nothing is said.
    pub sender: String,
    address: Address,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Address {
    street: String,
    postal_code: String,
    town: String,
    country: String,
}

/// Fixes the reference of a payment that leaves in a file.
///
/// # Errors
/// SEPA would not carry the payment.
pub fn prepare_for_file(payment: &Payment) -> Result<Opening, Refusal> {
    prepared(payment, reference::collected(payment.begun_at_ms, payment.serial))
}

/// Fixes the reference of an instant payment.
///
/// # Errors
/// SEPA would not carry the payment.
pub fn prepare(payment: &Payment) -> Result<Opening, Refusal> {
    prepared(payment, reference::instant(payment.begun_at_ms, payment.serial))
}

fn prepared(payment: &Payment, reference: Option<String>) -> Result<Opening, Refusal> {
    let reference = reference
        .ok_or_else(|| refusal("reference", "No reference can be made for the payment"))?;
    order(&Payment { reference: reference.clone(), ..payment.clone() })?;
    Ok(Opening { reference, facts: Vec::new() })
}

/// The payment in the network's characters.
///
/// # Errors
/// SEPA does not carry it.
pub fn order(payment: &Payment) -> Result<Order, Refusal> {
    if (payment.currency.as_str(), payment.exponent) != ("EUR", 2) {
        return Err(refusal("currency", "SEPA carries euros only"));
    }
    if !(1..=CENTS_MAX).contains(&payment.amount_minor) {
        let why = "SEPA carries amounts between 0.01 and 999,999,999.99 euros";
        return Err(refusal("amount", why));
    }
    if !reference::is_payment(&payment.reference) {
        return Err(refusal("reference", "The reference is not one of this rail's"));
    }
    let given = |name| fields::value(&payment.recipient, name);
    let bad = |why| refusal("recipient", why);
    let name = charset::cut(given("name"), NAME_MAX);
    if !name.contains(|c: char| c.is_ascii_alphanumeric()) {
        return Err(bad("The recipient's name cannot be written"));
    }
    let country = given("country").to_ascii_uppercase();
    let is_country = country.len() == 2 && country.bytes().all(|b| b.is_ascii_uppercase());
    Ok(Order {
        reference: payment.reference.clone(),
        cents: payment.amount_minor,
        name,
        iban: iban::canonical(given("iban")).map_err(|_| bad("The IBAN is not valid"))?,
        bic: bic::canonical(given("bic_code")).map_err(|_| bad("The BIC is not valid"))?,
        remittance: charset::cut(&payment.narration, REMITTANCE_MAX),
        sender: sender(&payment.sender),
        address: Address {
            street: charset::cut(given("street"), STREET_MAX),
            postal_code: charset::cut(given("zip_code"), POSTAL_CODE_MAX),
            town: charset::cut(given("city"), TOWN_MAX),
            country: if is_country { country } else { String::new() },
        },
    })
}

/// Who sends it: a business, or a person with all the names that there are.
fn sender(sender: &[Field]) -> String {
    let business = charset::cut(fields::value(sender, "business_name"), NAME_MAX);
    if !business.is_empty() {
        return business;
    }
    let names = ["first_name", "last_name"].map(|name| fields::value(sender, name));
    charset::cut(&names.join(" "), NAME_MAX)
}

impl Order {
    /// Our reference, under the names that a message has for it.
    pub fn identify(&self, it: &mut Document, before: (&str, &str), after: &[&str]) {
        it.within("PmtId", |it| {
            it.value(before.0, before.1);
            it.value("EndToEndId", &self.reference);
            for name in after {
                it.value(name, &self.reference);
            }
        });
    }

    /// How much, in euros.
    #[must_use]
    pub fn euros(&self) -> String {
        amount::euros(self.cents)
    }

    /// On whose behalf it is made, where that is to be said.
    pub fn write_sender(&self, it: &mut Document, settings: &Settings) {
        if settings.has_senders && !self.sender.is_empty() {
            it.within("UltmtDbtr", |it| it.value("Nm", &self.sender));
        }
    }

    /// The recipient and his bank and account.
    pub fn write_creditor(&self, it: &mut Document, settings: &Settings) {
        bank(it, "CdtrAgt", &self.bic);
        it.within("Cdtr", |it| {
            it.value("Nm", &self.name);
            if settings.has_addresses && self.address.is_whole() {
                self.address.write(it);
            }
        });
        account(it, "CdtrAcct", &self.iban);
    }

    /// What it is for: a code of the operator's, and the merchant's text.
    pub fn write_purpose(&self, it: &mut Document, settings: &Settings) {
        if !settings.purpose.is_empty() {
            it.within("Purp", |it| it.value("Cd", &settings.purpose));
        }
        if !self.remittance.is_empty() {
            it.within("RmtInf", |it| it.value("Ustrd", &self.remittance));
        }
    }
}

impl Address {
    /// Town and country are what the scheme demands of an address.
    fn is_whole(&self) -> bool {
        !self.town.is_empty() && !self.country.is_empty()
    }

    fn write(&self, it: &mut Document) {
        it.within("PstlAdr", |it| {
            for (name, value) in [
                ("StrtNm", &self.street),
                ("PstCd", &self.postal_code),
                ("TwnNm", &self.town),
                ("Ctry", &self.country),
            ] {
                if !value.is_empty() {
                    it.value(name, value);
                }
            }
        });
    }
}

/// A bank by its BIC.
pub fn bank(it: &mut Document, name: &'static str, bic: &str) {
    it.within(name, |it| it.within("FinInstnId", |it| it.value("BICFI", bic)));
}

/// An account by its IBAN.
pub fn account(it: &mut Document, name: &'static str, iban: &str) {
    it.within(name, |it| it.within("Id", |it| it.value("IBAN", iban)));
}

fn refusal(code: &str, message: &str) -> Refusal {
    Refusal { code: code.to_owned(), message: message.to_owned() }
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use railhead_rail::fields::{field, set};
    use railhead_rail::types::Payment;

    use super::{order, prepare, prepare_for_file};
    use crate::fixtures::{self, INSTANT_REFERENCE, REFERENCE, payment};

    fn refused(change: impl Fn(&mut Payment)) -> String {
        let mut payment = payment();
        change(&mut payment);
        prepare(&payment).expect_err("a refusal").code
    }

    #[test]
    fn the_reference() {
        fixtures::install();
        let unmade = Payment { reference: String::new(), ..payment() };
        assert_eq!(prepare_for_file(&unmade).expect("a reference").reference, REFERENCE);
        assert_eq!(prepare(&unmade).expect("a reference").reference, INSTANT_REFERENCE);
    }

    #[test]
    fn what_sepa_does_not_carry() {
        fixtures::install();
        assert_eq!(refused(|it| it.amount_minor = 0), "amount");
        assert_eq!(refused(|it| it.amount_minor = -1), "amount");
        assert_eq!(refused(|it| it.amount_minor = 100_000_000_000), "amount");
        assert_eq!(refused(|it| it.currency = "GBP".into()), "currency");
        assert_eq!(refused(|it| it.exponent = 3), "currency");
        assert_eq!(refused(|it| it.serial = u64::MAX), "reference");
        for (name, value) in
            [("name", "株式会社"), ("iban", "GB29NWBK60161331926818"), ("bic_code", "NOTPROVIDED")]
        {
            assert_eq!(refused(|it| set(&mut it.recipient, name, value)), "recipient");
        }
    }

    #[test]
    fn texts_are_cut_to_their_room() {
        fixtures::install();
        let mut payment = payment();
        payment.narration = "é".repeat(200);
        set(&mut payment.recipient, "name", "Ü".repeat(100));
        payment.sender = vec![field("first_name", "Ada"), field("last_name", "Obi")];
        let order = order(&payment).expect("an order");
        assert_eq!(order.remittance, "e".repeat(140));
        assert_eq!((order.name, order.sender), ("U".repeat(70), "Ada Obi".to_owned()));
    }
}
