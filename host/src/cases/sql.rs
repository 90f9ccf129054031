//! Statements about cases.

use serde_json::Value;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AnyPool, Row as _};

use crate::clock::Moment;
use crate::db::bulk::{Column, Table, Update, int, text};
use crate::db::cell::Kind::{Int, Text};
use crate::db::lookup::Lookup;
use crate::env::Env;
use crate::id::{CaseId, Id as _};
use crate::money::{Currency, Minor};

use super::{Case, CaseKind};

/// New cases. Whoever inserts one has looked for its fingerprint under lock: see
/// [`Case::open_once`].
pub static CASES: Table<Case> = Table {
    name: "cases",
    fixed: &[
        text("id", |case| case.id.as_str().into()),
        text("kind", |case| case.kind.as_str().into()),
        text("fingerprint", |case| (&case.fingerprint).into()),
        text("env", |case| case.env.as_str().into()),
        text("merchant_id", |case| (&case.merchant_id).into()),
        text("subject_type", |case| case.subject_type.into()),
        text("subject_id", |case| (&case.subject_id).into()),
        text("route", |case| (&case.route).into()),
        text("currency", |case| case.amount.map(|(currency, _)| currency.to_string()).into()),
        int("amount_minor", |case| case.amount.map(|(_, amount)| amount.units()).into()),
        text("summary", |case| (&case.summary).into()),
        text("evidence", |case| case.evidence.to_string().into()),
        int("opened_at", |case| case.opened_at.into()),
    ],
    changing: &[text("status", |_| "open".into()), int("version", |_| 1.into())],
    on_conflict: None,
    is_sealed: true,
};

/// Whether a case is there already, by its fingerprint.
pub static CASES_BY_FINGERPRINT: Lookup =
    Lookup { name: "cases", key: "fingerprint", columns: &[("id", Text)], lock: true };

/// How many changes a case has seen.
pub static CASE_VERSIONS: Lookup =
    Lookup { name: "cases", key: "id", columns: &[("version", Int)], lock: true };

/// A decision about a case: a request for it, or the end.
#[derive(Clone, Debug)]
pub struct Decided {
    /// The case.
    pub id: CaseId,
    /// `open` or `resolved`.
    pub status: &'static str,
    /// How many changes it has seen now.
    pub version: i64,
    /// What was decided, or is asked for.
    pub resolution: &'static str,
    /// What shows that it is right.
    pub evidence: String,
    /// Who asked for it first.
    pub requested_by: String,
    /// Who decided, if it is decided.
    pub resolved_by: Option<String>,
    /// When, if it is decided.
    pub resolved_at: Option<Moment>,
}

/// Decisions about cases.
pub static CASE_DECISIONS: Update<Decided> = Update {
    name: "cases",
    key: text("id", |decided| decided.id.as_str().into()),
    columns: &[
        text("status", |decided| decided.status.into()),
        int("version", |decided| decided.version.into()),
        text("resolution", |decided| decided.resolution.into()),
        text("resolution_evidence", |decided| (&decided.evidence).into()),
        text("requested_by", |decided| (&decided.requested_by).into()),
        text("resolved_by", |decided| (&decided.resolved_by).into()),
        int("resolved_at", |decided| decided.resolved_at.into()),
    ],
    only_where: None,
};

/// Of what a case is about something else was told since: whoever decides has to look again.
#[derive(Clone, Debug)]
pub struct News {
    /// The case.
    pub id: CaseId,
    /// How many changes it has seen now.
    pub version: i64,
}

/// See [`News`].
pub static CASE_NEWS: Update<News> = Update {
    name: "cases",
    key: text("id", |news| news.id.as_str().into()),
    columns: &[int("version", |news| news.version.into())],
    only_where: None,
};

/// Cases that end by themselves, because what was the matter is known now.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The case's fingerprint, or what it is about.
    pub of: String,
    /// What became known.
    pub evidence: String,
    /// When.
    pub at: Moment,
}

/// See [`Ended`]: the case of a fingerprint. Where no such case is open, nothing changes.
pub static CASES_ENDED: Update<Ended> = Update {
    name: "cases",
    key: text("fingerprint", |ended| (&ended.of).into()),
    columns: ENDED,
    only_where: Some("t.status = 'open'"),
};

/// The same of cases about a file of which nobody knew whether it left, or why it did not.
pub static FILE_CASES_ENDED: Update<Ended> = Update {
    name: "cases",
    key: text("subject_id", |ended| (&ended.of).into()),
    columns: ENDED,
    only_where: Some(
        "t.status = 'open' AND t.kind IN \
        ('file_unacknowledged', 'file_forgotten', 'file_stuck')",
    ),
};

const ENDED: &[Column<Ended>] = &[
    text("status", |_| "resolved".into()),
    text("resolution", |_| "acknowledge".into()),
    text("resolution_evidence", |ended| (&ended.evidence).into()),
    text("resolved_by", |_| "host".into()),
    int("resolved_at", |ended| ended.at.into()),
];

/// A case as it is stored.
#[derive(Clone, Debug)]
pub struct StoredCase {
    /// The case as it was opened.
    pub case: Case,
    /// `open` or `resolved`.
    pub status: String,
    /// How many changes it has seen.
    pub version: i64,
    /// What was decided, or is asked for.
    pub resolution: Option<String>,
    /// What shows that it is right.
    pub resolution_evidence: Option<String>,
    /// Who asked for it first.
    pub requested_by: Option<String>,
    /// Who decided.
    pub resolved_by: Option<String>,
    /// When.
    pub resolved_at: Option<Moment>,
}

/// Which cases are wanted; an empty text stands for any.
#[derive(Debug, Default)]
pub struct Filter {
    /// Of this kind.
    pub kind: String,
    /// In this status.
    pub status: String,
    /// About this object.
    pub subject_id: String,
    /// Before this id.
    pub before: String,
    /// Page size.
    pub limit: i64,
}

/// A page of cases, newest first.
///
/// # Errors
/// The database cannot be read.
pub async fn list_cases(pool: &AnyPool, filter: &Filter) -> Result<Vec<StoredCase>, sqlx::Error> {
    let sql = "SELECT * FROM cases WHERE id < $1 AND ($2 = '' OR kind = $2) \
               AND ($3 = '' OR status = $3) AND ($4 = '' OR subject_id = $4) \
               ORDER BY id DESC LIMIT $5";
    let query = sqlx::query(sql)
        .bind(filter.before.as_str())
        .bind(filter.kind.as_str())
        .bind(filter.status.as_str())
        .bind(filter.subject_id.as_str())
        .bind(filter.limit + 1);
    query.fetch_all(pool).await?.iter().map(stored).collect()
}

/// The cases about an object, oldest first.
///
/// # Errors
/// The database cannot be read.
pub async fn list_about(pool: &AnyPool, subject: &str) -> Result<Vec<StoredCase>, sqlx::Error> {
    let sql = "SELECT * FROM cases WHERE subject_id = $1 ORDER BY id";
    let rows = sqlx::query(sql).bind(subject).fetch_all(pool).await?;
    rows.iter().map(stored).collect()
}

/// Every case there is.
///
/// # Errors
/// The database cannot be read.
pub async fn list_all_cases(db: &mut AnyConnection) -> Result<Vec<StoredCase>, sqlx::Error> {
    let rows = sqlx::query("SELECT * FROM cases ORDER BY id").fetch_all(db).await?;
    rows.iter().map(stored).collect()
}

/// A case.
///
/// # Errors
/// The database cannot be read.
pub async fn get_case(pool: &AnyPool, id: &CaseId) -> Result<Option<StoredCase>, sqlx::Error> {
    let query = sqlx::query("SELECT * FROM cases WHERE id = $1").bind(id.as_str());
    query.fetch_optional(pool).await?.as_ref().map(stored).transpose()
}

/// Whether money of an object is in question in a case that is open.
///
/// # Errors
/// The database cannot be read.
pub async fn holds_money(pool: &AnyPool, subject: &str) -> Result<bool, sqlx::Error> {
    let sql = "SELECT kind FROM cases WHERE subject_id = $1 AND status = 'open'";
    let kinds: Vec<String> = sqlx::query_scalar(sql).bind(subject).fetch_all(pool).await?;
    Ok(kinds.iter().any(|kind| CaseKind::parse(kind).is_some_and(CaseKind::holds_money)))
}

/// Cases that are open about parts of an object that came back, each with its version.
///
/// # Errors
/// The database cannot be read.
pub async fn list_open_parts(
    pool: &AnyPool,
    subject: &str,
) -> Result<Vec<(String, i64)>, sqlx::Error> {
    let sql = "SELECT id, version FROM cases WHERE subject_id = $1 AND kind = $2 \
               AND status = 'open' ORDER BY id";
    let query = sqlx::query_as(sql).bind(subject).bind(CaseKind::PartialReturn.as_str());
    query.fetch_all(pool).await
}

/// How much of an object came back in parts that were credited to its wallet.
///
/// # Errors
/// The database cannot be read.
pub async fn credited(pool: &AnyPool, subject: &str) -> Result<Minor, sqlx::Error> {
    let sql = "SELECT COALESCE(CAST(SUM(amount_minor) AS BIGINT), 0) FROM cases \
               WHERE subject_id = $1 AND resolution = 'credit' AND status = 'resolved'";
    sqlx::query_scalar(sql).bind(subject).fetch_one(pool).await.map(Minor::new)
}

/// Whether money that a bank paid for an object was written off.
///
/// # Errors
/// The database cannot be read.
pub async fn is_written_off(pool: &AnyPool, subject: &str) -> Result<bool, sqlx::Error> {
    let sql = "SELECT COUNT(*) FROM cases WHERE subject_id = $1 AND kind = $2 \
               AND resolution = 'write_off' AND status = 'resolved'";
    let query = sqlx::query_scalar(sql).bind(subject).bind(CaseKind::PaidAfterFailure.as_str());
    let found: i64 = query.fetch_one(pool).await?;
    Ok(found > 0)
}

/// Whether a case is open whose fingerprint begins so.
///
/// # Errors
/// The database cannot be read.
pub async fn is_any_open(pool: &AnyPool, beginning: &str) -> Result<bool, sqlx::Error> {
    let sql = "SELECT COUNT(*) FROM cases WHERE fingerprint >= $1 AND fingerprint < $2 \
               AND status = 'open'";
    let query = sqlx::query_scalar(sql).bind(beginning).bind(format!("{beginning}~"));
    let found: i64 = query.fetch_one(pool).await?;
    Ok(found > 0)
}

/// Whether a case of a kind about an object is open that was opened at an instant, or later.
///
/// # Errors
/// The database cannot be read.
pub async fn is_open_since(
    pool: &AnyPool,
    (subject, kind): (&str, CaseKind),
    since: Moment,
) -> Result<bool, sqlx::Error> {
    let sql = "SELECT COUNT(*) FROM cases WHERE subject_id = $1 AND kind = $2 \
               AND status = 'open' AND opened_at >= $3";
    let query = sqlx::query_scalar(sql).bind(subject).bind(kind.as_str()).bind(since.micros());
    let found: i64 = query.fetch_one(pool).await?;
    Ok(found > 0)
}

/// Whether the case of a fingerprint is open.
///
/// # Errors
/// The database cannot be read.
pub async fn is_open(pool: &AnyPool, fingerprint: &str) -> Result<bool, sqlx::Error> {
    let sql = "SELECT COUNT(*) FROM cases WHERE fingerprint = $1 AND status = 'open'";
    let found: i64 = sqlx::query_scalar(sql).bind(fingerprint).fetch_one(pool).await?;
    Ok(found > 0)
}

/// How many cases of each kind are open.
///
/// # Errors
/// The database cannot be read.
pub async fn count_open(pool: &AnyPool) -> Result<Vec<(String, i64)>, sqlx::Error> {
    let sql = "SELECT kind, COUNT(*) FROM cases WHERE status = 'open' GROUP BY kind";
    sqlx::query_as(sql).fetch_all(pool).await
}

/// How many cases about live money are open, by kind and route. Kinds that only a newer host knows are
/// told by that.
///
/// # Errors
/// The database cannot be read.
pub async fn count_open_live(
    pool: &AnyPool,
) -> Result<Vec<(CaseKind, Option<String>, i64)>, sqlx::Error> {
    let sql = "SELECT kind, route, COUNT(*) FROM cases WHERE status = 'open' AND env = 'live' \
               GROUP BY kind, route ORDER BY kind, route";
    let rows: Vec<(String, Option<String>, i64)> = sqlx::query_as(sql).fetch_all(pool).await?;
    let known = rows
        .into_iter()
        .filter_map(|(kind, route, count)| Some((CaseKind::parse(&kind)?, route, count)));
    Ok(known.collect())
}

/// Live money whose owner is not known since before then: in which currency, in how many cases,
/// and how much.
///
/// # Errors
/// The database cannot be read.
pub async fn in_question_since(
    pool: &AnyPool,
    then: Moment,
) -> Result<Vec<(Currency, i64, Minor)>, sqlx::Error> {
    use strum::IntoEnumIterator as _;
    let kinds = CaseKind::iter().filter(|kind| kind.holds_money());
    let kinds: Vec<String> = kinds.map(|kind| format!("'{}'", kind.as_str())).collect();
    let sql = format!(
        "SELECT currency, COUNT(*), CAST(SUM(amount_minor) AS BIGINT) FROM cases \
         WHERE status = 'open' AND env = 'live' AND opened_at <= $1 AND kind IN ({}) \
         AND currency IS NOT NULL AND amount_minor IS NOT NULL GROUP BY currency ORDER BY currency",
        kinds.join(", ")
    );
    let query = sqlx::query_as(sqlx::AssertSqlSafe(sql)).bind(then.micros());
    let rows: Vec<(String, i64, i64)> = query.fetch_all(pool).await?;
    let known = rows.into_iter().map(|(currency, count, sum)| {
        let currency = Currency::parse(&currency);
        let currency = currency.ok_or_else(|| sqlx::Error::Decode("an odd currency".into()))?;
        Ok((currency, count, Minor::new(sum)))
    });
    known.collect()
}

fn stored(row: &AnyRow) -> Result<StoredCase, sqlx::Error> {
    let text = |column| row.try_get::<String, _>(column);
    let maybe = |column| row.try_get::<Option<String>, _>(column);
    let odd = |what: &'static str| move || sqlx::Error::Decode(what.into());
    let amount: Option<i64> = row.try_get("amount_minor")?;
    let currency = maybe("currency")?.and_then(|code| Currency::parse(&code));
    let subject_type = match text("subject_type")?.as_str() {
        "payout" => "payout",
        "file" => "file",
        _ => "route",
    };
    Ok(StoredCase {
        case: Case {
            id: CaseId::from_text(text("id")?),
            kind: CaseKind::parse(&text("kind")?).ok_or_else(odd("an unknown kind of case"))?,
            fingerprint: text("fingerprint")?,
            env: Env::parse(&text("env")?).ok_or_else(odd("an unknown environment"))?,
            merchant_id: maybe("merchant_id")?,
            subject_type,
            subject_id: text("subject_id")?,
            route: maybe("route")?,
            amount: currency.zip(amount.map(Minor::new)),
            summary: text("summary")?,
            evidence: serde_json::from_str(&text("evidence")?).unwrap_or(Value::Null),
            opened_at: Moment::from_micros(row.try_get("opened_at")?),
        },
        status: text("status")?,
        version: row.try_get("version")?,
        resolution: maybe("resolution")?,
        resolution_evidence: maybe("resolution_evidence")?,
        requested_by: maybe("requested_by")?,
        resolved_by: maybe("resolved_by")?,
        resolved_at: row.try_get::<Option<i64>, _>("resolved_at")?.map(Moment::from_micros),
    })
}
