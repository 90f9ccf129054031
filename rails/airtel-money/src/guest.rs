//! The exports of the component. Nothing is decided here.
#![allow(unsafe_code, reason = "the macros' own")]

use railhead_rail::types::{
    Field, Finding, Message, Notice, Opening, Outcome, Payment, Refusal, Reply, Violation,
};
use railhead_rail::{
    Notices, Payouts, Recipients, export_notices, export_payouts, export_recipients,
};

struct AirtelMoney;

export_notices!(AirtelMoney);
export_payouts!(AirtelMoney);
export_recipients!(AirtelMoney);

impl Recipients for AirtelMoney {
    fn check(
        _method: String,
        _currency: String,
        fields: Vec<Field>,
    ) -> Result<Vec<Field>, Vec<Violation>> {
        crate::recipients::check(fields)
    }
}

impl Payouts for AirtelMoney {
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

impl Notices for AirtelMoney {
    fn receive(message: Message) -> Result<(Reply, Vec<Notice>), String> {
        crate::callbacks::receive(&message.path, &message.body)
    }
}
