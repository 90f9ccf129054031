//! Figures about deliveries of webhooks, for `/metrics`.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    outcome: &'static str,
}

/// What is counted of every attempt to deliver.
#[derive(Clone, Debug)]
pub struct DeliveryMetrics {
    attempts: Family<Labels, Counter>,
    seconds: Histogram,
}

impl Default for DeliveryMetrics {
    fn default() -> Self {
        Self {
            attempts: Family::default(),
            seconds: Histogram::new(exponential_buckets(0.001, 2.0, 15)),
        }
    }
}

impl DeliveryMetrics {
    /// An attempt was made, and `delivered` or `failed`.
    pub fn attempt(&self, outcome: &'static str, took: std::time::Duration) {
        self.attempts.get_or_create(&Labels { outcome }).inc();
        self.seconds.observe(took.as_secs_f64());
    }

    /// Puts the figures under `railhead_deliveries_…`.
    pub fn register(&self, registry: &mut Registry) {
        let deliveries = registry.sub_registry_with_prefix("deliveries");
        let attempts = self.attempts.clone();
        deliveries.register("attempts", "Attempts to deliver a webhook", attempts);
        deliveries.register("seconds", "Time of an exchange with a receiver", self.seconds.clone());
    }
}
