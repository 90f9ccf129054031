//! PostgreSQL by itself: what every other figure of it is a multiple of, so that runs on
//! different machines can be compared.

use std::process::{Command, Stdio};
use std::time::Duration;

use super::server::{drop_database, new_database};

/// Ten branches: eight clients meet on them now and then, as payouts of fifty wallets do.
const SCALE: &str = "10";

/// TPC-B's transactions a second, as `pgbench` runs them: 8 clients, prepared statements. Nothing
/// without a server.
#[derive(Clone, Copy)]
pub(crate) struct TpcB(Option<f64>);

impl TpcB {
    /// Measures it in a database of its own.
    pub(crate) async fn measure(length: Duration) -> Self {
        if std::env::var("TEST_POSTGRES").is_err() {
            return Self(None);
        }
        let url = new_database().await;
        pgbench(&["--initialize", "--quiet", "--scale", SCALE], &url);
        let seconds = length.as_secs().to_string();
        let run = ["--client", "8", "--jobs", "2", "--protocol", "prepared", "--time", &seconds];
        let said = pgbench(&run, &url);
        drop_database(&url).await;
        let line = said.lines().find_map(|line| line.strip_prefix("tps = "));
        let rate = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        let rate = rate.expect("a rate in what pgbench says");
        println!(
            "PostgreSQL, TPC-B by pgbench (8 clients, prepared, scale {SCALE}): {rate:.0}/s\n"
        );
        Self(Some(rate))
    }

    /// A rate, and how many times the one of TPC-B it is.
    pub(crate) fn against(self, per_second: f64) -> String {
        match self.0 {
            Some(base) => format!("{per_second:.0}/s, {:.2} x TPC-B", per_second / base),
            None => format!("{per_second:.0}/s"),
        }
    }
}

fn pgbench(arguments: &[&str], url: &str) -> String {
    let output = Command::new("pgbench")
        .args(arguments)
        .arg(url)
        .stderr(Stdio::piped())
        .output()
        .expect("pgbench, which comes with PostgreSQL, on the PATH");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
