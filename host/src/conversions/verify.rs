//! Proving the conversions against the ledger, and what is counted of them.

use std::collections::BTreeMap;

use futures::TryStreamExt as _;
use sqlx::{AnyConnection, AssertSqlSafe, Row as _};

use crate::fx::{Exchange, position};
use crate::ledger::verify::{Check, Faults};

use super::sql::{COLUMNS, conversion};

/// Each query answers with ids; none is right.
const CHECKS: &[Check] = &[
    Check {
        name: "journal-without-conversion",
        means: "is in the ledger and no conversion",
        finds: "SELECT j.ref_id FROM journals j LEFT JOIN conversions c ON c.id = j.ref_id \
                WHERE j.ref_type = 'Conversion' AND c.id IS NULL",
    },
    Check {
        name: "conversion-debit",
        means: "did not debit its wallet by what it says",
        finds: "SELECT c.id FROM conversions c LEFT JOIN (SELECT j.ref_id, e.wallet_id, \
                e.amount_minor FROM journals j JOIN entries e ON e.journal_id = j.id \
                WHERE j.kind = 'conversion_debit') d ON d.ref_id = c.id \
                AND d.wallet_id = c.from_wallet_id AND d.amount_minor = -c.from_amount_minor \
                WHERE d.ref_id IS NULL",
    },
    Check {
        name: "conversion-credit",
        means: "did not credit its wallet by what it says",
        finds: "SELECT c.id FROM conversions c LEFT JOIN (SELECT j.ref_id, e.wallet_id, \
                e.amount_minor FROM journals j JOIN entries e ON e.journal_id = j.id \
                WHERE j.kind = 'conversion_credit') d ON d.ref_id = c.id \
                AND d.wallet_id = c.to_wallet_id AND d.amount_minor = c.to_amount_minor \
                WHERE d.ref_id IS NULL",
    },
    Check {
        name: "conversion-wallets",
        means: "is between wallets of somebody else, or of other currencies",
        finds: "SELECT c.id FROM conversions c LEFT JOIN wallets f ON f.id = c.from_wallet_id \
                AND f.merchant_id = c.merchant_id AND f.env = c.env \
                AND f.currency = c.from_currency LEFT JOIN wallets t ON t.id = c.to_wallet_id \
                AND t.merchant_id = c.merchant_id AND t.env = c.env \
                AND t.currency = c.to_currency WHERE f.id IS NULL OR t.id IS NULL",
    },
    Check {
        name: "conversion-position",
        means: "moves an account of positions, and is about no conversion",
        finds: "SELECT id FROM journals WHERE own_lines LIKE '%\"fx_position\"%' \
                AND ref_type <> 'Conversion'",
    },
    Check {
        name: "conversion-untold",
        means: "was told to nobody",
        finds: "SELECT c.id FROM conversions c LEFT JOIN events v ON v.object_id = c.id \
                AND v.type IN ('conversion.completed', \
                'wallet_auto_converted') WHERE v.id IS NULL AND c.created_at > \
                COALESCE((SELECT CAST(value AS BIGINT) FROM meta WHERE key = 'swept/events'), 0)",
    },
];

/// Proves every conversion.
///
/// # Errors
/// The database cannot be read.
pub async fn verify(db: &mut AnyConnection, faults: &mut Faults) -> Result<(), sqlx::Error> {
    for check in CHECKS {
        check.run(db, faults).await?;
    }
    let mut counted: BTreeMap<String, (i64, i128)> = BTreeMap::new();
    let mut rows =
        sqlx::query(AssertSqlSafe(format!("SELECT {COLUMNS} FROM conversions"))).fetch(&mut *db);
    while let Some(row) = rows.try_next().await? {
        let found = conversion(&row)?;
        let Exchange { pair, sold, bought, rate } = &found.exchange;
        let is_right = match found.is_target_basis {
            false => rate.bought(*sold, found.shift) == Ok(*bought),
            true => rate.sold(*bought, found.shift) == Ok(*sold),
        };
        if !is_right {
            let what = format!("conversion {} is not what its rate makes of it", found.id);
            faults.add("conversion-rate", what);
        }
        let [of_sold, of_bought] = position::exchanged(*pair);
        for (key, change) in [
            (position::held(pair.env, pair.from), i128::from(sold.units())),
            (position::held(pair.env, pair.to), -i128::from(bought.units())),
            (of_sold, i128::from(sold.units())),
            (of_bought, i128::from(bought.units())),
        ] {
            let (count, sum) = counted.entry(key).or_default();
            (*count, *sum) = (*count + 1, *sum + change);
        }
    }
    drop(rows);
    counters(db, counted, faults).await
}

/// What is counted is what there was.
async fn counters(
    db: &mut AnyConnection,
    mut counted: BTreeMap<String, (i64, i128)>,
    faults: &mut Faults,
) -> Result<(), sqlx::Error> {
    let sql = "SELECT key, count, sum_minor, expires_at FROM counters WHERE key LIKE 'fx/%'";
    for row in sqlx::query(sql).fetch_all(db).await? {
        let (key, count): (String, i64) = (row.try_get(0)?, row.try_get(1)?);
        let (sum, expires_at): (i64, i64) = (row.try_get(2)?, row.try_get(3)?);
        let there_was = counted.remove(&key).map(|(count, sum)| {
            // What is known of a pair goes no further than a number can.
            (count, i64::try_from(sum).unwrap_or(i64::MAX))
        });
        if there_was != Some((count, sum)) || expires_at != position::FOR_EVER {
            faults.add("conversion-counted", format!("{key} is not what was converted"));
        }
    }
    for key in counted.into_keys() {
        faults.add("conversion-counted", format!("{key} is not counted"));
    }
    Ok(())
}
