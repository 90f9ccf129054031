//! What numbers may be configured. With others a host would be ready and do nothing, or break at
//! its first request.

use std::ops::RangeInclusive;

use super::{Config, limits};

/// Callers' connections: more than one machine serves.
const CONNECTIONS_MAX: u64 = 1_000_000;
/// Connections to the database: many times what a PostgreSQL server lets in unless it is told to.
const DATABASE_CONNECTIONS_MAX: u64 = 1_000;
/// An hour: whoever asked has gone long before.
const TIMEOUT_S_MAX: u64 = 3_600;
/// Payments over one route, or webhooks, that are under way at once.
const AT_ONCE_MAX: u64 = 10_000;
/// A year of hours.
const HOURS_MAX: u64 = 366 * 24;
/// A hundred years of days.
const DAYS_MAX: u64 = 36_525;

/// A number that was configured: its name, what it is, and what it may be.
type Number = (&'static str, u64, RangeInclusive<u64>);

impl Config {
    /// What stands against the numbers in these settings.
    ///
    /// # Errors
    /// The first setting that no host can work with, and what it must be.
    pub fn check_numbers(&self) -> Result<(), String> {
        let odd = self.numbers().into_iter().find(|(_, value, range)| !range.contains(value));
        let Some((name, value, range)) = odd else { return Ok(()) };
        let (least, most) = range.into_inner();
        match value < least {
            true => Err(format!("{name} is {value}, and must be {least} at least")),
            false => Err(format!("{name} is {value}, and must be {most} at most")),
        }
    }

    /// All of them but those of rate sources and approvals, which are looked at with what they
    /// belong to. How long things are kept at least is said by what else relies on them.
    fn numbers(&self) -> Vec<Number> {
        let (server, webhooks, retention) = (&self.server, &self.webhooks, &self.retention);
        let places = size(limits::CONNECTIONS_MIN)..=CONNECTIONS_MAX;
        let budget = 1..=u64::from(u32::MAX);
        let (days, hours) = (0..=DAYS_MAX, 1..=HOURS_MAX);
        let per_minute = |name, requests: u32| (name, u64::from(requests), budget.clone());
        let kept = |name, number: u32| (name, u64::from(number), days.clone());
        let every = |name, number: u32| (name, u64::from(number), hours.clone());
        let at_once = |name, number| (name, size(number), 1..=AT_ONCE_MAX);
        let database = u64::from(server.database_connections);
        let mut numbers = vec![
            ("server.connections_max", size(server.connections_max), places),
            ("server.timeout_s", server.timeout_s, 1..=TIMEOUT_S_MAX),
            ("server.database_connections", database, 1..=DATABASE_CONNECTIONS_MAX),
            per_minute("limits.read_per_minute", self.limits.read_per_minute),
            per_minute("limits.write_per_minute", self.limits.write_per_minute),
            per_minute("limits.bulk_per_minute", self.limits.bulk_per_minute),
            per_minute("limits.anonymous_per_minute", self.limits.anonymous_per_minute),
            per_minute("admin.requests_per_minute", self.admin.requests_per_minute),
            ("writer.batch_max", size(self.writer.batch_max), 1..=size(limits::BATCH_MAX)),
            at_once("worker.dispatch_concurrency", self.worker.dispatch_concurrency),
            at_once("webhooks.concurrency", webhooks.concurrency),
            every("alerts.remind_hours", self.alerts.remind_hours),
            every("anchors.every_hours", self.anchors.every_hours),
            kept("rules.decisions_kept_days", self.rules.decisions_kept_days),
            kept("retention.idempotency_days", retention.idempotency_days),
            kept("retention.events_days", retention.events_days),
            kept("retention.evidence_days", retention.evidence_days),
            kept("retention.deliveries_days", retention.deliveries_days),
            kept("retention.request_log_days", retention.request_log_days),
        ];
        let ports = 1..=u64::from(u16::MAX);
        let port = |port: &u16| ("webhooks.extra_ports", u64::from(*port), ports.clone());
        numbers.extend(webhooks.extra_ports.iter().map(port));
        numbers
    }
}

fn size(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of a configuration with this change.
    fn refusal(change: impl FnOnce(&mut Config)) -> Option<String> {
        let mut config = Config::default();
        change(&mut config);
        config.check_numbers().err()
    }

    #[test]
    fn what_is_configured_unless_somebody_says_otherwise_is_within_bounds() {
        assert_eq!(refusal(|_| {}), None);
        let with_ports = |config: &mut Config| config.webhooks.extra_ports = vec![1, u16::MAX];
        assert_eq!(refusal(with_ports), None);
    }

    #[test]
    fn every_number_has_a_name_of_its_own_and_ends_that_may_be_reached() {
        let numbers = Config::default().numbers();
        let names: std::collections::BTreeSet<_> = numbers.iter().map(|(name, ..)| *name).collect();
        assert_eq!(names.len(), numbers.len());
        for (name, value, range) in numbers {
            assert!(range.start() < range.end() && range.contains(&value), "{name}");
        }
    }

    #[test]
    fn a_number_that_no_host_can_work_with_is_named_with_what_it_must_be() {
        let refused = |change: fn(&mut Config), name: &str, words: &str| {
            let why = refusal(change).expect(name);
            assert_eq!(why, format!("{name} is {words}"));
        };
        refused(|c| c.server.timeout_s = 0, "server.timeout_s", "0, and must be 1 at least");
        refused(
            |c| c.server.timeout_s = u64::MAX,
            "server.timeout_s",
            "18446744073709551615, and must be 3600 at most",
        );
        refused(
            |c| c.server.connections_max = 15,
            "server.connections_max",
            "15, and must be 16 at least",
        );
        refused(
            |c| c.server.database_connections = 0,
            "server.database_connections",
            "0, and must be 1 at least",
        );
        refused(
            |c| c.admin.requests_per_minute = 0,
            "admin.requests_per_minute",
            "0, and must be 1 at least",
        );
        refused(
            |c| c.worker.dispatch_concurrency = usize::MAX >> 3,
            "worker.dispatch_concurrency",
            "2305843009213693951, and must be 10000 at most",
        );
        refused(|c| c.writer.batch_max = 257, "writer.batch_max", "257, and must be 256 at most");
        refused(
            |c| c.retention.events_days = u32::MAX,
            "retention.events_days",
            "4294967295, and must be 36525 at most",
        );
        refused(
            |c| c.webhooks.extra_ports = vec![8444, 0],
            "webhooks.extra_ports",
            "0, and must be 1 at least",
        );
    }
}
