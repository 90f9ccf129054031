//! What payouts leave behind, as the database counts it.

use super::server::{Engine, Server};

/// How large a database was.
pub(crate) struct Growth(Size);

#[derive(Clone, Copy, Default)]
struct Size {
    bytes: i64,
    wal: i64,
    rows: i64,
    index_entries: i64,
}

impl Growth {
    pub(crate) async fn begin(server: &Server) -> Self {
        Self(Size::of(server).await)
    }

    /// What has come since, per payout.
    pub(crate) async fn print(&self, server: &Server, payouts: usize) {
        if server.engine == Engine::Sqlite {
            return;
        }
        // Before the tables are cleaned up for counting: that writes as well.
        let wal = wal(server).await;
        let (now, before) = (Size::of(server).await, self.0);
        let each = |now: i64, before: i64| (now - before) as f64 / payouts.max(1) as f64;
        println!(
            "    left by each, about: {:.1} rows, {:.1} index entries, {:.0} bytes of database, {:.0} of WAL",
            each(now.rows, before.rows),
            each(now.index_entries, before.index_entries),
            each(now.bytes, before.bytes),
            each(wal, before.wal),
        );
    }
}

impl Size {
    async fn of(server: &Server) -> Self {
        if server.engine == Engine::Sqlite {
            return Self::default();
        }
        server.execute("VACUUM ANALYZE").await;
        let entries = |kind: &str| {
            format!(
                "SELECT CAST(COALESCE(SUM(c.reltuples), 0) AS BIGINT) FROM pg_class c \
                 JOIN pg_namespace n ON n.oid = c.relnamespace \
                 LEFT JOIN pg_am a ON a.oid = c.relam WHERE n.nspname = 'public' \
                 AND c.relkind = '{kind}' AND c.reltuples > 0 AND a.amname IN ('heap', 'btree')"
            )
        };
        Self {
            bytes: server.number("SELECT pg_database_size(current_database())").await,
            rows: server.number(&entries("r")).await,
            index_entries: server.number(&entries("i")).await,
            wal: wal(server).await,
        }
    }
}

async fn wal(server: &Server) -> i64 {
    server.number("SELECT CAST(pg_current_wal_lsn() - '0/0' AS BIGINT)").await
}
