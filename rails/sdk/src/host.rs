//! The host's imports as plain functions.
//!
//! In the sandbox they call the host. Natively, where a rail's own tests run, they call the
//! [`double`] that the test installed on its thread.

use crate::imports::http::{Failure, Request, Response};

/// A row of a reference table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row(pub Vec<(String, String)>);

impl Row {
    /// The cell in this column; an empty string where there is none.
    #[must_use]
    pub fn get(&self, column: &str) -> &str {
        self.0.iter().find(|(name, _)| name == column).map_or("", |(_, value)| value)
    }
}

/// Sends a request to a declared endpoint.
///
/// # Errors
/// The failure says whether a byte of the request left the host.
pub fn send(request: &Request) -> Result<Response, Failure> {
    platform::send(request)
}

/// The operator's value for a declared setting, or the declared default.
#[must_use]
pub fn setting(name: &str) -> Option<String> {
    platform::setting(name)
}

/// Rows of a reference table whose column holds this value.
#[must_use]
pub fn rows(table: &str, column: &str, value: &str) -> Vec<Row> {
    platform::rows(table, column, value)
}

/// Rows of a reference table whose columns `start` and `end` hold this value between them.
#[must_use]
pub fn rows_around(table: &str, value: &str) -> Vec<Row> {
    platform::rows_around(table, value)
}

/// Whether there is such a reference table.
#[must_use]
pub fn has_table(table: &str) -> bool {
    platform::has_table(table)
}

/// The instant of this call, milliseconds since 1970 UTC.
#[must_use]
pub fn now_ms() -> u64 {
    platform::now_ms()
}

/// A line for the operator's log.
pub fn warn(message: &str) {
    platform::warn(message);
}

#[cfg(target_family = "wasm")]
mod platform {
    use super::Row;
    use crate::imports::http::{Failure, Request, Response};
    use crate::imports::{clock, http, log, settings, tables};

    pub(super) fn send(request: &Request) -> Result<Response, Failure> {
        http::send(request)
    }

    pub(super) fn setting(name: &str) -> Option<String> {
        settings::get(name)
    }

    pub(super) fn rows(table: &str, column: &str, value: &str) -> Vec<Row> {
        read(tables::find(table, column, value))
    }

    pub(super) fn rows_around(table: &str, value: &str) -> Vec<Row> {
        read(tables::range(table, value))
    }

    fn read(rows: Vec<Vec<tables::Cell>>) -> Vec<Row> {
        rows.into_iter()
            .map(|cells| Row(cells.into_iter().map(|cell| (cell.column, cell.value)).collect()))
            .collect()
    }

    pub(super) fn has_table(table: &str) -> bool {
        tables::present(table)
    }

    pub(super) fn now_ms() -> u64 {
        clock::now_ms()
    }

    pub(super) fn warn(message: &str) {
        log::write(log::Level::Warn, message);
    }
}

#[cfg(not(target_family = "wasm"))]
mod platform {
    use super::{Row, double};
    use crate::imports::http::{Failure, Request, Response};

    pub(super) fn send(request: &Request) -> Result<Response, Failure> {
        double::with(|host| (host.send)(request))
    }

    pub(super) fn setting(name: &str) -> Option<String> {
        double::with(|host| host.settings.get(name).cloned())
    }

    pub(super) fn rows(table: &str, column: &str, value: &str) -> Vec<Row> {
        double::with(|host| {
            host.tables
                .get(table)
                .into_iter()
                .flatten()
                .filter(|row| {
                    row.get(column) == value
                        || row.get(column).split_whitespace().any(|word| word == value)
                })
                .cloned()
                .collect()
        })
    }

    pub(super) fn rows_around(table: &str, value: &str) -> Vec<Row> {
        let holds = |row: &&Row| {
            let (start, end) = (row.get("start"), row.get("end"));
            start.len() == value.len() && end.len() == value.len() && start <= value && value <= end
        };
        double::with(|host| {
            host.tables.get(table).into_iter().flatten().filter(holds).cloned().collect()
        })
    }

    pub(super) fn has_table(table: &str) -> bool {
        double::with(|host| host.tables.contains_key(table))
    }

    pub(super) fn now_ms() -> u64 {
        double::with(|host| host.now_ms)
    }

    pub(super) fn warn(message: &str) {
        double::with(|host| host.log.push(message.to_owned()));
    }
}

/// A stand-in for the host in a rail's native tests.
#[cfg(not(target_family = "wasm"))]
pub mod double {
    use std::cell::RefCell;
    use std::collections::HashMap;
    use std::rc::Rc;

    use super::Row;
    use crate::imports::http::{Failure, Request, Response};
    use crate::request::plain;

    /// What the network answers in a test.
    pub type Network = Box<dyn FnMut(&Request) -> Result<Response, Failure>>;

    /// The host as one test wants it.
    pub struct Host {
        /// Answers every request.
        pub send: Network,
        /// Values of declared settings.
        pub settings: HashMap<String, String>,
        /// Reference tables by name.
        pub tables: HashMap<String, Vec<Row>>,
        /// The instant of the call.
        pub now_ms: u64,
        /// Lines that the rail logged.
        pub log: Vec<String>,
    }

    impl Default for Host {
        fn default() -> Self {
            Self {
                send: Box::new(|_| Err(Failure::NotSent("no network in this test".into()))),
                settings: HashMap::new(),
                tables: HashMap::new(),
                now_ms: 0,
                log: Vec::new(),
            }
        }
    }

    thread_local! {
        static HOST: RefCell<Host> = RefCell::new(Host::default());
    }

    /// Installs `host` for this thread.
    pub fn install(host: Host) {
        HOST.set(host);
    }

    /// Requests that reached the network.
    pub type Sent = Rc<RefCell<Vec<Request>>>;

    /// Installs `host` with a network that always gives this answer; what is sent to it comes out.
    #[must_use]
    pub fn install_with(mut host: Host, answer: Result<(u16, String), Failure>) -> Sent {
        let sent = Sent::default();
        let seen = Rc::clone(&sent);
        host.send = Box::new(move |request| {
            seen.borrow_mut().push(request.clone());
            let written = |(status, body): (u16, String)| Response {
                status,
                headers: Vec::new(),
                body: body.into_bytes(),
            };
            answer.clone().map(written)
        });
        install(host);
        sent
    }

    /// The body of the only request that was sent.
    ///
    /// # Panics
    /// There was none, or another one, or it held a secret.
    #[must_use]
    #[allow(clippy::expect_used, reason = "for tests")]
    pub fn body(sent: &Sent) -> String {
        let sent = sent.borrow();
        assert_eq!(sent.len(), 1, "one request");
        let body = plain(&sent[0].body).expect("nothing secret in it");
        String::from_utf8(body).expect("UTF-8")
    }

    pub(super) fn with<T>(act: impl FnOnce(&mut Host) -> T) -> T {
        HOST.with_borrow_mut(act)
    }

    /// Rows of a CSV text: the first line that is not a comment names the columns. Cells hold
    /// no quotes and no commas.
    #[must_use]
    pub fn table(csv: &str) -> Vec<Row> {
        let mut lines = csv.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        let columns: Vec<&str> = lines.next().unwrap_or("").split(',').collect();
        lines
            .map(|line| {
                let cells = columns.iter().zip(line.split(','));
                Row(cells.map(|(name, cell)| ((*name).to_owned(), cell.to_owned())).collect())
            })
            .collect()
    }
}
