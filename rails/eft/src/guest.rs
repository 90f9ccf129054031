//! The exports of the component. Nothing is decided here.
#![allow(unsafe_code, reason = "the macros' own")]

use railhead_rail::types::{
    Arrival, Assembled, Delivery, Field, File, Notice, Opening, Payment, Presence, Refusal,
    Violation, Window,
};
use railhead_rail::{Files, Recipients, export_files, export_recipients};

struct Eft;

export_files!(Eft);
export_recipients!(Eft);

impl Recipients for Eft {
    fn check(
        _method: String,
        _currency: String,
        fields: Vec<Field>,
    ) -> Result<Vec<Field>, Vec<Violation>> {
        crate::recipients::check(fields)
    }
}

impl Files for Eft {
    fn prepare(payment: Payment) -> Result<Opening, Refusal> {
        crate::entries::prepare(&payment)
    }

    fn assemble(window: Window, payments: Vec<Payment>) -> Result<Assembled, String> {
        crate::assembly::assemble(&window, &payments)
    }

    fn deliver(file: File) -> Delivery {
        crate::gateway::GATEWAY.deliver(&file)
    }

    fn look(file: File) -> Presence {
        crate::gateway::GATEWAY.look(&file)
    }

    fn poll(feed: String, after: String) -> Result<Vec<Arrival>, String> {
        railhead_rail::file_gateway::poll(&feed, &after)
    }

    fn read(feed: String, name: String, content: Vec<u8>) -> Result<Vec<Notice>, String> {
        crate::arrivals::read(&feed, &name, &content)
    }
}
