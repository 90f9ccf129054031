//! Which rate applies to a merchant, and why none does.

use std::collections::HashMap;
use std::time::Duration;

use crate::clock::Moment;
use crate::db::cell::Named;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::id::MerchantId;
use crate::money::Currency;

use super::rate::Rate;

/// Whose rates apply to every merchant that has none of its own.
const PLATFORM: &str = "-";

/// What is sold, and what is bought with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pair {
    /// Test or live.
    pub env: Env,
    /// What is sold.
    pub from: Currency,
    /// What is bought.
    pub to: Currency,
}

impl Pair {
    /// The other direction.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self { env: self.env, from: self.to, to: self.from }
    }

    /// The id of a merchant's own rate, or of the platform's.
    #[must_use]
    pub fn rate_id(self, merchant: Option<&MerchantId>) -> String {
        let Self { env, from, to } = self;
        format!("{env}/{}/{from}/{to}", merchant.map_or(PLATFORM, MerchantId::as_str))
    }

    /// The ids of everything that decides which rate applies to a merchant.
    #[must_use]
    pub fn rate_ids(self, merchant: &MerchantId) -> [String; 4] {
        self.rate_ids_of(Some(merchant))
    }

    /// The same for a merchant, or for those that have no rates of their own.
    #[must_use]
    pub fn rate_ids_of(self, merchant: Option<&MerchantId>) -> [String; 4] {
        let back = self.reversed();
        [self.rate_id(merchant), self.rate_id(None), back.rate_id(merchant), back.rate_id(None)]
    }
}

/// A rate as the operator has set it.
#[derive(Clone, Debug)]
pub struct SetRate {
    /// For what.
    pub pair: Pair,
    /// For whom; for every merchant without one of its own if for nobody.
    pub merchant: Option<MerchantId>,
    /// Before the spread.
    pub rate: Rate,
    /// What the platform keeps of it, in basis points.
    pub spread_bps: i64,
    /// Where it comes from, in a word of the operator's.
    pub source: String,
    /// As of when it was so.
    pub as_of: Moment,
    /// From when on it is too old to be used.
    pub valid_until: Option<Moment>,
    /// Whether it is in use.
    pub is_active: bool,
    /// How often it has been set.
    pub version: i64,
    /// When it was set.
    pub updated_at: Moment,
}

impl SetRate {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> String {
        self.pair.rate_id(self.merchant.as_ref())
    }

    /// What merchants get.
    #[must_use]
    pub fn effective(&self) -> Option<Rate> {
        self.rate.less(self.spread_bps)
    }

    /// Whether it is too old.
    #[must_use]
    pub fn is_stale(&self, now: Moment) -> bool {
        self.valid_until.is_some_and(|until| until <= now)
    }

    /// Until when a rate is valid that was so at an instant.
    #[must_use]
    pub fn until(as_of: Moment, valid_for_s: u64) -> Moment {
        as_of.after(Duration::from_secs(valid_for_s))
    }
}

/// A rate that applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applied {
    /// What merchants get.
    pub rate: Rate,
    /// As of when it was so.
    pub as_of: Moment,
}

/// Which of these rates applies at an instant: those of [`Pair::rate_ids`], in that order.
///
/// # Errors
/// `fx_rate_unavailable` where there is none, `fx_rate_stale` where it is too old, and
/// `fx_rate_inverted` where converting back would pay.
pub fn applied(found: &[Option<SetRate>; 4], now: Moment) -> Result<Applied, Problem> {
    let [own, platform, own_back, platform_back] = found;
    let active = |set: &'_ Option<SetRate>| set.clone().filter(|set| set.is_active);
    let set = active(own).or_else(|| active(platform));
    let set = set.ok_or_else(|| Problem::new(ErrorCode::FxRateUnavailable))?;
    if set.is_stale(now) {
        return Err(Problem::new(ErrorCode::FxRateStale));
    }
    let rate = set.effective().ok_or_else(|| Problem::new(ErrorCode::FxRateUnavailable))?;
    // What is too old in the other direction cannot be used to go back.
    let back = active(own_back).or_else(|| active(platform_back));
    let back = back.filter(|back| !back.is_stale(now)).and_then(|back| back.effective());
    if back.is_some_and(|back| rate.gains_with(back)) {
        return Err(Problem::new(ErrorCode::FxRateInverted));
    }
    Ok(Applied { rate, as_of: set.as_of })
}

/// Which of these rates applies at an instant to a merchant, or to those that have no rates of
/// their own; the ways back are among them.
///
/// # Errors
/// As of [`applied`]; `fx_rate_inverted` also where coming back by way of a third currency would
/// pay.
pub fn offered(
    found: &[SetRate],
    (pair, merchant): (Pair, Option<&MerchantId>),
    now: Moment,
) -> Result<Applied, Problem> {
    let of = |id: String| found.iter().find(|set| set.id() == id).cloned();
    let applied = applied(&pair.rate_ids_of(merchant).map(of), now)?;
    Market::of(found, now).refuse_loop(pair)?;
    Ok(applied)
}

/// The rates that one merchant can use at an instant, by what is sold and what is bought.
struct Market(HashMap<(Currency, Currency), Rate>);

impl Market {
    /// Of the platform's rates and the merchant's own, which come first.
    fn of<'a>(rates: impl IntoIterator<Item = &'a SetRate>, now: Moment) -> Self {
        let mut sets: HashMap<(Currency, Currency), &SetRate> = HashMap::new();
        for set in rates.into_iter().filter(|set| set.is_active) {
            let known = sets.entry((set.pair.from, set.pair.to)).or_insert(set);
            if set.merchant.is_some() {
                *known = set;
            }
        }
        // What is too old is used in no direction.
        let usable = sets.into_iter().filter(|(_, set)| !set.is_stale(now));
        Self(usable.filter_map(|(pair, set)| Some((pair, set.effective()?))).collect())
    }

    /// Refuses a pair that somebody would gain with who comes back by way of a third currency.
    fn refuse_loop(&self, pair: Pair) -> Result<(), Problem> {
        let Pair { from, to, .. } = pair;
        let Some(there) = self.0.get(&(from, to)) else { return Ok(()) };
        let on = self.0.iter().filter(|((sold, _), _)| *sold == to);
        let mut back = on.filter_map(|((_, by), on)| Some((on, self.0.get(&(*by, from))?)));
        match back.any(|(on, back)| there.gains_by_way(*on, *back)) {
            true => Err(Problem::new(ErrorCode::FxRateInverted)),
            false => Ok(()),
        }
    }
}

/// A rate as a row of its table says it.
///
/// # Errors
/// The row is not one that this program writes.
pub(super) fn read(id: &str, row: &Named<'_>) -> Result<SetRate, sqlx::Error> {
    let odd = || sqlx::Error::Decode(format!("{id} is no rate").into());
    let mut parts = id.split('/');
    let mut part = || parts.next().ok_or_else(odd);
    let env = Env::parse(part()?).ok_or_else(odd)?;
    let merchant = Some(part()?).filter(|merchant| *merchant != PLATFORM);
    let from = Currency::parse(part()?).ok_or_else(odd)?;
    let to = Currency::parse(part()?).ok_or_else(odd)?;
    Ok(SetRate {
        pair: Pair { env, from, to },
        merchant: merchant.map(|id| crate::id::Id::from_text(id.to_owned())),
        rate: Rate::parse(row.text("rate")?).ok_or_else(odd)?,
        spread_bps: row.int("spread_bps")?,
        source: row.text("source")?.to_owned(),
        as_of: Moment::from_micros(row.int("as_of")?),
        valid_until: row.maybe_int("valid_until")?.map(Moment::from_micros),
        is_active: row.int("is_active")? != 0,
        version: row.int("version")?,
        updated_at: Moment::from_micros(row.int("updated_at")?),
    })
}

#[cfg(test)]
mod tests {
    use crate::id::Id as _;

    use super::*;

    fn set(rate: &str, spread_bps: i64) -> Option<SetRate> {
        let currency = |code| Currency::parse(code).expect("a currency");
        Some(SetRate {
            pair: Pair { env: Env::Test, from: currency("USD"), to: currency("NGN") },
            merchant: None,
            rate: Rate::parse(rate).expect("a rate"),
            spread_bps,
            source: "test".to_owned(),
            as_of: Moment::from_micros(1),
            valid_until: Some(Moment::from_micros(10)),
            is_active: true,
            version: 1,
            updated_at: Moment::from_micros(1),
        })
    }

    fn off(set: Option<SetRate>) -> Option<SetRate> {
        set.map(|set| SetRate { is_active: false, ..set })
    }

    fn at(found: &[Option<SetRate>; 4], micros: i64) -> Result<String, &'static str> {
        let applied = applied(found, Moment::from_micros(micros));
        applied
            .map(|applied| applied.rate.to_string())
            .map_err(|problem| problem.code().entry().code)
    }

    #[test]
    fn a_merchants_own_rate_comes_first() {
        let platform = set("1500", 100);
        assert_eq!(at(&[None, platform.clone(), None, None], 5), Ok("1485".to_owned()));
        let own = set("1510", 0);
        assert_eq!(at(&[own.clone(), platform.clone(), None, None], 5), Ok("1510".to_owned()));
        // One that was taken away leaves the platform's.
        assert_eq!(at(&[off(own), platform, None, None], 5), Ok("1485".to_owned()));
    }

    #[test]
    fn what_is_not_there_too_old_or_inverted_is_not_used() {
        assert_eq!(at(&[None, None, None, None], 5), Err("fx_rate_unavailable"));
        assert_eq!(at(&[None, off(set("1500", 0)), None, None], 5), Err("fx_rate_unavailable"));
        assert_eq!(at(&[None, set("1500", 0), None, None], 9), Ok("1500".to_owned()));
        assert_eq!(at(&[None, set("1500", 0), None, None], 10), Err("fx_rate_stale"));
        // An own rate that is too old is not replaced by the platform's.
        let old = set("1500", 0).map(|it| SetRate { valid_until: Some(it.as_of), ..it });
        assert_eq!(at(&[old, set("1500", 0), None, None], 5), Err("fx_rate_stale"));

        let (there, fair) = (set("1600", 0), set("0.000625", 0));
        let there = |back| at(&[None, there.clone(), None, back], 5);
        assert_eq!(there(fair), Ok("1600".to_owned()));
        assert_eq!(there(set("0.000626", 0)), Err("fx_rate_inverted"));
        assert_eq!(there(set("0.000626", 100)), Ok("1600".to_owned()));
        assert_eq!(there(off(set("0.000626", 0))), Ok("1600".to_owned()));
    }

    #[test]
    fn a_way_by_a_third_currency_must_not_pay() {
        let currency = |code: &str| Currency::parse(code).expect("a currency");
        let of = |from: &str, to: &str, rate: &str| {
            let pair = Pair { env: Env::Test, from: currency(from), to: currency(to) };
            SetRate { pair, ..set(rate, 0).expect("a rate") }
        };
        let refused = |rates: &[SetRate], micros: i64| {
            let market = Market::of(rates, Moment::from_micros(micros));
            let pairs = [("USD", "NGN"), ("NGN", "EUR"), ("EUR", "USD"), ("USD", "EUR")];
            pairs.map(|(from, to)| market.refuse_loop(of(from, to, "1").pair).is_err())
        };
        let fair =
            vec![of("USD", "NGN", "1500"), of("NGN", "EUR", "0.0006"), of("EUR", "USD", "1.1")];
        assert_eq!(refused(&fair, 5), [false; 4]);
        let mut dear = fair.clone();
        dear[0] = of("USD", "NGN", "1600");
        assert_eq!(refused(&dear, 5), [true, true, true, false]);
        assert_eq!(refused(&dear, 10), [false; 4], "all too old");
        // A merchant's own rate takes the place of the platform's, in either order.
        let own = SetRate { merchant: Some(MerchantId::from_text("c1".into())), ..fair[0].clone() };
        assert_eq!(refused(&[dear.clone(), vec![own.clone()]].concat(), 5), [false; 4]);
        assert_eq!(refused(&[vec![own], dear].concat(), 5), [false; 4]);
    }
}
