//! Figures about transfers, for `/metrics`.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// A call of a rail, and what it came to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    route: String,
    env: &'static str,
    operation: &'static str,
    outcome: &'static str,
}

/// What the engine counts.
#[derive(Debug)]
pub struct TransferMetrics {
    calls: Family<CallLabels, Counter>,
    seconds: Histogram,
    late_results: Counter,
}

impl Default for TransferMetrics {
    fn default() -> Self {
        Self {
            calls: Family::default(),
            seconds: Histogram::new(exponential_buckets(0.005, 2.0, 14)),
            late_results: Counter::default(),
        }
    }
}

impl TransferMetrics {
    pub(super) fn call(
        &self,
        (route, env): (&str, &'static str),
        (operation, outcome): (&'static str, &'static str),
        took: std::time::Duration,
    ) {
        let labels = CallLabels { route: route.to_owned(), env, operation, outcome };
        self.calls.get_or_create(&labels).inc();
        self.seconds.observe(took.as_secs_f64());
    }

    /// A result came when somebody else had taken over.
    pub(super) fn came_late(&self) {
        self.late_results.inc();
    }

    /// Puts the figures under `railhead_transfers_…`.
    pub fn register(&self, registry: &mut Registry) {
        let transfers = registry.sub_registry_with_prefix("transfers");
        let calls = self.calls.clone();
        transfers.register("calls", "Calls of rails, by what they came to", calls);
        let seconds = self.seconds.clone();
        transfers.register("call_seconds", "Time that calls of rails took", seconds);
        let late_results = self.late_results.clone();
        transfers.register(
            "late_results",
            "Results that came when the claim was lost",
            late_results,
        );
    }
}
