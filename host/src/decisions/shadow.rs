//! Packs in shadow: asked about the same facts as the pack that decided, after it decided, and
//! away from whoever waits for the payout. Only comparisons are kept.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use sqlx::any::AnyRow;
use sqlx::{AnyPool, Row as _};
use tokio::sync::mpsc;
use utoipa::ToSchema;

use crate::app::App;
use crate::clock::Moment;
use crate::db;
use crate::id::DifferenceId;
use crate::rules::{Compared, Pack, Verdict};
use crate::wasm::pack::Fact;

/// Comparisons that are made together.
const TOGETHER: usize = 256;

/// Compares what arrives, until the host stops.
pub async fn compare(app: App, mut arriving: mpsc::Receiver<Compared>) {
    let mut some = Vec::with_capacity(TOGETHER);
    loop {
        tokio::select! {
            () = app.stopping.cancelled() => return,
            _ = arriving.recv_many(&mut some, TOGETHER) => {}
        }
        let arrived = std::mem::take(&mut some);
        let Ok(results) = tokio::task::spawn_blocking(move || ask(arrived)).await else {
            tracing::error!("comparing with a pack in shadow was cut off");
            continue;
        };
        if let Err(cause) = db::in_time(keep(&app, results)).await {
            tracing::warn!(%cause, "comparisons with a pack in shadow are lost");
        }
    }
}

/// How often a pack was compared, and what it would have decided otherwise.
#[derive(Default)]
struct Results {
    tallies: BTreeMap<String, Tally>,
    differences: Vec<(Compared, (String, String), Verdict)>,
}

/// How a pack in shadow fared.
#[derive(Clone, Copy, Debug, Default, Serialize, ToSchema)]
pub struct Tally {
    /// Decisions that it was asked about.
    pub compared: i64,
    /// Of these, decisions that it would have made otherwise.
    pub differing: i64,
    /// Of these, decisions that it failed to make.
    pub failed: i64,
}

fn ask(arrived: Vec<Compared>) -> Results {
    let mut results = Results::default();
    for compared in arrived {
        let Some(pack) = compared.ruling.assignment.shadow.clone() else { continue };
        let name = (pack.about.name.clone(), pack.about.version.clone());
        let tally = results.tallies.entry(format!("{}/{}", name.0, name.1)).or_default();
        tally.compared += 1;
        // What fails here is no reason to take the pack out where it decides.
        let asked = pack.assess_all(&[facts(&pack, &compared.ruling.facts)]);
        match asked.ok().and_then(|mut verdicts| verdicts.pop()) {
            None => tally.failed += 1,
            Some(verdict) if verdict.decides_as(&compared.ruling.verdict) => {}
            Some(verdict) => {
                tally.differing += 1;
                results.differences.push((compared, name, verdict));
            }
        }
    }
    results
}

fn facts(pack: &Pack, known: &[Fact]) -> Vec<Fact> {
    let wanted = pack.about.facts.iter();
    wanted.filter_map(|name| known.iter().find(|fact| *fact.name == **name)).cloned().collect()
}

async fn keep(app: &App, results: Results) -> Result<(), sqlx::Error> {
    if results.tallies.is_empty() {
        return Ok(());
    }
    let mut tx = app.db.write().await?;
    for (id, tally) in &results.tallies {
        let sql = "INSERT INTO rule_tallies (id, compared, differing, failed) \
                   VALUES ($1, $2, $3, $4) ON CONFLICT (id) DO UPDATE SET \
                   compared = rule_tallies.compared + excluded.compared, \
                   differing = rule_tallies.differing + excluded.differing, \
                   failed = rule_tallies.failed + excluded.failed";
        let query = sqlx::query(sql).bind(id).bind(tally.compared).bind(tally.differing);
        query.bind(tally.failed).execute(tx.conn()).await?;
    }
    for (compared, (name, version), verdict) in &results.differences {
        let sql = "INSERT INTO rule_differences (id, name, version, payout_id, merchant_id, env, \
                   active, before, after, created_at) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
        let active = compared.ruling.assignment.pack.as_ref();
        let active = active.map(|pack| format!("{}/{}", pack.about.name, pack.about.version));
        sqlx::query(sql)
            .bind(app.ids.id::<DifferenceId>().as_str())
            .bind(name)
            .bind(version)
            .bind(&compared.payout_id)
            .bind(&compared.merchant_id)
            .bind(compared.env)
            .bind(active)
            .bind(serde_json::to_string(&compared.ruling.verdict).unwrap_or_default())
            .bind(serde_json::to_string(verdict).unwrap_or_default())
            .bind(compared.at.micros())
            .execute(tx.conn())
            .await?;
    }
    tx.commit().await
}

/// A decision that a pack in shadow would have made otherwise.
#[derive(Debug, Serialize, ToSchema)]
pub struct Difference {
    /// Always `rule_difference`.
    #[schema(example = "rule_difference")]
    pub object: &'static str,
    /// The id, which sorts by time of creation.
    pub id: String,
    /// The pack in shadow.
    pub name: String,
    /// The version of that pack.
    pub version: String,
    /// The payout that was decided about.
    pub payout_id: String,
    /// The merchant who wanted to pay.
    pub merchant_id: String,
    /// `test` or `live`.
    pub env: String,
    /// Name and version of the pack that decided; null where none did.
    pub active: Option<String>,
    /// What was decided: action and hits.
    #[schema(value_type = Object)]
    pub before: Value,
    /// What the pack in shadow would have decided.
    #[schema(value_type = Object)]
    pub after: Value,
    /// When the decision was made that was compared.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Moment,
}

/// Differences of one pack, newest first, before `cursor`.
///
/// # Errors
/// The database cannot be read.
pub async fn list_differences(
    pool: &AnyPool,
    name: &str,
    (cursor, limit): (Option<&str>, i64),
) -> Result<Vec<Difference>, sqlx::Error> {
    let sql = "SELECT * FROM rule_differences WHERE name = $1 AND id < $2 \
               ORDER BY id DESC LIMIT $3";
    let query = sqlx::query(sql).bind(name).bind(cursor.unwrap_or("~")).bind(limit + 1);
    query.fetch_all(pool).await?.iter().map(difference).collect()
}

/// Whether there is such a difference.
///
/// # Errors
/// The database cannot be read.
pub async fn has_difference(pool: &AnyPool, name: &str, id: &str) -> Result<bool, sqlx::Error> {
    let sql = "SELECT COUNT(*) FROM rule_differences WHERE name = $1 AND id = $2";
    let found: i64 = sqlx::query_scalar(sql).bind(name).bind(id).fetch_one(pool).await?;
    Ok(found == 1)
}

/// How every pack fared in shadow, by name and version.
///
/// # Errors
/// The database cannot be read.
pub async fn list_tallies(pool: &AnyPool) -> Result<BTreeMap<String, Tally>, sqlx::Error> {
    let rows = sqlx::query("SELECT * FROM rule_tallies").fetch_all(pool).await?;
    let tally = |row: &AnyRow| {
        let tally = Tally {
            compared: row.try_get("compared")?,
            differing: row.try_get("differing")?,
            failed: row.try_get("failed")?,
        };
        Ok((row.try_get("id")?, tally))
    };
    rows.iter().map(tally).collect()
}

fn difference(row: &AnyRow) -> Result<Difference, sqlx::Error> {
    let json = |column| {
        let text: String = row.try_get(column)?;
        Ok::<_, sqlx::Error>(serde_json::from_str(&text).unwrap_or_default())
    };
    Ok(Difference {
        object: "rule_difference",
        id: row.try_get("id")?,
        name: row.try_get("name")?,
        version: row.try_get("version")?,
        payout_id: row.try_get("payout_id")?,
        merchant_id: row.try_get("merchant_id")?,
        env: row.try_get("env")?,
        active: row.try_get("active")?,
        before: json("before")?,
        after: json("after")?,
        created_at: Moment::from_micros(row.try_get("created_at")?),
    })
}
