//! The exports of the component. Nothing is decided here.

#[allow(unsafe_code, missing_docs, unreachable_pub, unused_qualifications, clippy::all)]
mod bindings {
    wit_bindgen::generate!({
        path: ["../../wit/host.wit", "../../wit/rail.wit"],
        inline: "
            package railhead:mpesa;
            world mpesa {
                include railhead:rail/imports@0.2.0;
                export railhead:rail/recipients@0.2.0;
                export railhead:rail/payouts@0.2.0;
                export railhead:rail/notices@0.2.0;
            }
        ",
        world: "railhead:mpesa/mpesa",
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
    export!(Mpesa with_types_in self);
    use super::Mpesa;
}

use bindings::exports::railhead::rail::{notices, payouts, recipients};
use railhead_rail::types::{
    Field, Finding, Message, Notice, Opening, Outcome, Payment, Refusal, Reply, Violation,
};

struct Mpesa;

impl recipients::Guest for Mpesa {
    fn check(
        _method: String,
        _currency: String,
        fields: Vec<Field>,
    ) -> Result<Vec<Field>, Vec<Violation>> {
        crate::recipients::check(fields)
    }
}

impl payouts::Guest for Mpesa {
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

impl notices::Guest for Mpesa {
    fn receive(message: Message) -> Result<(Reply, Vec<Notice>), String> {
        crate::results::receive(&message.path, &message.body)
    }
}
