//! The exports of the component. Nothing is decided here; values change their types.

#[allow(unsafe_code, missing_docs, unreachable_pub, unused_qualifications, clippy::all)]
mod bindings {
    wit_bindgen::generate!({
        path: ["../../wit/host.wit", "../../wit/rail.wit"],
        world: "railhead:rail/rail",
        with: {
            "railhead:rail/types@0.1.0": railhead_rail::imports::types,
            "railhead:host/http@0.1.0": railhead_rail::imports::http,
            "railhead:host/settings@0.1.0": railhead_rail::imports::settings,
            "railhead:host/keys@0.1.0": railhead_rail::imports::keys,
            "railhead:host/tables@0.1.0": railhead_rail::imports::tables,
            "railhead:host/clock@0.1.0": railhead_rail::imports::clock,
            "railhead:host/log@0.1.0": railhead_rail::imports::log,
        },
    });
    export!(Nip with_types_in self);
    use super::Nip;
}

use bindings::exports::railhead::rail::{names, notices, payouts, recipients};
use railhead_rail::types::{Field, Finding, Outcome, Payment, Resolution};

struct Nip;

impl recipients::Guest for Nip {
    fn check(
        _method: String,
        fields: Vec<Field>,
    ) -> Result<Vec<Field>, Vec<recipients::Violation>> {
        crate::recipients::check(&fields).map_err(|violations| {
            violations
                .into_iter()
                .map(|found| recipients::Violation {
                    field: found.field,
                    code: found.code,
                    message: found.message,
                })
                .collect()
        })
    }
}

impl payouts::Guest for Nip {
    fn reference(payment: Payment) -> String {
        crate::payments::reference(&payment)
    }

    fn submit(payment: Payment) -> Outcome {
        crate::payments::submit(&payment)
    }

    fn query(payment: Payment) -> Finding {
        crate::payments::query(&payment)
    }
}

impl names::Guest for Nip {
    fn resolve(enquiry: names::Enquiry) -> Result<Resolution, names::Unresolved> {
        use crate::names::{Enquiry, Unresolved, resolve};
        let names::Enquiry { number, begun_at_ms, account } = enquiry;
        resolve(&Enquiry { number, begun_at_ms, account }).map_err(|unresolved| match unresolved {
            Unresolved::Refused(refusal) => names::Unresolved::Refused(refusal),
            Unresolved::Unavailable(reason) => names::Unresolved::Unavailable(reason),
        })
    }
}

impl notices::Guest for Nip {
    fn receive(message: notices::Message) -> Result<(Vec<u8>, Vec<notices::Notice>), String> {
        use crate::notices::{News, Notice, ReturnOfFunds};
        let (answer, found) = crate::notices::receive(&message.path, &message.body)?;
        let notice = |Notice { reference, news }| notices::Notice {
            reference,
            news: match news {
                News::Ask => notices::News::Ask,
                News::Returned(ReturnOfFunds { code, message, amount_minor }) => {
                    notices::News::Returned(notices::ReturnOfFunds { code, message, amount_minor })
                }
            },
        };
        Ok((answer, found.into_iter().map(notice).collect()))
    }
}
