//! Figures about the writer, for `/metrics`.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// What a writer counts.
#[derive(Debug)]
pub struct WriterMetrics {
    batch_commands: Histogram,
    batch_seconds: Histogram,
    pub(super) begun_again: Counter,
    pub(super) unanswered_commits: Counter,
    pub(super) shed: Counter,
}

impl Default for WriterMetrics {
    fn default() -> Self {
        Self {
            batch_commands: Histogram::new(exponential_buckets(1.0, 2.0, 10)),
            batch_seconds: Histogram::new(exponential_buckets(0.000_25, 2.0, 16)),
            begun_again: Counter::default(),
            unanswered_commits: Counter::default(),
            shed: Counter::default(),
        }
    }
}

impl WriterMetrics {
    #[expect(clippy::cast_precision_loss, reason = "a batch has a few hundred commands")]
    pub(super) fn batch(&self, commands: usize, took: Duration) {
        self.batch_commands.observe(commands as f64);
        self.batch_seconds.observe(took.as_secs_f64());
    }

    /// Puts the figures under `railhead_writer_…`.
    pub fn register(&self, registry: &mut Registry) {
        let writer = registry.sub_registry_with_prefix("writer");
        let (commands, seconds) = (self.batch_commands.clone(), self.batch_seconds.clone());
        writer.register("batch_commands", "Commands in one transaction", commands);
        writer.register("batch_seconds", "Time of one transaction, tries included", seconds);
        let again = self.begun_again.clone();
        writer.register("batches_begun_again", "Batches begun again after a conflict", again);
        let unanswered = self.unanswered_commits.clone();
        writer.register("unanswered_commits", "COMMITs whose answer was lost", unanswered);
        let shed = self.shed.clone();
        writer.register("requests_shed", "Requests turned away because too much waits", shed);
    }
}
