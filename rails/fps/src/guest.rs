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

struct Fps;

export_names!(Fps);
export_notices!(Fps);
export_payouts!(Fps);
export_recipients!(Fps);

impl Recipients for Fps {
    fn check(
        _method: String,
        _currency: String,
        fields: Vec<Field>,
    ) -> Result<Vec<Field>, Vec<Violation>> {
        crate::recipients::check(fields)
    }
}

impl Payouts for Fps {
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

impl Names for Fps {
    fn resolve(enquiry: Enquiry) -> Verdict {
        crate::names::resolve(&enquiry)
    }
}

impl Notices for Fps {
    fn receive(message: Message) -> Result<(Reply, Vec<Notice>), String> {
        crate::webhooks::receive(&message.path, &message.body)
    }
}
