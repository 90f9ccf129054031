//! The exports of the component. Nothing is decided here.
#![allow(unsafe_code, reason = "the macros' own")]

use railhead_rail::types::{
    Arrival, Assembled, Delivery, Enquiry, Field, File, Finding, Message, Notice, Opening, Outcome,
    Payment, Presence, RecallRequest, Refusal, Reply, Verdict, Violation, Window,
};
use railhead_rail::{
    Files, Names, Notices, Payouts, Recalls, Recipients, export_files, export_names,
    export_notices, export_payouts, export_recalls, export_recipients,
};

struct Sepa;

export_files!(Sepa);
export_names!(Sepa);
export_notices!(Sepa);
export_payouts!(Sepa);
export_recalls!(Sepa);
export_recipients!(Sepa);

impl Recipients for Sepa {
    fn check(
        _method: String,
        _currency: String,
        fields: Vec<Field>,
    ) -> Result<Vec<Field>, Vec<Violation>> {
        crate::recipients::check(fields)
    }
}

impl Payouts for Sepa {
    fn prepare(payment: Payment) -> Result<Opening, Refusal> {
        crate::order::prepare(&payment)
    }

    fn submit(payment: Payment) -> Outcome {
        crate::instant::submit(&payment)
    }

    fn query(payment: Payment) -> Finding {
        crate::instant::query(&payment)
    }
}

impl Files for Sepa {
    fn prepare(payment: Payment) -> Result<Opening, Refusal> {
        crate::order::prepare_for_file(&payment)
    }

    fn assemble(window: Window, payments: Vec<Payment>) -> Result<Assembled, String> {
        crate::assembly::assemble(&window, payments)
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

impl Recalls for Sepa {
    fn recall(payment: Payment, request: RecallRequest) -> Finding {
        crate::recalls::recall(&payment, &request)
    }
}

impl Names for Sepa {
    fn resolve(enquiry: Enquiry) -> Verdict {
        crate::names::resolve(&enquiry)
    }
}

impl Notices for Sepa {
    fn receive(message: Message) -> Result<(Reply, Vec<Notice>), String> {
        crate::notices::receive(&message.path, &message.body)
    }
}
