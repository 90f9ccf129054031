//! What the simulated networks remember: a book for each rail, in the database or in this process.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use sqlx::Row as _;

use crate::db::Db;
use crate::wasm::simulator::{Book, Page, Transfer};

/// All books. Cheap to clone.
#[derive(Clone)]
pub(super) enum Books {
    Memory(Arc<Mutex<BTreeMap<Place, (i64, Transfer)>>>),
    Database(Db),
}

/// Rail and reference.
type Place = (String, String);

/// One rail's.
struct BookOf {
    books: Books,
    rail: String,
}

impl Books {
    pub(super) fn new(db: Option<Db>) -> Self {
        match db {
            Some(db) => Self::Database(db),
            None => Self::Memory(Arc::default()),
        }
    }

    /// The book of a rail's network.
    pub(super) fn of(&self, rail: &str) -> Arc<dyn Book> {
        Arc::new(BookOf { books: self.clone(), rail: rail.to_owned() })
    }

    /// Writes down what a call has changed, unless somebody else changed it since it was read.
    pub(super) async fn write(
        &self,
        rail: &str,
        (read, kept): (&BTreeMap<String, Option<i64>>, BTreeMap<String, Transfer>),
    ) -> Result<bool, sqlx::Error> {
        let version = |reference: &str| read.get(reference).copied().flatten();
        match self {
            Self::Memory(pages) => {
                let mut pages = pages.lock().unwrap_or_else(PoisonError::into_inner);
                let place = |reference: &String| (rail.to_owned(), reference.clone());
                let is_as_read = |reference: &String| {
                    pages.get(&place(reference)).map(|(now, _)| *now) == version(reference)
                };
                if !kept.keys().all(is_as_read) {
                    return Ok(false);
                }
                for (reference, transfer) in kept {
                    let next = version(&reference).unwrap_or(0) + 1;
                    pages.insert(place(&reference), (next, transfer));
                }
                Ok(true)
            }
            Self::Database(_) if kept.is_empty() => Ok(true),
            Self::Database(db) => {
                let mut tx = db.write().await?;
                for (reference, transfer) in kept {
                    let json = serde_json::to_string(&transfer).unwrap_or_default();
                    let known = version(&reference);
                    let sql = match known {
                        Some(_) => {
                            "UPDATE simulator_transfers SET transfer = $3, version = $4 + 1 \
                             WHERE rail = $1 AND reference = $2 AND version = $4"
                        }
                        None => {
                            "INSERT INTO simulator_transfers (rail, reference, transfer, version) \
                             VALUES ($1, $2, $3, $4 + 1) ON CONFLICT (rail, reference) DO NOTHING"
                        }
                    };
                    let query = sqlx::query(sql).bind(rail).bind(&reference).bind(json);
                    let written = query.bind(known.unwrap_or(0)).execute(tx.conn()).await?;
                    if written.rows_affected() == 0 {
                        return Ok(false);
                    }
                }
                tx.commit().await?;
                Ok(true)
            }
        }
    }

    /// Every transfer, by rail and reference.
    pub(super) async fn all(&self) -> Result<Vec<Transfer>, sqlx::Error> {
        match self {
            Self::Memory(pages) => {
                let pages = pages.lock().unwrap_or_else(PoisonError::into_inner);
                Ok(pages.values().map(|(_, transfer)| transfer.clone()).collect())
            }
            Self::Database(db) => {
                let sql = "SELECT transfer FROM simulator_transfers ORDER BY rail, reference";
                let rows = sqlx::query(sql).fetch_all(db.pool()).await?;
                let transfers = rows.iter().filter_map(|row| {
                    serde_json::from_str(&row.try_get::<String, _>("transfer").ok()?).ok()
                });
                Ok(transfers.collect())
            }
        }
    }

    async fn find(&self, rail: &str, reference: &str) -> Result<Page, sqlx::Error> {
        match self {
            Self::Memory(pages) => {
                let pages = pages.lock().unwrap_or_else(PoisonError::into_inner);
                Ok(pages.get(&(rail.to_owned(), reference.to_owned())).cloned())
            }
            Self::Database(db) => {
                let sql = "SELECT version, transfer FROM simulator_transfers \
                           WHERE rail = $1 AND reference = $2";
                let query = sqlx::query_as(sql).bind(rail).bind(reference);
                let row: Option<(i64, String)> = query.fetch_optional(db.pool()).await?;
                let transfer = |(version, json): (i64, String)| {
                    serde_json::from_str(&json).map(|transfer| (version, transfer))
                };
                row.map(transfer).transpose().map_err(|cause| sqlx::Error::Decode(cause.into()))
            }
        }
    }
}

impl Book for BookOf {
    fn find<'a>(
        &'a self,
        reference: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<Page, String>> + Send + 'a>> {
        Box::pin(async {
            let found = self.books.find(&self.rail, reference).await;
            found.map_err(|cause| cause.to_string())
        })
    }
}
