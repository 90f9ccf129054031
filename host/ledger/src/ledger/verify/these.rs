//! Objects that are looked at together.

use sqlx::any::AnyArguments;
use sqlx::query::Query;
use sqlx::{Any, AnyConnection, AssertSqlSafe};

use crate::db::Engine;

use super::Fresh;

/// Objects that are looked at together, or all that there are.
pub struct These {
    engine: Engine,
    which: Which,
    parameters: Vec<String>,
}

enum Which {
    All,
    /// Those in a list, as JSON.
    Some,
    /// Those after one id, to another one: in tables of months that is one look into each.
    Between,
}

impl These {
    /// Some.
    #[must_use]
    pub fn some<'a>(engine: Engine, ids: impl Iterator<Item = &'a str>) -> Self {
        let ids = serde_json::json!(ids.collect::<Vec<_>>()).to_string();
        Self { engine, which: Which::Some, parameters: vec![ids] }
    }

    /// All whose ids come after one, up to another one.
    #[must_use]
    pub fn between(engine: Engine, after: &str, to: &str) -> Self {
        let parameters = vec![after.to_owned(), to.to_owned()];
        Self { engine, which: Which::Between, parameters }
    }

    /// All.
    #[must_use]
    pub fn all(engine: Engine) -> Self {
        Self { engine, which: Which::All, parameters: Vec::new() }
    }

    /// Whether all are meant.
    #[must_use]
    pub fn are_all(&self) -> bool {
        matches!(self.which, Which::All)
    }

    /// The condition that a column names one of them, with [`Self::parameters`].
    #[must_use]
    pub fn named_by(&self, column: &str) -> String {
        match self.which {
            Which::All => "1 = 1".to_owned(),
            Which::Some => self.engine.among(column, "$1"),
            Which::Between => format!("({column} > $1 AND {column} <= $2)"),
        }
    }

    /// A query with every `{these column}` filled in.
    #[must_use]
    pub fn filled_in(&self, sql: &str) -> String {
        fill_in(sql, "{these ", |column| self.named_by(column))
    }

    /// The parameters of such a query, which must have a column to fill in.
    #[must_use]
    pub fn parameters(&self) -> &[String] {
        &self.parameters
    }

    /// A query with every `{these column}` filled in, and its parameters.
    pub fn query(&self, sql: &str) -> Query<'static, Any, AnyArguments> {
        let query = sqlx::query(AssertSqlSafe(self.filled_in(sql)));
        self.parameters.iter().cloned().fold(query, Query::bind)
    }
}

/// The way through the objects of a table, some at a time.
pub struct Walk {
    engine: Engine,
    table: &'static str,
    at_a_time: usize,
    rest: Rest,
}

enum Rest {
    /// All whose ids come after one.
    After(String),
    /// These, the next ones last.
    Ids(Vec<String>),
}

impl Walk {
    /// Begins: where everything is looked at with all of a table, otherwise with those whose ids a
    /// query finds, in which `{fresh table name}` is filled in.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn begin(
        db: &mut AnyConnection,
        (engine, fresh): (Engine, &Fresh),
        (table, touched): (&'static str, &str),
        at_a_time: usize,
    ) -> Result<Self, sqlx::Error> {
        let rest = match fresh.is_all() {
            true => Rest::After(String::new()),
            false => {
                let sql = format!("{} ORDER BY 1 DESC", fresh.filled_in(touched));
                Rest::Ids(sqlx::query_scalar(AssertSqlSafe(sql)).fetch_all(db).await?)
            }
        };
        Ok(Self { engine, table, at_a_time, rest })
    }

    /// The next ones; nothing at the end.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn next(&mut self, db: &mut AnyConnection) -> Result<Option<These>, sqlx::Error> {
        match &mut self.rest {
            Rest::After(after) => {
                let (table, most) = (self.table, self.at_a_time);
                let sql = format!("SELECT id FROM {table} WHERE id > $1 ORDER BY id LIMIT {most}");
                let query = sqlx::query_scalar(AssertSqlSafe(sql)).bind(after.clone());
                let ids: Vec<String> = query.fetch_all(db).await?;
                let Some(last) = ids.into_iter().next_back() else { return Ok(None) };
                let these = These::between(self.engine, after, &last);
                *after = last;
                Ok(Some(these))
            }
            Rest::Ids(rest) if rest.is_empty() => Ok(None),
            Rest::Ids(rest) => {
                let some = rest.split_off(rest.len().saturating_sub(self.at_a_time));
                Ok(Some(These::some(self.engine, some.iter().map(String::as_str))))
            }
        }
    }
}

/// A query with every part that begins so, and ends with `}`, filled in.
pub fn fill_in(sql: &str, begins: &str, with: impl Fn(&str) -> String) -> String {
    let mut parts = sql.split(begins);
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (of, rest) = part.split_once('}').unwrap_or((part, ""));
        filled += &with(of);
        filled += rest;
    }
    filled
}
