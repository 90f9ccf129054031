//! Statements about settlement accounts, and adjusting entries.

use std::time::Duration;

use jiff::tz::TimeZone;
use sqlx::any::AnyRow;
use sqlx::{AnyPool, AssertSqlSafe, Row as _};

use crate::clock::Moment;
use crate::config::limits;
use crate::db::bulk::{Table, int, text};
use crate::db::cell::Kind::Text;
use crate::db::lookup::Lookup;
use crate::env::Env;
use crate::id::{AdjustmentId, Id as _, JournalId, PayoutId};
use crate::ledger::{HAS_OWN_ID, own_lines_of};
use crate::money::{Currency, Minor};

use super::{Adjustment, Contra, SettlementEntry};

/// Adjusting entries. Whoever inserts one has looked under lock whether there is one of its key.
pub static ADJUSTMENTS: Table<Adjustment> = Table {
    name: "settlement_adjustments",
    fixed: &[
        text("id", |it| it.id.as_str().into()),
        text("unique_key", |it| it.unique_key().into()),
        text("difference", |it| it.difference().into()),
        int("nth", |it| it.nth.into()),
        text("env", |it| it.env.as_str().into()),
        text("route", |it| (&it.route).into()),
        text("currency", |it| it.currency.as_str().into()),
        int("amount_minor", |it| it.amount.into()),
        text("contra", |it| it.contra.as_str().into()),
        text("reference", |it| (&it.reference).into()),
        text("booked_on", |it| (&it.booked_on).into()),
        text("reason", |it| (&it.reason).into()),
        int("created_at", |it| it.created_at.into()),
    ],
    changing: &[],
    on_conflict: None,
    is_sealed: true,
};

/// Whether there is an adjusting entry, by its unique key.
pub static BY_KEY: Lookup = Lookup {
    name: "settlement_adjustments",
    key: "unique_key",
    columns: &[("id", Text)],
    lock: true,
};

/// The adjusting entries about a difference, in the order in which they were made: those under its
/// reference, and whatever took one of them back under its id, on whichever day.
///
/// # Errors
/// The database cannot be read.
pub async fn about(pool: &AnyPool, difference: &str) -> Result<Vec<Adjustment>, sqlx::Error> {
    let id = difference.rsplit('/').next().unwrap_or_default();
    let mut found = find_related(pool, difference, (id, "")).await?;
    // An id is one only of what is of the same account and the same amount.
    found.retain(|it| it.difference() == difference || is_about(it, difference));
    let mut next = 0;
    while let Some(one) = found.get(next).cloned() {
        let more = find_related(pool, &one.difference(), (&one.reference, one.id.as_str())).await?;
        for it in more {
            let is_new = found.iter().all(|known| known.id != it.id);
            let size = |it: &Adjustment| it.amount.units().unsigned_abs();
            if is_new && size(&it) == size(&one) && is_of_account(&it, difference) {
                found.push(it);
            }
        }
        next += 1;
    }
    found.sort_by(|a, b| a.nth.cmp(&b.nth).then_with(|| a.id.cmp(&b.id)));
    Ok(found)
}

/// The adjusting entries about a difference, the one with an id, and those that name another id.
async fn find_related(
    pool: &AnyPool,
    difference: &str,
    (own, named): (&str, &str),
) -> Result<Vec<Adjustment>, sqlx::Error> {
    let sql = "SELECT * FROM settlement_adjustments \
               WHERE difference = $1 OR id = $2 OR reference = $3 ORDER BY nth, id";
    let query = sqlx::query(sql).bind(difference).bind(own).bind(named);
    query.fetch_all(pool).await?.iter().map(adjustment).collect()
}

fn is_of_account(it: &Adjustment, difference: &str) -> bool {
    let account = format!("{}/{}/{}/", it.env, it.route, it.currency);
    difference.starts_with(&account)
}

/// Whether a difference is about an adjusting entry, by its id.
fn is_about(it: &Adjustment, difference: &str) -> bool {
    let by_id = format!("/{}/{}", it.amount.units().unsigned_abs(), it.id);
    is_of_account(it, difference) && difference.ends_with(&by_id)
}

/// A page of adjusting entries before `cursor`, newest first; an empty route means any. One more
/// than the page holds at most.
///
/// # Errors
/// The database cannot be read.
pub async fn list(
    pool: &AnyPool,
    (env, route): (Env, &str),
    (cursor, limit): (Option<&AdjustmentId>, i64),
) -> Result<Vec<Adjustment>, sqlx::Error> {
    let sql = "SELECT * FROM settlement_adjustments WHERE id < $1 AND env = $2 \
               AND ($3 = '' OR route = $3) ORDER BY id DESC LIMIT $4";
    let query = sqlx::query(sql)
        .bind(cursor.map_or("~", AdjustmentId::as_str))
        .bind(env.as_str())
        .bind(route)
        .bind(limit + 1);
    query.fetch_all(pool).await?.iter().map(adjustment).collect()
}

pub(super) fn adjustment(row: &AnyRow) -> Result<Adjustment, sqlx::Error> {
    let text = |column| row.try_get::<String, _>(column);
    let odd = |what: String| sqlx::Error::Decode(what.into());
    let (env, currency, contra) = (text("env")?, text("currency")?, text("contra")?);
    Ok(Adjustment {
        id: AdjustmentId::from_text(text("id")?),
        env: Env::parse(&env).ok_or_else(|| odd(env))?,
        route: text("route")?,
        currency: Currency::parse(&currency).ok_or_else(|| odd(currency))?,
        amount: Minor::new(row.try_get("amount_minor")?),
        contra: Contra::parse(&contra).ok_or_else(|| odd(contra))?,
        reference: text("reference")?,
        booked_on: text("booked_on")?,
        nth: row.try_get("nth")?,
        reason: text("reason")?,
        created_at: Moment::from_micros(row.try_get("created_at")?),
    })
}

/// Which lines of which account are read.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Test or live.
    pub env: Env,
    /// The route's name.
    pub route: String,
    /// The account's currency.
    pub currency: Currency,
    /// From then on.
    pub from: Moment,
    /// And before then.
    pub to: Moment,
}

/// How far a day of a bank may be from the same day of Greenwich.
const DAYS_DIFFER: Duration = Duration::from_secs(24 * 3600);

impl Wanted {
    /// Where reading begins.
    #[must_use]
    pub fn start(&self) -> JournalId {
        JournalId::first_at(self.from.before(limits::IDS_DIFFER))
    }

    /// The next journals after one, with what each says of the account, and the last one that was
    /// looked at; nothing after the last of all.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn page(
        &self,
        pool: &AnyPool,
        (after, portion): (&JournalId, i64),
    ) -> Result<Option<(JournalId, Vec<SettlementEntry>)>, sqlx::Error> {
        // The others are debits of payouts, which touch no such account.
        let sql = format!(
            "SELECT j.id, j.kind, j.ref_type, j.ref_id, j.env, j.currency, j.lines, \
             j.created_at, c.subject_id, a.rail_reference, a.network_id, a.file_id, \
             f.identity, f.name \
             FROM (SELECT * FROM journals WHERE {HAS_OWN_ID} AND id > $1 AND id < $2 \
             ORDER BY id LIMIT $3) j \
             LEFT JOIN cases c ON c.id = j.ref_id \
             LEFT JOIN attempts a ON a.transfer_id = COALESCE(c.subject_id, j.ref_id) \
             AND a.route = $4 \
             LEFT JOIN payment_files f ON f.id = a.file_id \
             ORDER BY j.id, a.id"
        );
        let end = JournalId::first_at(self.to.after(limits::IDS_DIFFER));
        let query = sqlx::query(AssertSqlSafe(sql));
        let query = query.bind(after.as_str()).bind(end.as_str()).bind(portion);
        let rows = query.bind(&self.route).fetch_all(pool).await?;
        let Some(last) = rows.last() else { return Ok(None) };
        let last = JournalId::from_text(last.try_get("id")?);
        let mut entries: Vec<SettlementEntry> = Vec::new();
        for row in &rows {
            let id: String = row.try_get("id")?;
            if entries.last().is_none_or(|known| known.journal_id != id) {
                let Some(entry) = self.entry(row, id)? else { continue };
                entries.push(entry);
            }
            if let Some(entry) = entries.last_mut() {
                add_attempt(entry, row)?;
            }
        }
        Ok(Some((last, entries)))
    }

    /// The adjusting entries of the account that the bank has booked in these days, whenever they were
    /// made here.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn adjustments(&self, pool: &AnyPool) -> Result<Vec<SettlementEntry>, sqlx::Error> {
        // From the adjustments to the journals: a cross join says so to SQLite.
        let sql = "SELECT s.*, j.id AS journal_id FROM settlement_adjustments s CROSS JOIN journals j \
                   WHERE j.ref_id = s.id AND j.ref_type = 'SettlementAdjustment' \
                   AND s.env = $1 AND s.route = $2 AND s.currency = $3 \
                   AND s.booked_on >= $4 AND s.booked_on <= $5 ORDER BY s.id";
        // The bank's days may begin and end elsewhere.
        let day = |at: Moment| at.day_in(&TimeZone::UTC);
        let query = sqlx::query(sql)
            .bind(self.env.as_str())
            .bind(&self.route)
            .bind(self.currency.as_str())
            .bind(day(self.from.before(DAYS_DIFFER)))
            .bind(day(self.to.after(DAYS_DIFFER)));
        let rows = query.fetch_all(pool).await?;
        let entries = rows.iter().map(|row| Ok(adjustment(row)?.entry(row.try_get("journal_id")?)));
        entries.collect()
    }

    /// What a journal says of the account, if it does. Adjusting entries are of other days.
    fn entry(&self, row: &AnyRow, id: String) -> Result<Option<SettlementEntry>, sqlx::Error> {
        let text = |column| row.try_get::<String, _>(column);
        let is_other = text("env")? != self.env.as_str()
            || text("currency")? != self.currency.as_str()
            || text("ref_type")? == "SettlementAdjustment";
        if is_other {
            return Ok(None);
        }
        let at = Moment::from_micros(row.try_get("created_at")?);
        let lines: String = row.try_get("lines")?;
        let account = format!("settlement/{}", self.route);
        let lines = own_lines_of(&lines).map_err(|cause| sqlx::Error::Decode(cause.into()))?;
        let of_account = lines.iter().filter(|(name, _)| *name == account);
        let amount = Minor::total(of_account.map(|(_, amount)| *amount));
        let amount = amount.map_err(|cause| sqlx::Error::Decode(cause.into()))?;
        if amount == Minor::ZERO || at < self.from || at >= self.to {
            return Ok(None);
        }
        let ref_id: String = row.try_get("ref_id")?;
        let of_case: Option<String> = row.try_get("subject_id")?;
        let mut references = Vec::new();
        let payout = of_case.as_deref().unwrap_or(&ref_id);
        if let Some(payout) = PayoutId::parse(payout) {
            references.extend([payout.to_string(), payout.reference()]);
        }
        Ok(Some(SettlementEntry {
            journal_id: id,
            kind: row.try_get("kind")?,
            amount_minor: amount,
            subject_id: ref_id,
            references,
            file_id: None,
            file_references: Vec::new(),
            booked_on: None,
            created_at: at.to_string(),
        }))
    }
}

/// What an attempt over the route was called, if the row has one.
fn add_attempt(entry: &mut SettlementEntry, row: &AnyRow) -> Result<(), sqlx::Error> {
    let maybe = |column| row.try_get::<Option<String>, _>(column);
    entry.references.extend(maybe("rail_reference")?);
    entry.references.extend(maybe("network_id")?);
    if let Some(file) = maybe("file_id")? {
        entry.file_id = Some(file);
        entry.file_references.extend(maybe("identity")?);
        let name = maybe("name")?;
        // Banks leave the ending out.
        let stem = name.as_deref().and_then(|name| name.rsplit_once('.'));
        entry.file_references.extend(stem.map(|(stem, _)| stem.to_owned()));
        entry.file_references.extend(name);
    }
    Ok(())
}
