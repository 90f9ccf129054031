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

struct Aggregator;

export_names!(Aggregator);
export_notices!(Aggregator);
export_payouts!(Aggregator);
export_recipients!(Aggregator);

impl Recipients for Aggregator {
    fn check(
        _method: String,
        currency: String,
        fields: Vec<Field>,
    ) -> Result<Vec<Field>, Vec<Violation>> {
        crate::recipients::check(&currency, fields)
    }
}

impl Payouts for Aggregator {
    fn prepare(payment: Payment) -> Result<Opening, Refusal> {
        crate::payouts::prepare(&payment)
    }

    fn submit(payment: Payment) -> Outcome {
        crate::payouts::submit(&payment)
    }

    fn query(payment: Payment) -> Finding {
        crate::payouts::query(&payment)
    }
}

impl Names for Aggregator {
    fn resolve(enquiry: Enquiry) -> Verdict {
        crate::names::resolve(&enquiry)
    }
}

impl Notices for Aggregator {
    fn receive(message: Message) -> Result<(Reply, Vec<Notice>), String> {
        crate::callbacks::receive(&message.path, &message.body)
    }
}
