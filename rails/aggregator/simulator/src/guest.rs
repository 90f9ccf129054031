//! The exports of the component. Nothing is decided here.
#![allow(unsafe_code, reason = "the macro's own")]

use railhead_simulator::types::{Answer, Event, Obstacle, Request, Transfer};
use railhead_simulator::{Network, export_network};

struct Aggregator;

impl Network for Aggregator {
    fn handle(request: Request) -> Answer {
        crate::handle(&request)
    }

    fn tell(reference: String, event: Event) -> Result<Transfer, Obstacle> {
        crate::tell(&reference, event)
    }
}

export_network!(Aggregator);
