//! The exports of the component. Nothing is decided here.
#![allow(unsafe_code, reason = "the macros' own")]

use railhead_rail::types::{
    Enquiry, Field, Finding, Message, Notice, Opening, Outcome, Payment, Refusal, Reply, Verdict,
    Violation,
};
use railhead_rail::{
    Names, Notices, Payouts, Recipients, export_names, export_notices, export_payouts,
    export_recipients,
};

struct Nip;

export_names!(Nip);
export_notices!(Nip);
export_payouts!(Nip);
export_recipients!(Nip);

impl Recipients for Nip {
    fn check(
        _method: String,
        _currency: String,
        fields: Vec<Field>,
    ) -> Result<Vec<Field>, Vec<Violation>> {
        crate::recipients::check(&fields)
    }
}

impl Payouts for Nip {
    fn prepare(payment: Payment) -> Result<Opening, Refusal> {
        let reference = crate::payments::reference(&payment);
        Ok(Opening { reference, facts: Vec::new() })
    }

    fn submit(payment: Payment) -> Outcome {
        crate::payments::submit(&payment)
    }

    fn query(payment: Payment) -> Finding {
        crate::payments::query(&payment)
    }
}

impl Names for Nip {
    fn resolve(enquiry: Enquiry) -> Verdict {
        crate::names::resolve(&enquiry)
    }
}

impl Notices for Nip {
    fn receive(message: Message) -> Result<(Reply, Vec<Notice>), String> {
        crate::notices::receive(&message.path, &message.body)
    }
}
