//! The schema is the one that the migrations made: nobody has taken a rule of it away.

use std::collections::BTreeSet;

use sqlx::{AnyConnection, Row as _};

use crate::db::{Engine, schema_texts};
use crate::ledger::verify::Faults;

/// Tables whose rows are written once, and the triggers that see to it on PostgreSQL.
const GUARDED: &[(&str, &[&str])] = &[
    ("journals", &["append_only", "no_truncate"]),
    ("audit", &["append_only", "no_truncate"]),
    ("conversions", &["append_only", "no_truncate"]),
    ("rail_calls", &["kept", "no_truncate", "unchanged"]),
    ("events", &["kept", "no_truncate", "unchanged"]),
    ("decisions", &["kept", "no_truncate", "unchanged"]),
    ("idempotency_keys", &["kept", "no_truncate", "unchanged"]),
    ("expiring_keys", &["kept", "no_truncate", "unchanged"]),
];

/// Compares tables, indexes and triggers with the migrations.
pub(super) async fn verify(
    db: &mut AnyConnection,
    engine: Engine,
    faults: &mut Faults,
) -> Result<(), sqlx::Error> {
    let sweeping: i64 =
        sqlx::query_scalar("SELECT COUNT(*) FROM sweeping").fetch_one(&mut *db).await?;
    if sweeping > 0 {
        faults.add("schema", "the guards against deletion are switched off for good");
    }
    let text: String = schema_texts(engine).collect::<Vec<_>>().join("\n");
    match engine {
        Engine::Sqlite => sqlite(db, &text, faults).await,
        Engine::Postgres => postgres(db, &text, faults).await,
    }
}

/// SQLite keeps every definition as it was written.
async fn sqlite(
    db: &mut AnyConnection,
    text: &str,
    faults: &mut Faults,
) -> Result<(), sqlx::Error> {
    let sql = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL \
               AND name NOT LIKE '\\_sqlx%' ESCAPE '\\' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
    let mut found = BTreeSet::new();
    for row in sqlx::query(sql).fetch_all(db).await? {
        let (name, definition): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        if !text.contains(definition.as_str()) {
            faults.add("schema", format!("{name} is not defined as it must be"));
        }
        found.insert(name);
    }
    let kinds = [
        "CREATE TABLE ",
        "CREATE UNIQUE INDEX ",
        "CREATE INDEX ",
        "CREATE TRIGGER ",
        "CREATE VIEW ",
    ];
    for name in kinds.iter().flat_map(|kind| defined(text, kind)) {
        if !found.contains(name) {
            faults.add("schema", format!("{name} is not there"));
        }
    }
    Ok(())
}

async fn postgres(
    db: &mut AnyConnection,
    text: &str,
    faults: &mut Faults,
) -> Result<(), sqlx::Error> {
    let sql = "SELECT CAST(c.relname AS TEXT) FROM pg_index i JOIN pg_class c \
               ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
               WHERE n.nspname = current_schema() AND i.indisunique AND i.indisvalid";
    let unique: Vec<String> = sqlx::query_scalar(sql).fetch_all(&mut *db).await?;
    let names = defined(text, "CREATE UNIQUE INDEX ").map(str::to_owned);
    let keys = defined(text, "CREATE TABLE ").map(|table| format!("{table}_pkey"));
    for name in names.chain(keys) {
        if !unique.contains(&name) {
            faults.add("schema", format!("the unique index {name} is not there"));
        }
    }
    let sql = "SELECT CAST(c.relname AS TEXT), CAST(t.tgname AS TEXT) FROM pg_trigger t \
               JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n \
               ON n.oid = c.relnamespace WHERE n.nspname = current_schema() \
               AND NOT t.tgisinternal AND t.tgenabled IN ('O', 'A')";
    let rows = sqlx::query(sql).fetch_all(&mut *db).await?;
    let found: BTreeSet<(String, String)> = rows
        .iter()
        .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
        .collect::<Result<_, sqlx::Error>>()?;
    let months = months(db).await?;
    for (table, triggers) in GUARDED {
        let own = months.iter().filter(|month| month.of == *table).map(|month| &*month.name);
        for name in own.chain([*table]) {
            for trigger in *triggers {
                if !found.contains(&(name.to_owned(), (*trigger).to_owned())) {
                    faults.add("schema", format!("the trigger {trigger} of {name} is not there"));
                }
            }
        }
    }
    for month in &months {
        let other = months.iter().find(|other| other.name == format!("{}_other", month.of));
        if other.is_none_or(|other| other.unique != month.unique) {
            let what = format!("{} is unique otherwise than other months", month.name);
            faults.add("schema", what);
        }
    }
    Ok(())
}

/// A table of a month.
struct Month {
    name: String,
    /// Of this table.
    of: String,
    /// What is unique in it: columns and conditions.
    unique: String,
}

async fn months(db: &mut AnyConnection) -> Result<Vec<Month>, sqlx::Error> {
    let sql = "SELECT CAST(c.relname AS TEXT), CAST(p.relname AS TEXT), \
               COALESCE(STRING_AGG(REGEXP_REPLACE(pg_get_indexdef(x.indexrelid), \
               '^.* USING ', ''), '; ' ORDER BY CAST(x.indkey AS TEXT)), '') \
               FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid \
               JOIN pg_class p ON p.oid = i.inhparent AND p.relkind = 'p' \
               JOIN pg_namespace n ON n.oid = p.relnamespace \
               LEFT JOIN pg_index x ON x.indrelid = c.oid AND x.indisunique AND x.indisvalid \
               WHERE n.nspname = current_schema() GROUP BY c.relname, p.relname";
    let rows = sqlx::query(sql).fetch_all(db).await?;
    rows.iter()
        .map(|row| {
            Ok(Month { name: row.try_get(0)?, of: row.try_get(1)?, unique: row.try_get(2)? })
        })
        .collect()
}

/// Names that a text defines by statements that begin like this.
fn defined<'a>(text: &'a str, kind: &'a str) -> impl Iterator<Item = &'a str> {
    text.lines().filter_map(move |line| {
        let rest = line.strip_prefix(kind)?;
        rest.split([' ', '(']).next()
    })
}
