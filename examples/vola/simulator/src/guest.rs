//! The exports of the component. Nothing is decided here.

#[allow(unsafe_code, missing_docs, unreachable_pub, unused_qualifications, clippy::all)]
mod bindings {
    wit_bindgen::generate!({
        path: ["../wit/host.wit", "../wit/simulator.wit"],
        world: "railhead:simulator/simulator",
        with: {
            "railhead:simulator/types@0.1.0": railhead_simulator::imports::types,
            "railhead:simulator/book@0.1.0": railhead_simulator::imports::book,
            "railhead:simulator/play@0.1.0": railhead_simulator::imports::play,
            "railhead:simulator/signatures@0.1.0": railhead_simulator::imports::signatures,
            "railhead:simulator/outbox@0.1.0": railhead_simulator::imports::outbox,
            "railhead:host/clock@0.2.0": railhead_simulator::imports::clock,
            "railhead:host/log@0.2.0": railhead_simulator::imports::log,
        },
    });
    export!(Vola with_types_in self);
    use super::Vola;
}

use bindings::exports::railhead::simulator::network;
use railhead_simulator::types::{Answer, Event, Obstacle, Request, Transfer};

struct Vola;

impl network::Guest for Vola {
    fn handle(request: Request) -> Answer {
        crate::handle(&request)
    }

    fn tell(reference: String, event: Event) -> Result<Transfer, Obstacle> {
        crate::tell(&reference, event)
    }
}
