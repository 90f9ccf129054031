//! The exports of the component. Nothing is decided here.
#![allow(unsafe_code, reason = "the macros' own")]

use railhead_rail::types::{
    Arrival, Assembled, Delivery, Field, File, Finding, Message, Notice, Opening, Outcome, Payment,
    Presence, Refusal, Reply, Violation, Window,
};
use railhead_rail::{
    Files, Notices, Payouts, Recipients, export_files, export_notices, export_payouts,
    export_recipients,
};

struct Vola;

export_files!(Vola);
export_notices!(Vola);
export_payouts!(Vola);
export_recipients!(Vola);

impl Recipients for Vola {
    fn check(
        _method: String,
        _currency: String,
        fields: Vec<Field>,
    ) -> Result<Vec<Field>, Vec<Violation>> {
        Ok(crate::recipients::canonical(fields))
    }
}

impl Payouts for Vola {
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

impl Notices for Vola {
    fn receive(message: Message) -> Result<(Reply, Vec<Notice>), String> {
        crate::messages::receive(&message)
    }
}

impl Files for Vola {
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
