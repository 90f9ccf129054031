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

struct MtnMomo;

export_names!(MtnMomo);
export_notices!(MtnMomo);
export_payouts!(MtnMomo);
export_recipients!(MtnMomo);

impl Recipients for MtnMomo {
    fn check(
        _method: String,
        currency: String,
        fields: Vec<Field>,
    ) -> Result<Vec<Field>, Vec<Violation>> {
        crate::recipients::check(&currency, fields)
    }
}

impl Payouts for MtnMomo {
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

impl Names for MtnMomo {
    fn resolve(enquiry: Enquiry) -> Verdict {
        crate::names::resolve(&enquiry)
    }
}

impl Notices for MtnMomo {
    fn receive(message: Message) -> Result<(Reply, Vec<Notice>), String> {
        crate::callbacks::receive(&message.path, &message.body)
    }
}
