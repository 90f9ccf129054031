//! The exports of the component. Nothing is decided here.

#[allow(unsafe_code, missing_docs, unreachable_pub, unused_qualifications, clippy::all)]
mod bindings {
    wit_bindgen::generate!({
        path: ["../../wit/host.wit", "../../wit/rail.wit"],
        world: "railhead:rail/rail",
        with: {
            "railhead:rail/types@0.2.0": railhead_rail::imports::types,
            "railhead:host/http@0.2.0": railhead_rail::imports::http,
            "railhead:host/settings@0.2.0": railhead_rail::imports::settings,
            "railhead:host/keys@0.2.0": railhead_rail::imports::keys,
            "railhead:host/tables@0.2.0": railhead_rail::imports::tables,
            "railhead:host/clock@0.2.0": railhead_rail::imports::clock,
            "railhead:host/log@0.2.0": railhead_rail::imports::log,
        },
    });
    export!(Fps with_types_in self);
    use super::Fps;
}

use bindings::exports::railhead::rail::{names, notices, payouts, recipients};
use railhead_rail::types::{
    Enquiry, Field, Finding, Message, Notice, Opening, Outcome, Payment, Refusal, Reply, Verdict,
    Violation,
};

struct Fps;

impl recipients::Guest for Fps {
    fn check(
        _method: String,
        _currency: String,
        fields: Vec<Field>,
    ) -> Result<Vec<Field>, Vec<Violation>> {
        crate::recipients::check(fields)
    }
}

impl payouts::Guest for Fps {
    fn prepare(payment: Payment) -> Result<Opening, Refusal> {
        crate::payments::prepare(&payment)
    }

    fn submit(payment: Payment) -> Outcome {
        crate::payments::submit(&payment)
    }

    fn query(payment: Payment) -> Finding {
        crate::payments::query(&payment)
    }
}

impl names::Guest for Fps {
    fn resolve(enquiry: Enquiry) -> Verdict {
        crate::names::resolve(&enquiry)
    }
}

impl notices::Guest for Fps {
    fn receive(message: Message) -> Result<(Reply, Vec<Notice>), String> {
        crate::webhooks::receive(&message.path, &message.body)
    }
}
