use std::sync::Arc;

use proptest::prelude::*;

use crate::env::Env;
use crate::fx::Pair;
use crate::rules::tariff::Tariff;

use super::*;

const SHIFTS: std::ops::RangeInclusive<i32> = -2..=2;

/// A fee in basis points with a floor and a ceiling, tax on it, and a levy from an amount on.
#[derive(Clone, Copy, Debug)]
struct Fees {
    flat: i64,
    bps: i64,
    most: i64,
    tax_bps: i64,
    levy: (i64, i64),
}

impl Fees {
    fn price(self, amount: Minor) -> Result<Price, Problem> {
        let share = |of: i64, bps: i64| i64::try_from(i128::from(of) * i128::from(bps) / 10_000);
        let fee = share(amount.units(), self.bps).unwrap_or(i64::MAX).min(self.most);
        let fee = fee.saturating_add(self.flat);
        let (threshold, levy) = self.levy;
        let levy = if amount.units() >= threshold { levy } else { 0 };
        let tax = share(fee, self.tax_bps).unwrap_or_default();
        let lines = ["fee", "tax", "levy"].map(|kind| (kind.to_owned(), kind.to_owned()));
        let tariff = Tariff::new(["p", "1", ""], lines.to_vec());
        Ok(Price { tariff: Arc::new(tariff), amounts: vec![fee, tax, levy] })
    }

    fn total(self, amount: Minor) -> Minor {
        let price = self.price(amount).expect("a price");
        Costs::of(amount, &price.tariff, &price.amounts)
            .and_then(|costs| costs.total())
            .expect("small")
    }
}

fn pair() -> Pair {
    let currency = |code| Currency::parse(code).expect("a code");
    Pair { env: Env::Test, from: currency("NGN"), to: currency("USD") }
}

fn at(rate: Rate, shift: i32) -> impl Fn(Basis) -> Result<Exchange, Problem> {
    move |basis| Exchange::of(pair(), basis, rate, shift)
}

fn code(outcome: Result<Costed, Problem>) -> &'static str {
    outcome.expect_err("a refusal").code().entry().code
}

const FLAT: Fees = Fees { flat: 100, bps: 0, most: 0, tax_bps: 750, levy: (1_000_000, 5_000) };

#[test]
fn the_table_holds_by_hand() {
    let rate = Rate::parse("1500").expect("a rate");
    // 10 USD for 15,000 NGN: 107 kobo of charges, and 5,000 of levy.
    let asked =
        Method::Source { amount: Minor::new(1_000), is_inclusive: false, min_receive: None };
    let on_top = asked.cost(at(rate, 0), |amount| FLAT.price(amount), 1).expect("a cost");
    assert_eq!(on_top.costs.amount, Minor::new(1_500_000));
    assert_eq!(on_top.exchange.bought, Minor::new(1_505_107));
    assert_eq!(on_top.exchange.sold, Minor::new(1_004));
    assert_eq!(on_top.charges, Minor::new(4));
    let asked = Method::Source { amount: Minor::new(1_000), is_inclusive: true, min_receive: None };
    let inclusive = asked.cost(at(rate, 0), |amount| FLAT.price(amount), 1).expect("a cost");
    assert_eq!(inclusive.costs.amount, Minor::new(1_500_000 - 5_107));
    assert_eq!(inclusive.exchange.sold, Minor::new(1_000));
    assert_eq!(inclusive.exchange.bought, Minor::new(1_500_000));
    // Just below the levy there is an amount that leaves something over.
    let asked = Method::Source { amount: Minor::new(668), is_inclusive: true, min_receive: None };
    let below = asked.cost(at(rate, 0), |amount| FLAT.price(amount), 1).expect("a cost");
    assert_eq!(below.costs.amount, Minor::new(999_999));
    assert_eq!(below.exchange.bought, Minor::new(1_002_000));
}

#[test]
fn what_leaves_nothing_is_refused() {
    let (rate, price) = (Rate::parse("0.01").expect("a rate"), |amount| FLAT.price(amount));
    let spend = |amount, is_inclusive| Method::Source {
        amount: Minor::new(amount),
        is_inclusive,
        min_receive: None,
    };
    assert_eq!(code(spend(10_700, true).cost(at(rate, 0), price, 1)), "funding_below_fee");
    let one = spend(10_800, true).cost(at(rate, 0), price, 1).expect("one unit");
    assert_eq!(one.costs.amount, Minor::new(1));
    assert_eq!(code(spend(99, false).cost(at(rate, 0), price, 1)), "invalid_amount");
    assert_eq!(code(spend(99, true).cost(at(rate, 0), price, 1)), "invalid_amount");
}

fn rates() -> impl Strategy<Value = Rate> {
    (1..10_000_000_u64, 0..8_usize).prop_map(|(digits, places)| {
        let digits = format!("{digits:0>9}");
        let (whole, part) = digits.split_at(digits.len() - places);
        let whole = if whole.len() > 6 { &whole[whole.len() - 6..] } else { whole };
        Rate::parse(&format!("{whole}.{part}0")).unwrap_or(Rate::parse("1").expect("one"))
    })
}

fn fees() -> impl Strategy<Value = Fees> {
    (0..5_000_i64, 0..500_i64, 0..100_000_i64, 0..2_000_i64, (1..10_000_000_i64, 0..10_000_i64))
        .prop_map(|(flat, bps, most, tax_bps, levy)| Fees { flat, bps, most, tax_bps, levy })
}

proptest! {
    /// The recipient gets what was asked for; what is bought covers it to the unit, and no less
    /// would have bought it. The guard refuses one unit more than it allows.
    #[test]
    fn an_exact_amount_arrives(
        rate in rates(), fees in fees(), amount in 1..1_000_000_000_i64, shift in SHIFTS,
    ) {
        let amount = Minor::new(amount);
        let pay = |max_debit| {
            let method = Method::Destination { amount, max_debit };
            method.cost(at(rate, shift), |amount| fees.price(amount), 1)
        };
        let Ok(costed) = pay(None) else { return Ok(()) };
        prop_assert_eq!(costed.costs.amount, amount);
        prop_assert_eq!(costed.exchange.bought, fees.total(amount));
        prop_assert_eq!(Ok(costed.exchange.sold), rate.sold(fees.total(amount), shift));
        prop_assert_eq!(Ok(costed.exchange.sold), rate.sold(amount, shift)
            .and_then(|alone| alone.plus(costed.charges)));
        prop_assert!(pay(Some(costed.exchange.sold)).is_ok());
        if costed.exchange.sold > Minor::new(1) {
            let less = Minor::new(costed.exchange.sold.units() - 1);
            prop_assert_eq!(code(pay(Some(less))), "max_debit_exceeded");
        }
    }

    /// The recipient gets the whole of what was converted, and the debit is at most that and the
    /// charges; the guard refuses one unit less than it asks for.
    #[test]
    fn charges_on_top_take_nothing_from_the_recipient(
        rate in rates(), fees in fees(), spent in 1..1_000_000_000_i64, shift in SHIFTS,
    ) {
        let amount = Minor::new(spent);
        let pay = |min_receive| {
            let method = Method::Source { amount, is_inclusive: false, min_receive };
            method.cost(at(rate, shift), |amount| fees.price(amount), 1)
        };
        let Ok(costed) = pay(None) else { return Ok(()) };
        let got = costed.costs.amount;
        prop_assert_eq!(Ok(got), rate.bought(amount, shift));
        prop_assert_eq!(costed.exchange.bought, fees.total(got));
        prop_assert!(costed.exchange.sold <= amount.plus(costed.charges).expect("small"));
        prop_assert!(pay(Some(got)).is_ok());
        let more = Minor::new(got.units() + 1);
        prop_assert_eq!(code(pay(Some(more))), "min_receive_not_met");
    }

    /// The debit is what was asked for to the unit, and no larger amount could have been paid; who
    /// spends more sends no less.
    #[test]
    fn charges_that_are_included_leave_the_debit_exact(
        rate in rates(), fees in fees(), spent in 1..1_000_000_000_i64, more in 0..1_000_i64,
        shift in SHIFTS,
    ) {
        let pay = |units| {
            let amount = Minor::new(units);
            let method = Method::Source { amount, is_inclusive: true, min_receive: None };
            method.cost(at(rate, shift), |amount| fees.price(amount), 1)
        };
        let costed = match pay(spent) {
            Ok(costed) => costed,
            Err(problem) => {
                if problem.code() == ErrorCode::FundingBelowFee {
                    let all = rate.bought(Minor::new(spent), shift).expect("it was bought");
                    prop_assert!(fees.total(Minor::new(1)) > all);
                }
                return Ok(());
            }
        };
        let got = costed.costs.amount;
        prop_assert_eq!(costed.exchange.sold, Minor::new(spent));
        prop_assert_eq!(Ok(costed.exchange.bought), rate.bought(Minor::new(spent), shift));
        prop_assert!(fees.total(got) <= costed.exchange.bought);
        prop_assert!(fees.total(Minor::new(got.units() + 1)) > costed.exchange.bought);
        prop_assert!(costed.charges <= costed.exchange.sold);
        if let Ok(other) = pay(spent + more) {
            prop_assert!(other.costs.amount >= got);
        }
    }
}
