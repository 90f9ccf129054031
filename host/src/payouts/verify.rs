//! Proving the payouts against the books: each is debited, settled and given back exactly as
//! its status says, each has its events without gaps, and none is forgotten.

use std::collections::BTreeMap;

use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row as _};

use crate::ledger::verify::{Fault, system_balances};

/// A query that finds what must not be, and what it means.
struct Check {
    means: &'static str,
    finds: &'static str,
}

/// Each query answers with ids; none is right.
const CHECKS: &[Check] = &[
    Check {
        means: "is in the ledger and nowhere else",
        finds: "SELECT j.ref_id FROM journals j LEFT JOIN payouts p ON p.id = j.ref_id \
                WHERE j.ref_type = 'Payout' AND p.id IS NULL",
    },
    Check {
        means: "is debited although its status holds no money, or the other way round",
        finds: "SELECT p.id FROM payouts p LEFT JOIN journals d \
                ON d.ref_id = p.id AND d.kind = 'payout_debit' \
                WHERE (p.status IN ('queued', 'processing', 'paid', 'paid_manual', 'reversed') \
                AND d.id IS NULL) \
                OR (p.status IN ('draft', 'awaiting_admin_review') AND d.id IS NOT NULL)",
    },
    Check {
        means: "was given back although its status says otherwise, or the other way round",
        finds: "SELECT p.id FROM payouts p JOIN journals d \
                ON d.ref_id = p.id AND d.kind = 'payout_debit' LEFT JOIN journals r \
                ON r.ref_id = p.id AND r.kind = 'payout_reversal' \
                WHERE (p.status IN ('failed', 'failed_manual', 'reversed', 'cancelled') \
                AND r.id IS NULL) \
                OR (p.status IN ('queued', 'processing', 'paid', 'paid_manual') \
                AND r.id IS NOT NULL)",
    },
    Check {
        means: "was given back without having been debited",
        finds: "SELECT r.ref_id FROM journals r LEFT JOIN journals d \
                ON d.ref_id = r.ref_id AND d.kind = 'payout_debit' \
                WHERE r.kind = 'payout_reversal' AND d.id IS NULL",
    },
    Check {
        means: "is settled although its status says otherwise, or the other way round",
        finds: "SELECT p.id FROM payouts p LEFT JOIN journals s \
                ON s.ref_id = p.id AND s.kind = 'payout_settlement' \
                WHERE (p.status IN ('paid', 'paid_manual', 'reversed') AND s.id IS NULL) \
                OR (p.status IN ('draft', 'awaiting_admin_review', 'queued', 'processing', \
                'failed', 'cancelled') AND s.id IS NOT NULL)",
    },
    Check {
        means: "was debited another amount than it says",
        finds: "SELECT p.id FROM payouts p JOIN journals d \
                ON d.ref_id = p.id AND d.kind = 'payout_debit' JOIN entries e \
                ON e.journal_id = d.id AND e.account_id = p.wallet_id \
                GROUP BY p.id, p.amount_minor, p.fee_minor, p.tax_minor, p.levy_minor \
                HAVING SUM(e.amount_minor) <> \
                0 - p.amount_minor - p.fee_minor - p.tax_minor - p.levy_minor",
    },
    Check {
        means: "was given back another amount than it was debited",
        finds: "SELECT j.ref_id FROM journals j JOIN entries e ON e.journal_id = j.id \
                WHERE j.ref_type = 'Payout' AND e.seq IS NOT NULL \
                AND j.kind IN ('payout_debit', 'payout_reversal') \
                GROUP BY j.ref_id HAVING COUNT(DISTINCT j.kind) = 2 AND SUM(e.amount_minor) <> 0",
    },
    Check {
        means: "has lost events, or has too many",
        finds: "SELECT p.id FROM payouts p LEFT JOIN events v ON v.object_id = p.id \
                GROUP BY p.id, p.version \
                HAVING COUNT(v.id) <> p.version OR MAX(v.sequence) <> p.version",
    },
    Check {
        means: "has two open attempts",
        finds: "SELECT payout_id FROM attempts WHERE state = 'open' \
                GROUP BY payout_id HAVING COUNT(*) > 1",
    },
    Check {
        means: "is processing without an open attempt, or has one although it ended",
        finds: "SELECT p.id FROM payouts p LEFT JOIN attempts a \
                ON a.payout_id = p.id AND a.state = 'open' \
                WHERE (p.status = 'processing' AND a.id IS NULL) \
                OR (p.status <> 'processing' AND a.id IS NOT NULL)",
    },
    Check {
        means: "is paid or failed by a rail without an attempt that says so",
        finds: "SELECT p.id FROM payouts p LEFT JOIN attempts a \
                ON a.payout_id = p.id AND a.state IN ('paid', 'refused') \
                LEFT JOIN journals d ON d.ref_id = p.id AND d.kind = 'payout_debit' \
                WHERE p.status IN ('paid', 'failed') AND a.id IS NULL AND d.id IS NOT NULL",
    },
    Check {
        means: "is waiting, and no dispatcher will look at it; or it ended, and one will",
        finds: "SELECT p.id FROM payouts p LEFT JOIN dispatches d ON d.payout_id = p.id \
                WHERE (p.status IN ('queued', 'processing') AND d.payout_id IS NULL) \
                OR (p.status NOT IN ('queued', 'processing') AND d.payout_id IS NOT NULL)",
    },
    Check {
        means: "is paid from a wallet of another merchant, environment or currency",
        finds: "SELECT p.id FROM payouts p LEFT JOIN wallets w ON w.id = p.wallet_id \
                WHERE w.id IS NULL OR w.merchant_id <> p.merchant_id OR w.env <> p.env \
                OR w.currency <> p.currency",
    },
    Check {
        means: "went over a route of the other environment",
        finds: "SELECT p.id FROM payouts p JOIN attempts a ON a.payout_id = p.id \
                JOIN routes r ON r.id = a.route_id WHERE r.env <> p.env",
    },
];

/// Checks every payout; answers how many there are. Beside a host that runs, `db` must be in
/// one snapshot ([`crate::db::Db::snapshot`]).
///
/// # Errors
/// The first fault that is found.
pub async fn verify(db: &mut AnyConnection) -> Result<u64, Fault> {
    for check in CHECKS {
        if let Some(row) = sqlx::query(check.finds).fetch_optional(&mut *db).await? {
            let id: String = row.try_get(0)?;
            return Err(Fault::Wrong(format!("payout {id} {}", check.means)));
        }
    }
    pending(db).await?;
    system_accounts(db).await?;
    let count: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM payouts").fetch_one(&mut *db).await?;
    Ok(count.unsigned_abs())
}

/// What a wallet says is on its way out is what its payouts under way add up to.
async fn pending(db: &mut AnyConnection) -> Result<(), Fault> {
    let sql = "SELECT w.id, w.pending_out_minor, CAST(COALESCE(SUM(p.amount_minor + p.fee_minor \
               + p.tax_minor + p.levy_minor), 0) AS BIGINT) AS out FROM wallets w \
               LEFT JOIN payouts p ON p.wallet_id = w.id AND p.status IN ('queued', 'processing') \
               GROUP BY w.id, w.pending_out_minor HAVING w.pending_out_minor <> \
               COALESCE(SUM(p.amount_minor + p.fee_minor + p.tax_minor + p.levy_minor), 0)";
    match sqlx::query(sql).fetch_optional(&mut *db).await? {
        None => Ok(()),
        Some(row) => {
            let wallet: String = row.try_get(0)?;
            let (says, out): (i64, i64) = (row.try_get(1)?, row.try_get(2)?);
            let fault = format!("wallet {wallet} says {says} is on its way out, its payouts {out}");
            Err(Fault::Wrong(fault))
        }
    }
}

/// The system accounts hold what payouts and movements of money add up to, and nothing
/// else: what is under way in clearing, what arrived in settlement, fees, tax and levy.
async fn system_accounts(db: &mut AnyConnection) -> Result<(), Fault> {
    const ACCOUNTS: [&str; 5] = ["clearing", "settlement", "fee_income", "tax", "levy"];
    let payouts = "SELECT env, currency, \
        CAST(SUM(CASE WHEN status IN ('queued', 'processing') \
        THEN amount_minor + fee_minor + tax_minor + levy_minor ELSE 0 END) AS BIGINT), \
        CAST(SUM(CASE WHEN status IN ('paid', 'paid_manual') THEN amount_minor ELSE 0 END) AS BIGINT), \
        CAST(SUM(CASE WHEN status IN ('paid', 'paid_manual') THEN fee_minor ELSE 0 END) AS BIGINT), \
        CAST(SUM(CASE WHEN status IN ('paid', 'paid_manual') THEN tax_minor ELSE 0 END) AS BIGINT), \
        CAST(SUM(CASE WHEN status IN ('paid', 'paid_manual') THEN levy_minor ELSE 0 END) AS BIGINT) \
        FROM payouts GROUP BY env, currency";
    let mut expected: BTreeMap<String, i64> = BTreeMap::new();
    let account = |row: &AnyRow, name: &str| -> Result<String, sqlx::Error> {
        let (env, currency): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        Ok(format!("system/{env}/{currency}/{name}"))
    };
    for row in sqlx::query(payouts).fetch_all(&mut *db).await? {
        for (column, name) in (2..).zip(ACCOUNTS) {
            expected.insert(account(&row, name)?, row.try_get(column)?);
        }
    }
    let movements = "SELECT j.env, e.currency, CAST(SUM(e.amount_minor) AS BIGINT) \
        FROM journals j JOIN entries e ON e.journal_id = j.id \
        WHERE j.kind = 'movement' AND e.seq IS NOT NULL GROUP BY j.env, e.currency";
    for row in sqlx::query(movements).fetch_all(&mut *db).await? {
        let moved: i64 = row.try_get(2)?;
        *expected.entry(account(&row, "settlement")?).or_default() -= moved;
    }
    let mut held = system_balances(db).await?;
    for (account, due) in expected {
        let holds = held.remove(&account).unwrap_or(0);
        if holds != due {
            let fault = format!("{account} holds {holds}, payouts and movements add up to {due}");
            return Err(Fault::Wrong(fault));
        }
    }
    match held.into_iter().find(|(_, holds)| *holds != 0) {
        None => Ok(()),
        Some((account, holds)) => {
            Err(Fault::Wrong(format!("{account} holds {holds}, and nothing explains it")))
        }
    }
}
