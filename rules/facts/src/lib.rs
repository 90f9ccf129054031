//! The facts that a rule pack may ask for.
//!
//! The host works them out, packs decide by them; both read names and types here, so that a
//! pack that asks for something else is refused before it decides anything. This crate
//! depends on nothing.

mod near;
mod velocity;

pub use near::{nearest, nearest_of};
pub use velocity::{Measure, Scope, Velocity, WINDOW_MAX_S, WINDOW_MIN_S};

/// What kind of value a fact has, where it is not absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// True or false.
    Bool,
    /// 64 bits with a sign: a count, or an amount in minor units.
    Int,
    /// Text in UTF-8.
    String,
}

impl Type {
    /// Its name, as CEL spells it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Int => "int",
            Self::String => "string",
        }
    }
}

/// The facts whose names stand for themselves, with their types and meanings. The others are
/// velocities: see [`Velocity::parse`].
pub const PLAIN: &[(&str, Type, &str)] = &[
    ("merchant", Type::String, "the id of the merchant who pays"),
    ("env", Type::String, "test or live"),
    ("currency", Type::String, "the currency's code, such as NGN"),
    ("method", Type::String, "the payment method, such as nip"),
    ("kind", Type::String, "single, or batch for a row of a batch"),
    ("amount_minor", Type::Int, "what the recipient gets, in minor units"),
    (
        "recipient",
        Type::String,
        "the account that is paid, as a keyed hash: the same for the same account",
    ),
    ("recipient_name", Type::String, "the name of the recipient, as the payout gives it"),
    ("bank_code", Type::String, "the code of the recipient's bank"),
    (
        "name_match",
        Type::Int,
        "how well the recipient's name matches the name on record, from 0 to 100; absent where \
         there is nothing to compare",
    ),
    ("first_payment", Type::Bool, "whether this merchant never paid this recipient before"),
    ("recipient_age_s", Type::Int, "seconds since this merchant first knew the recipient"),
    ("merchant_age_s", Type::Int, "seconds since the merchant was created"),
    ("wallet_age_s", Type::Int, "seconds since the wallet that pays was created"),
    ("hour", Type::Int, "the hour in the merchant's timezone, from 0 to 23"),
    ("weekday", Type::Int, "the day in the merchant's timezone, from 1 (Monday) to 7 (Sunday)"),
    ("customer", Type::String, "the merchant's own customer, where the payout names one"),
    ("sender_country", Type::String, "the country of the sender, where the payout names one"),
    (
        "funding_currency",
        Type::String,
        "the currency that pays, such as USD; absent where it is that of the amount",
    ),
    (
        "funding_amount_minor",
        Type::Int,
        "what the payout takes from the wallet of that currency, in its minor units",
    ),
];

/// The type of the fact of this name; `None` if there is no such fact.
#[must_use]
pub fn type_of(name: &str) -> Option<Type> {
    let plain = PLAIN.iter().find(|(known, _, _)| *known == name).map(|(_, kind, _)| *kind);
    plain.or_else(|| Velocity::parse(name).map(|_| Type::Int))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_are_unique_and_no_velocities() {
        for (at, (name, kind, meaning)) in PLAIN.iter().enumerate() {
            assert!(PLAIN.iter().skip(at + 1).all(|(other, _, _)| other != name), "{name}");
            assert_eq!(type_of(name), Some(*kind), "{name}");
            assert_eq!(Velocity::parse(name), None, "{name}");
            assert!(!meaning.is_empty() && !meaning.contains("  "), "{name}");
        }
    }

    #[test]
    fn velocities_are_ints_and_nothing_else_is_known() {
        assert_eq!(type_of("count_per_wallet_10m"), Some(Type::Int));
        for name in ["", "amount", "Amount_minor", "amount_minor ", "count_per_wallet"] {
            assert_eq!(type_of(name), None, "{name}");
        }
    }
}
