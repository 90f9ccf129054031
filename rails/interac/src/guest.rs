//! The exports of the component. Nothing is decided here.
#![allow(unsafe_code, reason = "the macros' own")]

use railhead_rail::types::{
    Field, Finding, Message, Notice, Opening, Outcome, Payment, RecallRequest, Refusal, Reply,
    Violation,
};
use railhead_rail::{
    Notices, Payouts, Recalls, Recipients, export_notices, export_payouts, export_recalls,
    export_recipients,
};

struct Interac;

export_notices!(Interac);
export_payouts!(Interac);
export_recalls!(Interac);
export_recipients!(Interac);

impl Recipients for Interac {
    fn check(
        _method: String,
        _currency: String,
        fields: Vec<Field>,
    ) -> Result<Vec<Field>, Vec<Violation>> {
        crate::recipients::check(&fields)
    }
}

impl Payouts for Interac {
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

impl Recalls for Interac {
    fn recall(payment: Payment, _: RecallRequest) -> Finding {
        crate::payments::recall(&payment)
    }
}

impl Notices for Interac {
    fn receive(message: Message) -> Result<(Reply, Vec<Notice>), String> {
        crate::notices::receive(&message.path, &message.body)
    }
}
