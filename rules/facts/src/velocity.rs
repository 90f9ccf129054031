//! Velocities: how many payouts, and of how much, within a window of time.
//!
//! They count payouts of the same environment and currency that were accepted, held ones
//! included, and the payout that is decided about.

/// The shortest window: a minute.
pub const WINDOW_MIN_S: u64 = 60;
/// The longest window: thirty days. The host keeps its counters no longer.
pub const WINDOW_MAX_S: u64 = 30 * 86_400;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Measure {
    /// The number of payouts.
    Count,
    /// The sum of their amounts in minor units.
    Sum,
}

/// Which payouts belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// The merchant's.
    Merchant,
    /// Those from one wallet.
    Wallet,
    /// The merchant's to one account.
    Recipient,
    /// The merchant's to one account, of one amount.
    RecipientAndAmount,
    /// The merchant's for one of its customers.
    Customer,
    /// The merchant's to one bank.
    Bank,
    /// Any merchant's to one account.
    Account,
    /// Any merchant's to one account, of one amount.
    AccountAndAmount,
}

/// A fact about recent payouts, such as `sum_per_wallet_24h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Velocity {
    /// What is measured.
    pub measure: Measure,
    /// Over which payouts.
    pub scope: Scope,
    /// How far back, in seconds.
    pub window_s: u64,
}

impl Measure {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Count, Self::Sum];

    /// The first word of the fact.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Sum => "sum",
        }
    }
}

impl Scope {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Merchant,
        Self::Wallet,
        Self::Recipient,
        Self::RecipientAndAmount,
        Self::Customer,
        Self::Bank,
        Self::Account,
        Self::AccountAndAmount,
    ];

    /// As it stands in the name of a fact.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Merchant => "merchant",
            Self::Wallet => "wallet",
            Self::Recipient => "recipient",
            Self::RecipientAndAmount => "recipient_and_amount",
            Self::Customer => "customer",
            Self::Bank => "bank",
            Self::Account => "account",
            Self::AccountAndAmount => "account_and_amount",
        }
    }

    /// Which payouts belong to it, for people.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Merchant => "payouts of this merchant",
            Self::Wallet => "payouts from this wallet",
            Self::Recipient => "payouts of this merchant to this account",
            Self::RecipientAndAmount => "payouts of this merchant to this account of this amount",
            Self::Customer => "payouts of this merchant for this customer",
            Self::Bank => "payouts of this merchant to this bank",
            Self::Account => "payouts of any merchant to this account",
            Self::AccountAndAmount => "payouts of any merchant to this account of this amount",
        }
    }
}

impl Velocity {
    /// Reads `count_per_<scope>_<window>` or `sum_per_<scope>_<window>`, where the window is
    /// `<n>m`, `<n>h` or `<n>d`, from one minute to thirty days.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let (measure, rest) = name.split_once("_per_")?;
        let (scope, window) = rest.rsplit_once('_')?;
        Some(Self {
            measure: Measure::ALL.into_iter().find(|known| known.name() == measure)?,
            scope: Scope::ALL.into_iter().find(|known| known.name() == scope)?,
            window_s: window_s(window)?,
        })
    }
}

/// The seconds of `10m`, `24h` or `7d`. A leading zero would be a second spelling of one
/// window, so it is not read.
pub(crate) fn window_s(text: &str) -> Option<u64> {
    let unit_s = match text.bytes().last()? {
        b'm' => 60,
        b'h' => 3_600,
        b'd' => 86_400,
        _ => return None,
    };
    let digits = text.get(..text.len() - 1)?;
    let is_plain = !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
    let window_s = is_plain.then(|| digits.parse::<u64>().ok())??.checked_mul(unit_s)?;
    (WINDOW_MIN_S..=WINDOW_MAX_S).contains(&window_s).then_some(window_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read() {
        for (name, measure, scope, window_s) in [
            ("count_per_merchant_1m", Measure::Count, Scope::Merchant, 60),
            ("sum_per_wallet_24h", Measure::Sum, Scope::Wallet, 86_400),
            ("count_per_recipient_30d", Measure::Count, Scope::Recipient, WINDOW_MAX_S),
            ("count_per_recipient_and_amount_5m", Measure::Count, Scope::RecipientAndAmount, 300),
            ("sum_per_account_and_amount_1h", Measure::Sum, Scope::AccountAndAmount, 3_600),
            ("sum_per_bank_43200m", Measure::Sum, Scope::Bank, WINDOW_MAX_S),
        ] {
            let expected = Velocity { measure, scope, window_s };
            assert_eq!(Velocity::parse(name), Some(expected), "{name}");
        }
    }

    #[test]
    fn every_scope_is_read_under_its_name() {
        for scope in Scope::ALL {
            let name = format!("sum_per_{}_7d", scope.name());
            assert_eq!(Velocity::parse(&name).map(|read| read.scope), Some(scope), "{name}");
        }
    }

    #[test]
    fn other_names_are_not_read() {
        for name in [
            "",
            "count",
            "count_per_",
            "count_per_wallet",
            "count_per_wallet_",
            "count_per_wallet_h",
            "count_per_wallet_0m",
            "count_per_wallet_05m",
            "count_per_wallet_+5m",
            "count_per_wallet_5s",
            "count_per_wallet_31d",
            "count_per_wallet_721h",
            "count_per_wallet_99999999999999999999d",
            "count_per_wallet_18446744073709551615d",
            "count_per_wallet_5é",
            "count_per_wallets_5m",
            "Count_per_wallet_5m",
            "average_per_wallet_5m",
            "sum_per_recipient_and_5m",
        ] {
            assert_eq!(Velocity::parse(name), None, "{name}");
        }
    }
}
