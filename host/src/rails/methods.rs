//! Methods of rails: what each carries, how its payments leave, and which recipients select it.

use serde::Deserialize;

use crate::error::{ErrorCode, Problem};
use crate::money::Currency;

use super::declaration::Declaration;
use super::hours::HoursTerms;

/// `[[methods]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MethodTerms {
    /// As in the API; a currency's first is its default.
    pub name: String,
    /// ISO 4217.
    pub currency: Currency,
    /// Decimal places of the currency's major unit.
    pub exponent: u8,
    /// Smallest amount.
    pub amount_minor_min: i64,
    /// Largest amount.
    pub amount_minor_max: i64,
    /// Amounts are multiples of this: 100 where a network has no cents.
    #[serde(default = "one")]
    pub step: i64,
    /// How its payments leave.
    #[serde(default)]
    pub via: Via,
    /// When its network takes payments; always, if left out.
    pub hours: Option<HoursTerms>,
    /// The recipients that select it, where the request names no method.
    pub select: Option<SelectTerms>,
}

impl MethodTerms {
    /// Whether an amount is within its bounds, and one of its steps.
    #[must_use]
    pub const fn takes(&self, amount_minor: i64) -> bool {
        let Self { amount_minor_min: least, amount_minor_max: most, step, .. } = *self;
        least <= amount_minor && amount_minor <= most && amount_minor % step == 0
    }
}

/// How payments of a method leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Via {
    /// One by one, by request and answer.
    #[default]
    Payouts,
    /// Together with others, in a file.
    Files,
}

/// `[methods.select]`: what of a recipient selects a method where the request names none.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SelectTerms {
    /// A field of it.
    pub field: Option<String>,
    /// With one of these values.
    #[serde(default)]
    pub values: Vec<String>,
    /// Fields of which any is there that only its recipients have.
    #[serde(default)]
    pub present: Vec<String>,
}

/// How well a method fits a recipient, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    /// The recipient names it.
    Named,
    /// The recipient has its fields.
    Shaped,
    /// It is what the merchant usually pays by.
    Usual,
    /// It takes whoever selects no other.
    Any,
    /// It is for other recipients.
    Other,
}

/// What of a request chooses the method that pays it.
#[derive(Clone, Copy)]
pub struct Choice<'a> {
    /// The method that the request names.
    pub method: Option<&'a str>,
    /// What the merchant pays by where nothing else decides.
    pub usual: Option<&'a str>,
    /// Fields of the recipient, as they were sent.
    pub given: &'a dyn Fn(&str) -> Option<String>,
}

impl<'a> Choice<'a> {
    /// A choice without a recipient.
    #[must_use]
    pub fn of(method: Option<&'a str>) -> Self {
        Self { method, usual: None, given: &|_| None }
    }

    /// A choice by the recipient's fields.
    #[must_use]
    pub fn by(given: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self { method: None, usual: None, given }
    }
}

const fn one() -> i64 {
    1
}

impl Declaration {
    /// The method of a currency that fits a choice best, and how well.
    #[must_use]
    pub fn selected(&self, currency: Currency, choice: &Choice<'_>) -> Option<(Fit, &MethodTerms)> {
        // The first of those that fit best.
        let methods = self.methods_of(currency);
        methods.map(|terms| (self.fit(terms, choice), terms)).min_by_key(|(fit, _)| *fit)
    }

    fn fit(&self, terms: &MethodTerms, choice: &Choice<'_>) -> Fit {
        let select = terms.select.as_ref();
        let named = select.and_then(|select| {
            let value = self.given(select.field.as_ref()?, choice)?;
            Some(select.values.contains(&value))
        });
        let is_shaped = || {
            let mut present = select.into_iter().flat_map(|select| &select.present);
            present.any(|field| self.given(field, choice).is_some())
        };
        match named {
            Some(true) => Fit::Named,
            None if is_shaped() => Fit::Shaped,
            None if choice.usual == Some(&terms.name) => Fit::Usual,
            None => Fit::Any,
            Some(false) => Fit::Other,
        }
    }

    /// A field's value, under its own name or where the body of a recipient that is saved has it.
    fn given(&self, field: &str, choice: &Choice<'_>) -> Option<String> {
        let fields = &self.recipient.fields;
        let place = || fields.iter().find(|terms| terms.name == field)?.from.as_deref();
        let value = (choice.given)(field).or_else(|| (choice.given)(place()?))?;
        Some(value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    /// Refuses a recipient of another method than the one that a request names: with fields that
    /// select the other one, and that this rail knows nothing of.
    ///
    /// # Errors
    /// `invalid_field`, naming the field.
    pub fn refuse_shape_of(
        &self,
        (other, currency): (&Self, Currency),
        (method, choice): (&str, &Choice<'_>),
    ) -> Result<(), Problem> {
        let own = &self.recipient.fields;
        let selects = other.methods_of(currency).filter_map(|terms| terms.select.as_ref());
        let mut strange = selects.flat_map(|select| &select.present).filter(|field| {
            let is_own = own.iter().any(|terms| terms.name == **field);
            !is_own && other.given(field, choice).is_some()
        });
        let Some(field) = strange.next() else { return Ok(()) };
        let message = format!("A recipient of {method} has no {field}: leave one of the two out.");
        Err(Problem::because(ErrorCode::InvalidField, message).field(format!("recipient.{field}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NIP: &str = include_str!("../../../rails/nip/rail.toml");

    fn declared(select: &str) -> Declaration {
        let (head, rest) = NIP.split_once("[recipient]").expect("a recipient");
        let head = head.replace("[methods.select]", "[ignored]");
        let text = format!("{head}\n[methods.select]\n{select}\n[recipient]{rest}");
        Declaration::read(&text).expect("a declaration")
    }

    #[test]
    fn a_recipient_names_a_method_or_has_its_fields() {
        let naira = Currency::parse("NGN").expect("a currency");
        let fit = |select: &str, usual: Option<&str>, given: &[(&str, &str)]| {
            let given = |name: &str| {
                let found = given.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            let choice = Choice { usual, ..Choice::by(&given) };
            declared(select).selected(naira, &choice).expect("a method").0
        };
        let named = "field = \"bank_name\"\nvalues = [\"a\"]\npresent = [\"bank_code\"]";
        assert_eq!(fit(named, None, &[("bank_name", " a ")]), Fit::Named);
        assert_eq!(fit(named, None, &[("bank_name", "b"), ("bank_code", "058")]), Fit::Other);
        assert_eq!(fit(named, None, &[("bank_code", "058")]), Fit::Shaped);
        assert_eq!(fit(named, Some("nip"), &[("bank_code", "")]), Fit::Usual);
        // Who names nothing goes by what was there first, whatever else can be selected.
        assert_eq!(fit(named, Some("other"), &[]), Fit::Any);
    }
}
