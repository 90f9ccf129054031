//! Proving the payouts against the books: each is debited, settled and given back exactly as
//! its status says, each has its events without gaps, and none is forgotten.

use sqlx::AnyConnection;

use crate::ledger::verify::{Check, Faults};

/// Each query answers with ids; none is right.
const CHECKS: &[Check] = &[
    Check {
        name: "journal-without-payout",
        means: "is in the ledger and nowhere else",
        finds: "SELECT j.ref_id FROM journals j LEFT JOIN payouts p ON p.id = j.ref_id \
                WHERE j.ref_type = 'Payout' AND p.id IS NULL",
    },
    Check {
        name: "payout-debit",
        means: "is debited although its status holds no money, or the other way round",
        finds: "SELECT p.id FROM payouts p LEFT JOIN journals d \
                ON d.ref_id = p.id AND d.kind = 'payout_debit' \
                WHERE (p.status IN ('queued', 'processing', 'paid', 'paid_manual', 'reversed') \
                AND d.id IS NULL) \
                OR (p.status IN ('draft', 'awaiting_admin_review') AND d.id IS NOT NULL)",
    },
    Check {
        name: "payout-given-back",
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
        name: "payout-given-back",
        means: "was given back without having been debited",
        finds: "SELECT r.ref_id FROM journals r LEFT JOIN journals d \
                ON d.ref_id = r.ref_id AND d.kind = 'payout_debit' \
                WHERE r.kind = 'payout_reversal' AND d.id IS NULL",
    },
    Check {
        name: "payout-settled",
        means: "is settled although its status says otherwise, or the other way round",
        finds: "SELECT p.id FROM payouts p LEFT JOIN journals s \
                ON s.ref_id = p.id AND s.kind = 'payout_settlement' \
                WHERE (p.status IN ('paid', 'paid_manual', 'reversed') AND s.id IS NULL) \
                OR (p.status IN ('draft', 'awaiting_admin_review', 'queued', 'processing', \
                'failed', 'cancelled') AND s.id IS NOT NULL)",
    },
    Check {
        name: "payout-debit-amount",
        means: "was debited another amount than it says",
        finds: "SELECT p.id FROM payouts p JOIN journals d \
                ON d.ref_id = p.id AND d.kind = 'payout_debit' JOIN entries e \
                ON e.journal_id = d.id AND e.account_id = p.wallet_id \
                GROUP BY p.id, p.amount_minor, p.fee_minor, p.tax_minor, p.levy_minor \
                HAVING SUM(e.amount_minor) <> \
                0 - p.amount_minor - p.fee_minor - p.tax_minor - p.levy_minor",
    },
    Check {
        name: "payout-given-back-amount",
        means: "was given back another amount than it was debited",
        finds: "SELECT j.ref_id FROM journals j JOIN entries e ON e.journal_id = j.id \
                WHERE j.ref_type = 'Payout' AND e.seq IS NOT NULL \
                AND j.kind IN ('payout_debit', 'payout_reversal') \
                GROUP BY j.ref_id HAVING COUNT(DISTINCT j.kind) = 2 AND SUM(e.amount_minor) <> 0",
    },
    Check {
        name: "payout-events",
        means: "has lost events, or has too many",
        finds: "SELECT p.id FROM payouts p LEFT JOIN events v ON v.object_id = p.id \
                GROUP BY p.id, p.version \
                HAVING COUNT(v.id) <> p.version OR MAX(v.sequence) <> p.version",
    },
    Check {
        name: "attempts-open",
        means: "has two open attempts",
        finds: "SELECT transfer_id FROM attempts WHERE state = 'open' \
                GROUP BY transfer_id HAVING COUNT(*) > 1",
    },
    Check {
        name: "payout-attempts",
        means: "is processing without an open attempt, or has one although it ended",
        finds: "SELECT p.id FROM payouts p LEFT JOIN attempts a \
                ON a.transfer_id = p.id AND a.state = 'open' \
                WHERE (p.status = 'processing' AND a.id IS NULL) \
                OR (p.status <> 'processing' AND a.id IS NOT NULL)",
    },
    Check {
        name: "payout-attempts",
        means: "is paid or failed by a rail without an attempt that says so",
        finds: "SELECT p.id FROM payouts p LEFT JOIN attempts a \
                ON a.transfer_id = p.id AND a.state IN ('paid', 'refused') \
                LEFT JOIN journals d ON d.ref_id = p.id AND d.kind = 'payout_debit' \
                WHERE p.status IN ('paid', 'failed') AND a.id IS NULL AND d.id IS NOT NULL",
    },
    Check {
        name: "payout-work",
        means: "is waiting, and no dispatcher will look at it; or it ended, and one will",
        finds: "SELECT p.id FROM payouts p LEFT JOIN transfers d ON d.id = p.id \
                WHERE (p.status IN ('queued', 'processing') AND d.id IS NULL) \
                OR (p.status NOT IN ('queued', 'processing') AND d.id IS NOT NULL)",
    },
    Check {
        name: "payout-wallet",
        means: "is paid from a wallet of another merchant, environment or currency",
        finds: "SELECT p.id FROM payouts p LEFT JOIN wallets w ON w.id = p.wallet_id \
                WHERE w.id IS NULL OR w.merchant_id <> p.merchant_id OR w.env <> p.env \
                OR w.currency <> p.currency",
    },
    Check {
        name: "payout-route",
        means: "went over a route of the other environment",
        finds: "SELECT p.id FROM payouts p JOIN attempts a ON a.transfer_id = p.id \
                JOIN routes r ON r.id = a.route_id WHERE r.env <> p.env",
    },
];

/// Checks every payout; answers how many there are. Beside a host that runs, `db` must be in
/// one snapshot ([`crate::db::Db::snapshot`]).
///
/// # Errors
/// The database cannot be read.
pub async fn verify(db: &mut AnyConnection, faults: &mut Faults) -> Result<u64, sqlx::Error> {
    for check in CHECKS {
        check.run(db, faults).await?;
    }
    let count: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM payouts").fetch_one(&mut *db).await?;
    Ok(count.unsigned_abs())
}
