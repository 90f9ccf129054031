//! Proving the payouts against everything else that is stored about them.
//!
//! A payout's events are played again over the table of what can happen: they say in which
//! status it is, which journals there must be, and line by line what stands in them. Its stamps,
//! attempts, calls, work, replies and counters follow from that too, and each is compared.

mod attempts;
mod cases;
mod counters;
mod funding;
mod replay;
mod replies;

use std::collections::{BTreeSet, HashMap};

use futures::TryStreamExt as _;
use sqlx::{AnyConnection, Row as _};

use crate::clock::Moment;
use crate::conversions::Conversion;
use crate::db::Engine;
use crate::ledger::verify::{Check, Faults, Fresh, StoredJournal, These, Walk, fill_in};
use crate::rails::RecipientFields;
use crate::recipients::verify::has_account;
use crate::rules::sql::{TARIFF, tariff};
use crate::rules::tariff::Tariff;

use super::event_body;
use super::model::{Costs, Payout};
use super::sql;

use counters::Counted;
use replay::StoredEvent;
use replies::Replies;

/// Payouts that are looked at together.
const PORTION: usize = 500;
/// Payouts whose keys are held together: some 100 MB. No index leads to a payout's key: each time
/// all keys are looked at.
const KEY_RANGE: usize = 500_000;

/// What one query finds, of everything that is looked at. Everything else is compared payout by
/// payout, or by the queries below.
const CHECKS: &[Check] = &[
    Check {
        name: "journal-without-payout",
        means: "is in the ledger and nowhere else",
        finds: "SELECT j.ref_id FROM journals j LEFT JOIN payouts p ON p.id = j.ref_id \
                WHERE j.ref_type = 'Payout' AND p.id IS NULL AND {fresh journals j}",
    },
    Check {
        name: "reply",
        means: "was made with two idempotency keys",
        finds: "SELECT k.resource_id FROM idempotency_keys k WHERE k.resource_id <> '' \
                AND {fresh idempotency_keys k} GROUP BY k.resource_id HAVING COUNT(*) > 1",
    },
    Check {
        name: "conversion-without-payout",
        means: "was made for a payout that there is not",
        finds: "SELECT c.id FROM conversions c LEFT JOIN payouts p ON p.id = c.payout_id \
                WHERE c.payout_id IS NOT NULL AND p.id IS NULL AND {fresh conversions c}",
    },
    Check {
        name: "event-without-payout",
        means: "has events and is no payout",
        finds: "SELECT DISTINCT e.object_id FROM events e LEFT JOIN payouts p \
                ON p.id = e.object_id WHERE e.object_type = 'payout' AND p.id IS NULL \
                AND {fresh events e}",
    },
    Check {
        name: "attempt-without-payout",
        means: "has attempts and is no payout",
        finds: "SELECT DISTINCT a.transfer_id FROM attempts a LEFT JOIN payouts p \
                ON p.id = a.transfer_id WHERE p.id IS NULL AND {fresh attempts a}",
    },
    Check {
        name: "work-without-payout",
        means: "is to be carried out and is no payout",
        finds: "SELECT t.id FROM transfers t LEFT JOIN payouts p ON p.id = t.id \
                WHERE p.id IS NULL",
    },
    Check {
        name: "payout-decision",
        means: "is held or let go otherwise than was decided",
        finds: "SELECT d.payout_id FROM decisions d LEFT JOIN payouts p ON p.id = d.payout_id \
                LEFT JOIN events e ON e.object_id = d.payout_id AND e.sequence = 1 \
                WHERE {fresh decisions d} AND ((d.action = 'block' AND p.id IS NOT NULL) \
                OR (d.action = 'allow' AND (p.id IS NULL OR e.type = 'payout.held')) \
                OR (d.action = 'hold' AND p.id IS NOT NULL AND (e.type <> 'payout.held' \
                OR (e.id IS NULL AND d.created_at > COALESCE((SELECT CAST(value AS BIGINT) \
                FROM meta WHERE key = 'swept/events'), 0)))))",
    },
    Check {
        name: "decision-pack",
        means: "was decided by a pack that is not there",
        finds: "SELECT d.payout_id FROM decisions d LEFT JOIN rule_packs r \
                ON r.name = d.pack AND r.version = d.version AND r.digest = d.digest \
                WHERE d.digest IS NOT NULL AND r.id IS NULL AND {fresh decisions d}",
    },
    // Whatever is under way has work: that is asked of each.
    Check {
        name: "wallet-pending",
        means: "is a wallet whose payouts under way come to another sum than it says",
        finds: "SELECT u.id FROM (SELECT w.id, w.pending_out_minor AS amount \
                FROM wallet_balances w UNION ALL SELECT p.wallet_id, \
                -(p.amount_minor + p.fee_minor + p.tax_minor + p.levy_minor) \
                FROM transfers t CROSS JOIN payouts p WHERE p.id = t.id \
                AND p.status IN ('queued', 'processing')) u GROUP BY u.id HAVING SUM(u.amount) <> 0",
    },
];

/// What one query finds of payouts that are looked at together.
const CHECKS_OF_THESE: &[Check] = &[
    Check {
        name: "payout-wallet",
        means: "is paid from a wallet of another merchant, environment or currency",
        finds: "SELECT p.id FROM payouts p LEFT JOIN wallets w ON w.id = p.wallet_id \
                WHERE {these p.id} AND (w.id IS NULL OR w.merchant_id <> p.merchant_id \
                OR w.env <> p.env OR w.currency <> p.currency)",
    },
    Check {
        name: "payout-work",
        means: "is under way, and nobody will look at it",
        finds: "SELECT p.id FROM payouts p LEFT JOIN transfers t ON t.id = p.id \
                WHERE {these p.id} AND p.status IN ('queued', 'processing') AND t.id IS NULL",
    },
    Check {
        name: "payout-clear",
        means: "is a payout with what is said of its sender or recipient in clear",
        finds: "SELECT id FROM payouts WHERE {these id} AND (sender NOT LIKE 's1.%' \
                OR resolution NOT LIKE 's1.%')",
    },
    Check {
        name: "payout-marks",
        means: "is looked for, or not looked for, otherwise than its status says",
        finds: "SELECT id FROM payouts WHERE {these id} AND (is_waiting <> CASE WHEN status IN \
                ('draft', 'awaiting_admin_review') THEN 1 ELSE 0 END \
                OR holds_batch <> CASE WHEN in_batch IS NOT NULL AND status IN ('draft', \
                'awaiting_admin_review', 'queued', 'processing') THEN 1 ELSE 0 END \
                OR COALESCE(unusual, '') <> CASE WHEN status IN ('queued', 'processing', 'paid') \
                THEN '' ELSE status END)",
    },
    Check {
        name: "payout-maker",
        means: "was made with a key of another merchant or environment",
        finds: "SELECT p.id FROM payouts p LEFT JOIN api_keys k ON k.id = p.maker \
                WHERE {these p.id} AND (k.id IS NULL OR k.merchant_id <> p.merchant_id \
                OR k.env <> p.env)",
    },
    Check {
        name: "payout-beneficiary",
        means: "goes to a recipient of another merchant, environment or currency",
        finds: "SELECT p.id FROM payouts p LEFT JOIN beneficiaries b ON b.id = p.beneficiary_id \
                WHERE {these p.id} AND (b.id IS NULL OR b.merchant_id <> p.merchant_id \
                OR b.env <> p.env OR b.currency <> p.currency OR (b.deleted_at IS NULL \
                AND b.identity <> p.recipient_identity) OR (b.deleted_at IS NOT NULL \
                AND b.deleted_identity <> p.recipient_identity))",
    },
    Check {
        name: "payout-route",
        means: "went over a route of another environment, currency, method or rail, or over none",
        finds: "SELECT p.id FROM payouts p JOIN attempts a ON a.transfer_id = p.id \
                LEFT JOIN route_configurations c ON c.id = a.configuration \
                LEFT JOIN routes r ON r.id = c.route_id WHERE {these p.id} \
                AND (r.id IS NULL OR r.env <> p.env OR r.currency <> p.currency \
                OR r.method <> p.method OR r.rail <> a.rail OR r.name <> a.route)",
    },
    Check {
        name: "payout-marked",
        means: "was marked by nobody",
        finds: "SELECT p.id FROM payouts p WHERE {these p.id} \
                AND p.status IN ('paid_manual', 'failed_manual') \
                AND NOT EXISTS (SELECT 1 FROM audit a WHERE a.subject_id = p.id \
                AND a.action IN ('payout.mark_paid', 'payout.mark_failed') \
                AND a.after LIKE '%\"evidence\":\"%') \
                AND NOT EXISTS (SELECT 1 FROM audit a WHERE a.action = 'case.resolve' \
                AND a.before LIKE '%\"' || p.id || '\"%')",
    },
    Check {
        name: "bank-amount",
        means: "was paid another amount, or more than once, by the sandbox's bank",
        finds: "SELECT p.id FROM payouts p JOIN attempts a ON a.transfer_id = p.id \
                JOIN simulator_transfers s ON s.rail = a.rail \
                AND s.reference = a.rail_reference WHERE {these p.id} \
                AND p.env = 'test' AND (s.transfer NOT LIKE '%\"amount_minor\":' \
                || CAST(p.amount_minor AS TEXT) || ',%' OR (s.transfer NOT LIKE \
                '%\"executed\":0%' AND s.transfer NOT LIKE '%\"executed\":1%'))",
    },
    FILE_PAYMENTS,
    Check {
        name: "file-left-out",
        means: "is on its way in a file that left, or ended, without it",
        finds: "SELECT a.transfer_id FROM attempts a JOIN payment_files f ON f.id = a.file_id \
                WHERE {these a.transfer_id} AND a.state IN ('open', 'paid') \
                AND (f.state = 'empty' OR (f.state IN \
                ('assembled', 'sending', 'unclear', 'delivered', 'acknowledged') \
                AND a.network_id IS NULL))",
    },
    Check {
        name: "file-settled",
        means: "counts as settled in a file that was not acknowledged",
        finds: "SELECT a.transfer_id FROM attempts a LEFT JOIN payment_files f \
                ON f.id = a.file_id WHERE {these a.transfer_id} AND a.state = 'paid' \
                AND a.code = 'settled' AND (f.id IS NULL OR f.state <> 'acknowledged')",
    },
];

/// `{files column}` stands for the files that are looked at.
const FILE_PAYMENTS: Check = Check {
    name: "file-payments",
    means: "is a file whose payments come to another number or sum than it says",
    finds: "SELECT f.id FROM payment_files f WHERE f.state IN ('assembled', 'sending', 'unclear', \
            'delivered', 'acknowledged') AND {files f.id} \
            AND (f.entries, f.amount_minor) <> (SELECT COUNT(*), \
            COALESCE(SUM(p.amount_minor), 0) FROM attempts a JOIN payouts p \
            ON p.id = a.transfer_id WHERE a.file_id = f.id AND a.network_id IS NOT NULL)",
};

/// Files that have not ended, and those that no payment is in.
const FILES_BY_THEMSELVES: &str = "(SELECT u.id FROM payment_files u WHERE u.state NOT IN \
    ('acknowledged', 'refused', 'empty') \
    OR NOT EXISTS (SELECT 1 FROM attempts n WHERE n.file_id = u.id))";

/// A query with every `{files column}` filled in: the column names a file that these payouts are in.
fn with_files(sql: &str, these: &These) -> String {
    fill_in(sql, "{files ", |column| match these.are_all() {
        true => these.named_by(column),
        false => {
            let own = these.named_by("n.transfer_id");
            format!("{column} IN (SELECT n.file_id FROM attempts n WHERE {own})")
        }
    })
}

async fn check_these(
    db: &mut AnyConnection,
    these: &These,
    faults: &mut Faults,
) -> Result<(), sqlx::Error> {
    for check in CHECKS_OF_THESE {
        let sql = with_files(&these.filled_in(check.finds), these);
        check.run_as(&mut *db, (sql, these.parameters()), faults).await?;
    }
    saved_accounts(db, these, faults).await
}

/// Payouts whose recipient is saved otherwise than they went to it: they may have named it
/// otherwise.
const SAVED_OTHERWISE: &str = "SELECT p.id, p.recipient, b.recipient FROM payouts p \
    JOIN beneficiaries b ON b.id = p.beneficiary_id \
    WHERE {these p.id} AND b.recipient <> p.recipient";

/// The account of a saved recipient is the one that its payouts went to.
async fn saved_accounts(
    db: &mut AnyConnection,
    these: &These,
    faults: &mut Faults,
) -> Result<(), sqlx::Error> {
    let mut rows = these.query(SAVED_OTHERWISE).fetch(db);
    while let Some(row) = rows.try_next().await? {
        let id: String = row.try_get(0)?;
        let (paid, saved): (String, String) = (row.try_get(1)?, row.try_get(2)?);
        let (paid, saved) = (RecipientFields::from_json(&paid), RecipientFields::from_json(&saved));
        if !has_account(&paid, saved.account()) {
            let what = format!("payout {id} goes to a recipient who is saved with another account");
            faults.add("payout-beneficiary", what);
        }
    }
    Ok(())
}

/// What is compared, and when.
#[derive(Clone, Copy)]
pub struct Looked<'a> {
    /// The database's.
    pub engine: Engine,
    /// By the clock of whoever looks.
    pub now: Moment,
    /// The batches that are looked at.
    pub fresh: &'a Fresh,
    /// Tables of which old rows are swept away, each with the instant before which they may be.
    pub swept: &'a HashMap<String, Moment>,
}

impl Looked<'_> {
    /// Whether rows of a table that belong to a payout may have been swept away.
    fn is_swept(&self, table: &str, payout: &Payout) -> bool {
        self.swept.get(table).is_some_and(|before| payout.created_at < *before)
    }
}

/// Checks every payout; answers how many there are. `progress` hears how many
/// have been looked at. Beside a host that runs, `db` must be in one snapshot
/// ([`crate::db::Db::snapshot`]).
///
/// # Errors
/// The database cannot be read.
pub async fn verify(
    db: &mut AnyConnection,
    looked: Looked<'_>,
    (faults, progress): (&mut Faults, &mut (dyn FnMut(u64) + Send)),
) -> Result<u64, sqlx::Error> {
    for check in CHECKS {
        check.run(db, looked.fresh, faults).await?;
    }
    if looked.fresh.is_all() {
        check_these(db, &These::all(looked.engine), faults).await?;
    } else {
        let by_themselves = |column: &str| format!("{column} IN {FILES_BY_THEMSELVES}");
        let sql = fill_in(FILE_PAYMENTS.finds, "{files ", by_themselves);
        FILE_PAYMENTS.run_as(&mut *db, (sql, &[]), faults).await?;
    }
    let mut replies = Replies::of_so_many(KEY_RANGE);
    let mut counted = match looked.fresh.is_all() {
        true => Counted::of(db, looked.now).await?,
        // Of a part nothing can be counted.
        false => Counted::default(),
    };
    let (scope, of) = ((looked.engine, looked.fresh), ("payouts", TOUCHED));
    let (mut walk, mut count) = (Walk::begin(db, scope, of, PORTION).await?, 0);
    while let Some(these) = walk.next(db).await? {
        let mut portion = Portion::read(db, looked, these).await?;
        if !looked.fresh.is_all() {
            check_these(db, &portion.these, faults).await?;
        }
        if let (Some(first), Some(last)) = (portion.made.first(), portion.made.last()) {
            replies.load(db, looked.fresh, (first, last)).await?;
        }
        for payout in &portion.payouts {
            let id = payout.id.as_str();
            let mut told = portion.events.remove(id).unwrap_or_default();
            let booked = portion.booked.get(id).map_or(&[][..], Vec::as_slice);
            check_price(payout, portion.tariffs.get(&payout.tariff), faults);
            // What was made before the anchor has its key from then.
            let is_made = portion.made.contains(id);
            let answered = if is_made { replies.check_key(payout, faults) } else { None };
            count += 1;
            let first = told.first().map(|first| (first.sequence, first.name.as_str()));
            if event_body::went_at_once(payout, first) {
                told.insert(0, StoredEvent::first_of(payout));
            }
            let has_first = told.first().is_some_and(|first| first.sequence == 1);
            let told = told.as_slice();
            let has_all = i64::try_from(told.len()) == Ok(payout.version);
            // Where months go as a whole, a later one may go before an earlier one that is kept.
            let may_have_gaps = looked.is_swept("all_events", payout);
            let is_whole = has_first && (has_all || !may_have_gaps);
            if looked.is_swept("events", payout) && !is_whole {
                continue;
            }
            let effects = replay::check(payout, told, booked, faults);
            funding::check(payout, (portion.conversions.get(id), booked), faults);
            counted.add(payout, &effects);
            if !(looked.is_swept("rail_calls", payout) && payout.completed_at.is_some()) {
                attempts::check(payout, &portion.transfers, (told, looked.now), faults);
            }
            if let Some(answered) = answered {
                answered.check(payout, told, faults);
            }
        }
        progress(count);
    }
    if looked.fresh.is_all() {
        counted.compare(db, faults).await?;
    }
    cases::verify(db, looked, faults).await?;
    Ok(count)
}

/// Every payout of which something is fresh, that is under way, or that waits for somebody.
const TOUCHED: &str = "SELECT p.id FROM payouts p WHERE {fresh payouts p} \
    UNION SELECT e.object_id FROM events e WHERE e.object_type = 'payout' AND {fresh events e} \
    UNION SELECT a.transfer_id FROM attempts a WHERE {fresh attempts a} \
    UNION SELECT c.transfer_id FROM rail_calls c WHERE {fresh rail_calls c} \
    UNION SELECT j.ref_id FROM journals j WHERE j.ref_type = 'Payout' AND {fresh journals j} \
    UNION SELECT w.id FROM payouts w WHERE w.is_waiting = 1 \
    UNION SELECT t.id FROM transfers t";

/// Payouts and all that is stored about them.
struct Portion {
    these: These,
    payouts: Vec<Payout>,
    tariffs: HashMap<String, Tariff>,
    /// Those that were made in one of the batches that are looked at.
    made: BTreeSet<String>,
    events: HashMap<String, Vec<StoredEvent>>,
    booked: HashMap<String, Vec<StoredJournal>>,
    transfers: attempts::Transfers,
    conversions: HashMap<String, Conversion>,
}

impl Portion {
    async fn read(
        db: &mut AnyConnection,
        looked: Looked<'_>,
        these: These,
    ) -> Result<Self, sqlx::Error> {
        let query = these.query(&format!(
            "SELECT p.*, {TARIFF} FROM payouts p LEFT JOIN tariffs t ON t.id = p.tariff \
             WHERE {{these p.id}} ORDER BY p.id"
        ));
        let rows = query.fetch_all(&mut *db).await?;
        let payouts: Vec<Payout> = rows.iter().map(sql::payout).collect::<Result<_, _>>()?;
        let (mut made, mut tariffs) = (BTreeSet::new(), HashMap::new());
        for (row, payout) in rows.iter().zip(&payouts) {
            if !tariffs.contains_key(&payout.tariff)
                // What cannot be read is told as if it were gone.
                && let Ok(Some(tariff)) = tariff(row)
            {
                tariffs.insert(payout.tariff.clone(), tariff);
            }
            if looked.fresh.contains(row.try_get("batch_id")?) {
                made.insert(payout.id.to_string());
            }
        }
        Ok(Self {
            events: replay::events(db, &these).await?,
            booked: replay::booked(db, &these).await?,
            transfers: attempts::Transfers::read(db, &these).await?,
            conversions: funding::conversions(db, &these).await?,
            these,
            payouts,
            tariffs,
            made,
        })
    }
}

/// The price, line by line, comes to the fee, the tax and the levy.
fn check_price(payout: &Payout, tariff: Option<&Tariff>, faults: &mut Faults) {
    let Some(tariff) = tariff.filter(|tariff| tariff.is_genuine()) else {
        let what = format!("payout {} has a tariff that was changed or is gone", payout.id);
        return faults.add("payout-price", what);
    };
    let costs = Costs::of(payout.costs.amount, tariff, &payout.charges);
    if tariff.lines.len() != payout.charges.len() || costs.ok() != Some(payout.costs) {
        let what = format!("payout {} costs something else than its price says", payout.id);
        faults.add("payout-price", what);
    }
}
