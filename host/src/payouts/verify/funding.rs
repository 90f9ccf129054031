//! What was bought for payouts out of another currency.

use std::collections::HashMap;

use futures::TryStreamExt as _;
use sqlx::AnyConnection;

use crate::conversions::{Conversion, sql};
use crate::ledger::PAYOUT_DEBIT;
use crate::ledger::verify::{Faults, StoredJournal, These};

use super::super::across::Funded;
use super::super::model::Payout;

/// The conversions for payouts.
pub(super) async fn conversions(
    db: &mut AnyConnection,
    these: &These,
) -> Result<HashMap<String, Conversion>, sqlx::Error> {
    let sql =
        format!("SELECT {} FROM conversions WHERE {}", sql::COLUMNS, these.named_by("payout_id"));
    let mut found = HashMap::new();
    let mut rows = these.query(&sql).fetch(db);
    while let Some(row) = rows.try_next().await? {
        let conversion = sql::conversion(&row)?;
        if let Some(id) = &conversion.payout_id {
            found.insert(id.to_string(), conversion);
        }
    }
    Ok(found)
}

/// Whether a payout has bought what it says, once and no sooner than its wallet was debited.
pub(super) fn check(
    payout: &Payout,
    (conversion, booked): (Option<&Conversion>, &[StoredJournal]),
    faults: &mut Faults,
) {
    let id = &payout.id;
    let was_debited = booked.iter().any(|journal| journal.kind == PAYOUT_DEBIT);
    let is_due = payout.funding.is_some() && was_debited;
    if conversion.is_some() != is_due || payout.funded.is_some() != is_due {
        faults
            .add("payout-funding", format!("payout {id} has something bought, or nothing, for it"));
    }
    if let Some(conversion) = conversion
        && !is_as_said(payout, conversion)
    {
        faults.add("payout-funding", format!("payout {id} was not paid for as it says"));
    }
}

fn is_as_said(payout: &Payout, conversion: &Conversion) -> bool {
    let Some(funding) = &payout.funding else { return false };
    let (exchange, Ok(total)) = (&conversion.exchange, payout.costs.total()) else { return false };
    let sold = |amount| exchange.rate.sold(amount, funding.shift);
    let charges = sold(total).and_then(|all| all.minus(sold(payout.costs.amount)?));
    let Ok(charges) = charges else { return false };
    let is_covered = match conversion.is_target_basis {
        true => exchange.bought == total,
        false => exchange.bought >= total,
    };
    payout.funded == Some(Funded::by(&conversion.id, exchange, charges))
        && conversion.from_wallet == funding.wallet_id
        && conversion.to_wallet == payout.wallet_id
        && conversion.shift == funding.shift
        && (exchange.pair.from, exchange.pair.to) == (funding.currency, payout.currency)
        && (&conversion.merchant_id, exchange.pair.env) == (&payout.merchant_id, payout.env)
        && is_covered
}
