//! Figures about requests, for `/metrics`.

use std::time::Duration;

use http::{Method, StatusCode};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    surface: &'static str,
    method: &'static str,
    status: u16,
}

/// What is counted of every request.
#[derive(Clone, Debug)]
pub struct RequestMetrics {
    requests: Family<Labels, Counter>,
    seconds: Histogram,
}

impl Default for RequestMetrics {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            seconds: Histogram::new(exponential_buckets(0.000_5, 2.0, 16)),
        }
    }
}

impl RequestMetrics {
    pub(super) fn request(
        &self,
        (method, path): (&Method, &str),
        status: StatusCode,
        took: Duration,
    ) {
        let labels =
            Labels { surface: surface(path), method: verb(method), status: status.as_u16() };
        self.requests.get_or_create(&labels).inc();
        self.seconds.observe(took.as_secs_f64());
    }

    /// Puts the figures under `railhead_http_…`.
    pub fn register(&self, registry: &mut Registry) {
        let http = registry.sub_registry_with_prefix("http");
        http.register("requests", "Requests that were answered", self.requests.clone());
        http.register("request_seconds", "Time to the answer", self.seconds.clone());
    }
}

/// Whose call it is: labels stay few, whatever paths are asked for.
fn surface(path: &str) -> &'static str {
    let first = path.split('/').nth(1).unwrap_or_default();
    match first {
        "v1" => "merchant",
        "admin" => "operator",
        "notices" => "network",
        _ => "other",
    }
}

/// A method by its name; those that no call here has are one.
pub(crate) fn verb(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}
