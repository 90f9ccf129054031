//! Which wallets there are: any number of an operator's country that looks like a mobile one.

/// A country's wallets.
struct Wallets {
    currency: &'static str,
    operators: &'static [&'static str],
    calling_code: &'static str,
    /// What mobile numbers begin with.
    mobile: [char; 2],
    /// The least amount.
    step_minor: i64,
}

const WALLETS: [Wallets; 2] = [
    Wallets {
        currency: "GHS",
        operators: &["telecel", "at"],
        calling_code: "233",
        mobile: ['2', '5'],
        step_minor: 1,
    },
    Wallets {
        currency: "KES",
        operators: &["tkash"],
        calling_code: "254",
        mobile: ['1', '7'],
        step_minor: 100,
    },
];

fn of(operator: &str) -> Option<&'static Wallets> {
    WALLETS.iter().find(|wallets| wallets.operators.contains(&operator))
}

/// The currency of an operator's wallets.
#[must_use]
pub fn currency(operator: &str) -> Option<&'static str> {
    of(operator).map(|wallets| wallets.currency)
}

/// Whether an operator can have a wallet of this number.
#[must_use]
pub fn is_wallet(operator: &str, number: &str) -> bool {
    of(operator).is_some_and(|wallets| {
        let national = number.strip_prefix(wallets.calling_code);
        national.is_some_and(|it| it.starts_with(wallets.mobile))
            && number.len() == 12
            && number.chars().all(|c| c.is_ascii_digit())
    })
}

/// Minor units of an amount as the protocol writes it, if wallets of the currency can hold it.
#[must_use]
pub fn amount_minor(currency: &str, written: &str) -> Option<i64> {
    let wallets = WALLETS.iter().find(|wallets| wallets.currency == currency)?;
    let (whole, decimals) = written.split_once('.')?;
    let is_digits = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit());
    let has_zero_in_front = whole.len() > 1 && whole.starts_with('0');
    if !is_digits(whole) || !is_digits(decimals) || decimals.len() != 2 || has_zero_in_front {
        return None;
    }
    let minor: i64 = format!("{whole}{decimals}").parse().ok()?;
    (minor > 0 && minor % wallets.step_minor == 0).then_some(minor)
}

/// The same the other way round.
#[must_use]
pub fn written(amount_minor: i64) -> String {
    format!("{}.{:02}", amount_minor / 100, amount_minor % 100)
}
