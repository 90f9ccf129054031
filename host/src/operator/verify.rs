//! Proving that whatever an operator can do was done by one: each setting is as the last line of
//! the audit log about it says.

use std::collections::{BTreeMap, HashMap};

use futures::TryStreamExt as _;
use serde_json::{Value, json};
use sqlx::{AnyConnection, AssertSqlSafe, Row as _};

use crate::audit::masked_fields;
use crate::auth::merchant::FormerTimezone;
use crate::clock::Moment;
use crate::fx;
use crate::ledger::own_lines_of;
use crate::ledger::verify::{Check, Faults, Fresh};
use crate::money::Minor;
use crate::rails::{RecipientFields, seeded_name};

/// Each query answers with ids; none is right.
const CHECKS: &[Check] = &[
    Check {
        name: "journal-unknown",
        means: "is a journal about nothing that is known",
        finds: "SELECT id FROM journals WHERE ref_type NOT IN ('Payout', 'Case', 'WalletMovement', \
                'Conversion', 'SettlementAdjustment') AND {fresh journals journals}",
    },
    Check {
        name: "rate-set",
        means: "is a rate that was set, and is not there",
        finds: "SELECT a.subject_id FROM audit a LEFT JOIN rates r ON r.id = a.subject_id \
                WHERE a.action = 'rate.set' AND r.id IS NULL",
    },
    Check {
        name: "rate-set",
        means: "is a rate whose id says something else",
        finds: "SELECT id FROM rates WHERE id <> env || '/' || CASE merchant_id WHEN '' THEN '-' \
                ELSE merchant_id END || '/' || from_currency || '/' || to_currency",
    },
    Check {
        name: "fx-limit-set",
        means: "is a limit whose id says something else",
        finds: "SELECT id FROM fx_limits WHERE id <> env || '/' || currency",
    },
    Check {
        name: "fx-limit-set",
        means: "is a limit that was set, and is not there",
        finds: "SELECT a.subject_id FROM audit a LEFT JOIN fx_limits l ON l.id = a.subject_id \
                WHERE a.action = 'fx_limit.set' AND l.id IS NULL",
    },
    Check {
        name: "pack-pushed",
        means: "is a rule pack that was pushed by nobody, or by somebody else",
        finds: "SELECT r.id FROM rule_packs r LEFT JOIN audit a ON a.subject_id = r.id \
                AND a.action = 'rule_pack.push' AND a.actor = r.pushed_by \
                AND a.after LIKE '%' || r.digest || '%' \
                WHERE r.pushed_by <> 'host' AND a.id IS NULL",
    },
    Check {
        name: "pack-assigned",
        means: "is a generation in which a rule pack was assigned by nobody",
        finds: "SELECT CAST(r.generation AS TEXT) FROM rule_assignments r LEFT JOIN audit a \
                ON a.subject_type = 'rule_assignment' AND a.subject_id = r.kind \
                AND a.actor = r.actor AND a.created_at BETWEEN r.created_at - 60000000 \
                AND r.created_at + 60000000 WHERE (r.actor <> 'host' OR r.generation > 1) \
                AND a.id IS NULL",
    },
    Check {
        name: "pack-generation",
        means: "is not the number of assignments that there were",
        finds: "SELECT CAST(g.generation AS TEXT) FROM rule_generation g WHERE g.generation <> \
                (SELECT COUNT(*) FROM rule_assignments)",
    },
    Check {
        name: "key-made",
        means: "is an API key that nobody made",
        finds: "SELECT k.id FROM api_keys k WHERE NOT EXISTS (SELECT 1 FROM audit a \
                WHERE a.subject_id = k.id AND a.action = 'key.create') \
                AND NOT EXISTS (SELECT 1 FROM audit a WHERE a.action = 'key.rotate' \
                AND a.after LIKE '%\"' || k.id || '\"%')",
    },
    Check {
        name: "key-revoked",
        means: "is an API key that was revoked, or is not, against the audit log",
        finds: "SELECT k.id FROM api_keys k LEFT JOIN audit a ON a.subject_id = k.id \
                AND a.action = 'key.revoke' WHERE (k.revoked_at IS NULL) <> (a.id IS NULL)",
    },
    Check {
        name: "key-hash",
        means: "is an API key of which more is kept than a hash",
        finds: "SELECT id FROM api_keys WHERE LENGTH(hash) <> 64 OR LENGTH(prefix) > 12 \
                OR hash LIKE '%\\_%' ESCAPE '\\'",
    },
    Check {
        name: "key-merchant",
        means: "is an API key of nobody",
        finds: "SELECT k.id FROM api_keys k LEFT JOIN merchants m ON m.id = k.merchant_id \
                WHERE m.id IS NULL",
    },
    Check {
        name: "blacklist-entry",
        means: "is on the blacklist, or was taken off, by nobody",
        finds: "SELECT a.subject_id FROM audit a LEFT JOIN blacklist b ON b.id = a.subject_id \
                LEFT JOIN audit r ON r.subject_id = a.subject_id \
                AND r.action = 'blacklist.remove' WHERE a.action = 'blacklist.add' \
                AND (b.id IS NULL) <> (r.id IS NOT NULL)",
    },
    Check {
        name: "blacklist-entry",
        means: "is on the blacklist, and nobody put it there",
        finds: "SELECT b.id FROM blacklist b LEFT JOIN audit a ON a.subject_id = b.id \
                AND a.action = 'blacklist.add' WHERE a.id IS NULL",
    },
    Check {
        name: "route-settings",
        means: "is a route that is gone, and nobody deleted it",
        finds: "SELECT DISTINCT a.subject_id FROM audit a LEFT JOIN routes r \
                ON r.id = a.subject_id WHERE a.action IN ('route.create', 'route.update') \
                AND r.id IS NULL AND NOT EXISTS (SELECT 1 FROM audit d \
                WHERE d.subject_id = a.subject_id AND d.action = 'route.delete')",
    },
    Check {
        name: "route-settings",
        means: "is a route that was deleted, and is there",
        finds: "SELECT r.id FROM routes r JOIN audit a ON a.subject_id = r.id \
                AND a.action = 'route.delete'",
    },
    Check {
        name: "recipient-clear",
        means: "is a recipient of whom a secret is kept in clear",
        finds: "SELECT id FROM beneficiaries WHERE resolution IS NOT NULL \
                AND resolution NOT LIKE 's1.%'",
    },
    Check {
        name: "attempt-clear",
        means: "is an attempt with a secret of its recipient in clear",
        finds: "SELECT id FROM attempts WHERE resolution IS NOT NULL \
                AND resolution NOT LIKE 's1.%' AND {fresh attempts attempts}",
    },
    Check {
        name: "wallet-merchant",
        means: "is a wallet of nobody",
        finds: "SELECT w.id FROM wallets w LEFT JOIN merchants m ON m.id = w.merchant_id \
                WHERE m.id IS NULL",
    },
    Check {
        name: "file-held",
        means: "is a file that was held back, or let go, by nobody",
        finds: "SELECT f.id FROM payment_files f LEFT JOIN (SELECT subject_id, SUM(CASE action \
                WHEN 'file.hold' THEN 1 ELSE -1 END) AS held FROM audit \
                WHERE action IN ('file.hold', 'file.release') GROUP BY subject_id) a \
                ON a.subject_id = f.id WHERE f.is_held <> COALESCE(a.held, 0)",
    },
];

/// Compares every setting with the audit log.
///
/// # Errors
/// The database cannot be read.
pub async fn verify(
    db: &mut AnyConnection,
    fresh: &Fresh,
    faults: &mut Faults,
) -> Result<(), sqlx::Error> {
    for check in CHECKS {
        check.run(db, fresh, faults).await?;
    }
    movements(db, fresh, faults).await?;
    let said = last_said(db).await?;
    let sql = "SELECT id, is_frozen FROM wallets";
    for row in sqlx::query(sql).fetch_all(&mut *db).await? {
        let (id, is_frozen): (String, i64) = (row.try_get(0)?, row.try_get(1)?);
        let last = said.get(&id).map_or(json!(false), |after| after["is_frozen"].clone());
        if last != json!(is_frozen != 0) {
            let what = format!("wallet {id} was frozen, or set free, by nobody");
            faults.add("wallet-frozen", what);
        }
    }
    let sql = "SELECT id, status, timezone, settings FROM merchants";
    for row in sqlx::query(sql).fetch_all(&mut *db).await? {
        let id: String = row.try_get(0)?;
        let (status, timezone): (String, String) = (row.try_get(1)?, row.try_get(2)?);
        let settings: Value =
            serde_json::from_str(&row.try_get::<String, _>(3)?).unwrap_or_default();
        let state = json!({ "status": status, "timezone": timezone, "settings": settings });
        let is_as_said = said.get(&id).is_some_and(|after| {
            ["status", "timezone", "settings"].iter().all(|name| after[name] == state[name])
        });
        if !is_as_said {
            let what = format!("merchant {id} was changed by nobody");
            faults.add("merchant-settings", what);
        }
    }
    former_timezones(db, faults).await?;
    rates(db, &said, faults).await?;
    keys(db, &said, faults).await?;
    blocks(db, &said, faults).await?;
    routes(db, &said, faults).await
}

/// The timezones that a merchant had of late are among those that the audit log names, in whichever
/// order the clocks of several hosts have put its lines.
async fn former_timezones(db: &mut AnyConnection, faults: &mut Faults) -> Result<(), sqlx::Error> {
    let sql = "SELECT subject_id, before, after FROM audit WHERE action = 'merchant.update'";
    let mut left: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in sqlx::query(sql).fetch_all(&mut *db).await? {
        let timezone = |column: usize| {
            let side: Option<String> = row.try_get(column)?;
            let side: Value = serde_json::from_str(&side.unwrap_or_default()).unwrap_or_default();
            Ok::<_, sqlx::Error>(side["timezone"].as_str().unwrap_or_default().to_owned())
        };
        let (before, after) = (timezone(1)?, timezone(2)?);
        if before != after {
            left.entry(row.try_get(0)?).or_default().push(before);
        }
    }
    let sql = "SELECT id, former_timezones FROM merchants WHERE former_timezones <> '[]'";
    for row in sqlx::query(sql).fetch_all(&mut *db).await? {
        let (id, former): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        let former: Vec<FormerTimezone> = serde_json::from_str(&former).unwrap_or_default();
        let left = left.entry(id.clone()).or_default();
        let mut was_left = |former: &FormerTimezone| {
            let found = left.iter().position(|name| *name == former.name);
            found.map(|at| left.swap_remove(at)).is_some()
        };
        if former.is_empty() || !former.iter().all(&mut was_left) {
            let what = format!("merchant {id} had other timezones than somebody has changed");
            faults.add("merchant-settings", what);
        }
    }
    Ok(())
}

/// Movements of wallets with what there is beside each: a line of the audit log about the wallet in
/// the same batch, and whether anybody was told, unless that was swept away since.
const MOVEMENTS: &str = "SELECT j.id, j.lines, a.after, \
    CAST(CASE WHEN j.env = 'test' AND j.lines LIKE '%,\"demo_self_fund\",[%' THEN 1 ELSE 0 END \
    AS BIGINT) AS is_own, \
    CAST(CASE WHEN v.id IS NOT NULL OR j.created_at <= COALESCE((SELECT CAST(value AS BIGINT) \
    FROM meta WHERE key = 'swept/all_events'), 0) THEN 1 ELSE 0 END AS BIGINT) AS is_told \
    FROM journals j LEFT JOIN audit a ON a.batch_id = j.batch_id \
    AND a.subject_id = j.wallet_id AND a.action IN ('wallet.credit', 'wallet.debit') \
    LEFT JOIN events v ON v.object_id = j.ref_id AND v.type = 'wallet_funded' \
    WHERE j.ref_type = 'WalletMovement' AND {fresh journals j}";

/// Each movement of a wallet was made by an operator, or in the sandbox, and of what came in somebody
/// was told.
async fn movements(
    db: &mut AnyConnection,
    fresh: &Fresh,
    faults: &mut Faults,
) -> Result<(), sqlx::Error> {
    // A journal has a row for each pair of what is beside it.
    let mut found: BTreeMap<String, (bool, bool)> = BTreeMap::new();
    let sql = fresh.filled_in(MOVEMENTS);
    let mut rows = sqlx::query(AssertSqlSafe(sql)).fetch(db);
    while let Some(row) = rows.try_next().await? {
        let lines: String = row.try_get("lines")?;
        // What cannot be read is told as such.
        let Ok(own) = own_lines_of(&lines) else { continue };
        let Ok(given) = Minor::total(own.into_iter().map(|(_, amount)| amount)) else { continue };
        let after: Option<String> = row.try_get("after")?;
        // The platform's side of it has the other sign.
        let said = format!("\"amount_minor\":\"{}\"", -i128::from(given.units()));
        let is_made = row.try_get::<i64, _>("is_own")? == 1
            || after.is_some_and(|after| after.contains(&said));
        let is_told = !given.is_negative() || row.try_get::<i64, _>("is_told")? == 1;
        let so_far = found.entry(row.try_get("id")?).or_default();
        *so_far = (so_far.0 || is_made, so_far.1 || is_told);
    }
    for (id, (is_made, is_told)) in found {
        if !is_made {
            let what = format!("{id} is a movement of a wallet that nobody made");
            faults.add("movement-without-operator", what);
        }
        if !is_told {
            let what = format!("{id} is money that came in, and nobody was told");
            faults.add("movement-untold", what);
        }
    }
    Ok(())
}

/// Rates and limits of exchanging are as somebody set them.
async fn rates(
    db: &mut AnyConnection,
    said: &HashMap<String, Value>,
    faults: &mut Faults,
) -> Result<(), sqlx::Error> {
    let (rates, limits) = fx::sql::all(db).await?;
    for set in rates {
        let id = set.id();
        if !says(said.get(&id), &super::rates::state(&set)) {
            faults.add("rate-set", format!("the rate {id} was set by nobody"));
        }
    }
    for limit in limits {
        let id = limit.id();
        if !says(said.get(&id), &super::fx_limits::state(&limit)) {
            faults.add("fx-limit-set", format!("the limit {id} was set by nobody"));
        }
    }
    Ok(())
}

/// Whether a line says this, whoever asked for it first.
fn says(line: Option<&Value>, state: &Value) -> bool {
    let mut members = state.as_object().into_iter().flatten();
    line.is_some_and(|line| members.all(|(name, value)| line[name] == *value))
}

/// A key that was replaced works until then, and no other one has an end of that kind. A key is
/// replaced once.
async fn keys(
    db: &mut AnyConnection,
    said: &HashMap<String, Value>,
    faults: &mut Faults,
) -> Result<(), sqlx::Error> {
    let sql = "SELECT id, grace_until FROM api_keys";
    for row in sqlx::query(sql).fetch_all(db).await? {
        let (id, until): (String, Option<i64>) = (row.try_get(0)?, row.try_get(1)?);
        let last = said.get(&id).map_or(Value::Null, |after| after["grace_until"].clone());
        if last != json!(until.map(Moment::from_micros)) {
            let what = format!("{id} is an API key that was replaced, or is not, by nobody");
            faults.add("key-replaced", what);
        }
    }
    Ok(())
}

/// Blacklists say what somebody put there.
async fn blocks(
    db: &mut AnyConnection,
    said: &HashMap<String, Value>,
    faults: &mut Faults,
) -> Result<(), sqlx::Error> {
    let sql = "SELECT id, scope, merchant_id, currency, subject, reason FROM blacklist";
    for row in sqlx::query(sql).fetch_all(db).await? {
        let text = |column| row.try_get::<String, _>(column);
        let (id, merchant) = (text("id")?, text("merchant_id")?);
        let subject = RecipientFields::from_json(&text("subject")?);
        let own: BTreeMap<&String, &String> = subject.own().collect();
        let state = json!({
            "scope": text("scope")?,
            "merchant_id": Some(merchant).filter(|id| !id.is_empty()),
            "currency": text("currency")?,
            "recipient": masked_fields(&json!(own).to_string()),
            "reason": text("reason")?,
        });
        if !says(said.get(&id), &state) {
            let what = format!("{id} is on the blacklist otherwise than somebody put it there");
            faults.add("blacklist-entry", what);
        }
    }
    Ok(())
}

/// Routes are as they came with the host, or as somebody made them.
async fn routes(
    db: &mut AnyConnection,
    said: &HashMap<String, Value>,
    faults: &mut Faults,
) -> Result<(), sqlx::Error> {
    let sql = "SELECT id, name, env, currency, method, rail, position, is_paused, merchants, \
               settings FROM routes";
    for row in sqlx::query(sql).fetch_all(db).await? {
        let text = |column| row.try_get::<String, _>(column);
        let parsed = |text: String| serde_json::from_str::<Value>(&text).unwrap_or_default();
        let (id, currency, method) = (text("id")?, text("currency")?, text("method")?);
        let (position, is_paused): (i64, i64) =
            (row.try_get("position")?, row.try_get("is_paused")?);
        let state = json!({
            "name": text("name")?,
            "env": text("env")?,
            "currency": currency,
            "method": method,
            "rail": text("rail")?,
            "position": position,
            "is_paused": is_paused != 0,
            "merchants": parsed(text("merchants")?),
            "settings": parsed(text("settings")?),
        });
        // What a start makes by itself has no line, and a name that follows from the rest.
        let made = json!({
            "name": seeded_name(&currency, &method),
            "position": 0,
            "is_paused": false,
            "merchants": [],
            "settings": {},
        });
        let is_as_said = match said.get(&id) {
            Some(last) => says(Some(last), &state),
            None => says(Some(&state), &made),
        };
        if !is_as_said {
            faults.add("route-settings", format!("route {id} was changed by nobody"));
        }
    }
    Ok(())
}

/// What the last line about each setting says: by the id of what was set.
async fn last_said(db: &mut AnyConnection) -> Result<HashMap<String, Value>, sqlx::Error> {
    let sql = "SELECT subject_id, after FROM audit WHERE action IN ('wallet.freeze', \
               'wallet.unfreeze', 'merchant.create', 'merchant.update', 'route.create', \
               'route.update', 'rate.set', 'fx_limit.set', 'key.rotate', 'blacklist.add') \
               ORDER BY id";
    let rows = sqlx::query(sql).fetch_all(db).await?;
    let mut said: HashMap<String, Value> = HashMap::new();
    for row in rows {
        let (id, after): (String, Option<String>) = (row.try_get(0)?, row.try_get(1)?);
        let after: Value =
            serde_json::from_str(after.as_deref().unwrap_or("null")).unwrap_or_default();
        // Two hosts may set the same thing within a tick of their clocks: what has a number goes by
        // it.
        let number = |line: &Value| line["version"].as_i64();
        if said.get(&id).is_none_or(|known| number(known) <= number(&after)) {
            said.insert(id, after);
        }
    }
    Ok(said)
}
