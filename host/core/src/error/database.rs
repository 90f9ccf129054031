//! What a failure of the database means for whoever was at work.

/// Kinds of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Connections, locks and space come and go: another try may succeed.
    Passing,
    /// The storage is broken. Only a restart can tell what it holds.
    Storage,
    /// The statement, its values or what it read: another try would fail the same way.
    Statement,
}

/// What an error is.
#[must_use]
pub fn failure(cause: &sqlx::Error) -> Failure {
    use sqlx::Error as E;
    match cause {
        E::Database(database) => code(&database.code().unwrap_or_default()),
        E::Io(_)
        | E::Tls(_)
        | E::Protocol(_)
        | E::PoolTimedOut
        | E::PoolClosed
        | E::WorkerCrashed
        | E::BeginFailed => Failure::Passing,
        _ => Failure::Statement,
    }
}

/// Whether somebody holds what was to be locked: the database is well.
#[must_use]
pub fn is_held(cause: &sqlx::Error) -> bool {
    matches!(cause, sqlx::Error::Database(it) if it.code().as_deref() == Some("55P03"))
}

/// PostgreSQL's codes have five characters, SQLite's extended codes are numbers below 2^16.
fn code(code: &str) -> Failure {
    if code.len() == 5 {
        // Connection exceptions, insufficient resources, serialization failure, deadlock, lock
        // or statement timeout, a session given up, shutdown, read-only while in recovery.
        let classes = ["08", "53"];
        let codes = [
            "25006", "25P03", "40001", "40P01", "55P03", "57014", "57P01", "57P02", "57P03",
            "57P05",
        ];
        let passes = classes.contains(&&code[..2]) || codes.contains(&code);
        return if passes { Failure::Passing } else { Failure::Statement };
    }
    match code.parse::<u32>().unwrap_or(0) & 0xff {
        SQLITE_BUSY | SQLITE_LOCKED | SQLITE_FULL => Failure::Passing,
        SQLITE_IOERR | SQLITE_CORRUPT | SQLITE_NOTADB => Failure::Storage,
        _ => Failure::Statement,
    }
}

const SQLITE_BUSY: u32 = 5;
const SQLITE_LOCKED: u32 = 6;
const SQLITE_IOERR: u32 = 10;
const SQLITE_CORRUPT: u32 = 11;
const SQLITE_FULL: u32 = 13;
const SQLITE_NOTADB: u32 = 26;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_told_apart_by_their_codes() {
        for passing in ["40001", "40P01", "08006", "53300", "57P01", "25P03", "5", "6", "261"] {
            assert_eq!(code(passing), Failure::Passing, "{passing}");
        }
        for broken in ["10", "522", "11", "26"] {
            assert_eq!(code(broken), Failure::Storage, "{broken}");
        }
        for wrong in ["23505", "23514", "22021", "19", "2067", "1"] {
            assert_eq!(code(wrong), Failure::Statement, "{wrong}");
        }
        let silent = std::io::Error::from(std::io::ErrorKind::TimedOut);
        assert_eq!(failure(&silent.into()), Failure::Passing);
        assert_eq!(failure(&sqlx::Error::RowNotFound), Failure::Statement);
    }
}
