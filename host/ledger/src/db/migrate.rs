//! The schema's history. Portable migrations are one text; what cannot be portable has a text
//! per engine under the same number.
//!
//! On PostgreSQL every text column gets collation C in step 7: the order of keys is the order of
//! locks. Whoever adds a table later says so there. Views follow: they hold on to their columns.

use sqlx::SqlSafeStr as _;
use sqlx::migrate::{Migration, MigrationType, Migrator};

use super::Engine;

struct Step {
    version: i64,
    name: &'static str,
    sqlite: &'static str,
    postgres: &'static str,
}

const IDENTITY: &str = include_str!("../../../../migrations/0001_identity.sql");
const LEDGER: &str = include_str!("../../../../migrations/0002_ledger.sql");
const PAYOUTS: &str = include_str!("../../../../migrations/0003_payouts.sql");
const WEBHOOKS: &str = include_str!("../../../../migrations/0004_webhooks.sql");
const RULES: &str = include_str!("../../../../migrations/0005_rules.sql");
const CONVERSIONS: &str = include_str!("../../../../migrations/0006_conversions.sql");
const BALANCES: &str = include_str!("../../../../migrations/0008_balances.sql");

const STEPS: &[Step] = &[
    Step { version: 1, name: "identity", sqlite: IDENTITY, postgres: IDENTITY },
    Step { version: 2, name: "ledger", sqlite: LEDGER, postgres: LEDGER },
    Step { version: 3, name: "payouts", sqlite: PAYOUTS, postgres: PAYOUTS },
    Step { version: 4, name: "webhooks", sqlite: WEBHOOKS, postgres: WEBHOOKS },
    Step { version: 5, name: "rules", sqlite: RULES, postgres: RULES },
    Step { version: 6, name: "conversions", sqlite: CONVERSIONS, postgres: CONVERSIONS },
    Step {
        version: 7,
        name: "append only",
        sqlite: include_str!("../../../../migrations/sqlite/0007_append_only.sql"),
        postgres: include_str!("../../../../migrations/postgres/0007_append_only.sql"),
    },
    Step { version: 8, name: "balances", sqlite: BALANCES, postgres: BALANCES },
];

/// Everything that leads to the present schema on this engine.
pub(super) fn migrator(engine: Engine) -> Migrator {
    let steps = STEPS.iter().zip(schema_texts(engine)).map(|(step, sql)| {
        let kind = MigrationType::Simple;
        Migration::new(step.version, step.name.into(), kind, sql.into_sql_str(), false)
    });
    Migrator::with_migrations(steps.collect())
}

/// The texts of all migrations, in order.
pub fn schema_texts(engine: Engine) -> impl Iterator<Item = &'static str> {
    STEPS.iter().map(move |step| match engine {
        Engine::Sqlite => step.sqlite,
        Engine::Postgres => step.postgres,
    })
}
