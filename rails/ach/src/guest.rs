//! The exports of the component. Nothing is decided here.

#[allow(unsafe_code, missing_docs, unreachable_pub, unused_qualifications, clippy::all)]
mod bindings {
    wit_bindgen::generate!({
        path: ["../../wit/host.wit", "../../wit/rail.wit"],
        inline: "
            package railhead:ach;
            world ach {
                include railhead:rail/imports@0.2.0;
                export railhead:rail/recipients@0.2.0;
                export railhead:rail/files@0.2.0;
            }
        ",
        world: "railhead:ach/ach",
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
    export!(Ach with_types_in self);
    use super::Ach;
}

use bindings::exports::railhead::rail::{files, recipients};
use railhead_rail::types::{
    Arrival, Assembled, Delivery, Field, File, Notice, Opening, Payment, Presence, Refusal,
    Violation, Window,
};

struct Ach;

impl recipients::Guest for Ach {
    fn check(
        _method: String,
        _currency: String,
        fields: Vec<Field>,
    ) -> Result<Vec<Field>, Vec<Violation>> {
        crate::recipients::check(fields)
    }
}

impl files::Guest for Ach {
    fn prepare(payment: Payment) -> Result<Opening, Refusal> {
        crate::entries::prepare(&payment)
    }

    fn assemble(window: Window, payments: Vec<Payment>) -> Result<Assembled, String> {
        crate::assembly::assemble(&window, &payments)
    }

    fn deliver(file: File) -> Delivery {
        crate::gateway::deliver(&file)
    }

    fn look(file: File) -> Presence {
        crate::gateway::look(&file)
    }

    fn poll(feed: String, after: String) -> Result<Vec<Arrival>, String> {
        crate::gateway::poll(&feed, &after)
    }

    fn read(feed: String, name: String, content: Vec<u8>) -> Result<Vec<Notice>, String> {
        crate::arrivals::read(&feed, &name, &content)
    }
}
