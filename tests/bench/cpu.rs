//! Whose processor time a run took.

use super::server::{Engine, Server};

/// What the columns of [`Cpu::of_each`] are.
pub(crate) const COLUMNS: &str = "host, database, load, networks, nobody, stolen";

/// Processor time in microseconds: the host, its database, this process with its load and its
/// receivers, the simulated networks, what no process used, and what other machines on the same
/// processors took away: where that is much, times say nothing.
#[derive(Clone, Copy, Default)]
pub(crate) struct Cpu([u64; 6]);

impl Cpu {
    /// So far.
    pub(crate) fn now(server: &Server) -> Self {
        let database = match server.engine {
            Engine::Postgres => postgres_pids().into_iter().map(of_process).sum(),
            Engine::Sqlite => 0,
        };
        let [host, networks] = server.pids().map(of_process);
        let [nobody, stolen] = idle_and_stolen();
        Self([host, database, of_process(std::process::id()), networks, nobody, stolen])
    }

    /// Since then.
    pub(crate) fn since(self, before: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i].saturating_sub(before.0[i])))
    }

    /// Together.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] + other.0[i]))
    }

    /// For each of so many, as columns.
    pub(crate) fn of_each(self, count: usize) -> String {
        let each = self.0.map(|us| format!("{:>4.0}", us as f64 / count.max(1) as f64));
        each.join(", ")
    }
}

/// The system counts in ticks of 10 ms.
const TICK_US: u64 = 10_000;

fn of_process(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // utime, stime, and those of ended children.
    stat.rsplit_once(')').map_or(0, |(_, fields)| ticks(fields, 11..15)) * TICK_US
}

/// How long the machine's processors were idle or waited for a disk; how long other machines had them.
fn idle_and_stolen() -> [u64; 2] {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = stat.lines().next().unwrap_or_default();
    [4..6, 8..9].map(|which| ticks(line, which) * TICK_US)
}

fn ticks(fields: &str, which: std::ops::Range<usize>) -> u64 {
    let fields = fields.split_whitespace().skip(which.start).take(which.len());
    fields.filter_map(|field| field.parse::<u64>().ok()).sum()
}

fn postgres_pids() -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap();
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name.trim() == "postgres"
    })
    .collect()
}
