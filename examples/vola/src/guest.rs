//! The exports of the component. Nothing is decided here.

#[allow(unsafe_code, clippy::all)]
mod bindings {
    wit_bindgen::generate!({
        path: ["wit/host.wit", "wit/rail.wit"],
        inline: "
            package vola:rail;
            world vola {
                include railhead:rail/imports@0.2.0;
                export railhead:rail/recipients@0.2.0;
                export railhead:rail/payouts@0.2.0;
                export railhead:rail/notices@0.2.0;
                export railhead:rail/files@0.2.0;
            }
        ",
        world: "vola:rail/vola",
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
    export!(Vola with_types_in self);
    use super::Vola;
}

use bindings::exports::railhead::rail::{files, notices, payouts, recipients};
use railhead_rail::types::{
    Arrival, Assembled, Delivery, Field, File, Finding, Message, Notice, Opening, Outcome, Payment,
    Presence, Refusal, Reply, Violation, Window,
};

struct Vola;

impl recipients::Guest for Vola {
    fn check(
        _method: String,
        _currency: String,
        fields: Vec<Field>,
    ) -> Result<Vec<Field>, Vec<Violation>> {
        Ok(crate::recipients::canonical(fields))
    }
}

impl payouts::Guest for Vola {
    fn prepare(payment: Payment) -> Result<Opening, Refusal> {
        Ok(crate::payments::prepare(&payment))
    }

    fn submit(payment: Payment) -> Outcome {
        crate::payments::submit(&payment)
    }

    fn query(payment: Payment) -> Finding {
        crate::payments::query(&payment)
    }
}

impl notices::Guest for Vola {
    fn receive(message: Message) -> Result<(Reply, Vec<Notice>), String> {
        crate::messages::receive(&message)
    }
}

impl files::Guest for Vola {
    fn prepare(payment: Payment) -> Result<Opening, Refusal> {
        crate::bulk::prepare(&payment)
    }

    fn assemble(window: Window, payments: Vec<Payment>) -> Result<Assembled, String> {
        crate::bulk::assemble(&window, &payments)
    }

    fn deliver(file: File) -> Delivery {
        crate::bulk::deliver(file)
    }

    fn look(file: File) -> Presence {
        crate::bulk::look(&file)
    }

    fn poll(_feed: String, after: String) -> Result<Vec<Arrival>, String> {
        crate::bulk::poll(&after)
    }

    fn read(_feed: String, _name: String, content: Vec<u8>) -> Result<Vec<Notice>, String> {
        crate::bulk::read(&content)
    }
}
