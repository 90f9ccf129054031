//! A rail that does everything that a rail must not, as the payment's narration says: before
//! anything has left, or after the payment was sent. A minute later it has come to its senses.

#![cfg(target_family = "wasm")]

#[allow(unsafe_code, missing_docs, unreachable_pub, unused_qualifications, clippy::all)]
mod bindings {
    wit_bindgen::generate!({
        path: ["../../wit/host.wit", "../../wit/rail.wit"],
        inline: "
            package railhead:hostile;
            world hostile {
                include railhead:rail/imports@0.1.0;
                export railhead:rail/recipients@0.1.0;
                export railhead:rail/payouts@0.1.0;
            }
        ",
        world: "railhead:hostile/hostile",
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
    export!(Hostile with_types_in self);
    use super::Hostile;
}

use std::hint::black_box;

use bindings::exports::railhead::rail::{payouts, recipients};
use railhead_rail::host;
use railhead_rail::imports::http::{Failure, Method, Request, Response};
use railhead_rail::types::{Field, Finding, Outcome, Payment, Receipt};

struct Hostile;

const MINUTE_MS: u64 = 60_000;

impl recipients::Guest for Hostile {
    fn check(
        _method: String,
        fields: Vec<Field>,
    ) -> Result<Vec<Field>, Vec<recipients::Violation>> {
        match railhead_rail::fields::value(&fields, "name") {
            "" => Ok(fields),
            deed => {
                // The deed may come back; it must not come far.
                drop(run(deed));
                Ok(fields)
            }
        }
    }
}

impl payouts::Guest for Hostile {
    fn reference(payment: Payment) -> String {
        format!("hostile-{:012}", payment.number)
    }

    fn submit(payment: Payment) -> Outcome {
        if host::now_ms() >= payment.begun_at_ms + MINUTE_MS {
            return pay(&payment);
        }
        match payment.narration.split_once("sent, then ") {
            Some((_, deed)) => {
                drop(pay(&payment));
                run(deed)
            }
            None => run(&payment.narration),
        }
    }

    fn query(payment: Payment) -> Finding {
        match post("bank", "/ask", payment.reference) {
            Ok(answer) if answer.status == 200 => Finding::Paid(Receipt { code: "00".into() }),
            Ok(_) => Finding::NeverReceived("unknown".into()),
            Err(failure) => Finding::Unknown(words(failure)),
        }
    }
}

fn pay(payment: &Payment) -> Outcome {
    match post("bank", "/pay", payment.reference.clone()) {
        Ok(_) => Outcome::Paid(Receipt { code: "00".into() }),
        Err(failure) => Outcome::Unknown(words(failure)),
    }
}

fn post(endpoint: &str, path: &str, body: String) -> Result<Response, Failure> {
    host::send(&Request {
        endpoint: endpoint.into(),
        method: Method::Post,
        path: path.into(),
        headers: Vec::new(),
        body: body.into_bytes(),
    })
}

fn words(failure: Failure) -> String {
    match failure {
        Failure::NotSent(why) | Failure::NoAnswer(why) => why,
    }
}

/// Does what is asked for. What it answers is as good as nothing.
fn run(deed: &str) -> Outcome {
    match deed {
        "loop" => loop {
            black_box(deed);
        },
        "allocate" => {
            let mut hoard = Vec::new();
            loop {
                hoard.push(black_box(vec![1_u8; 1 << 20]));
            }
        }
        "recurse" => Outcome::Unknown(recurse(1).to_string()),
        "trap" => panic!("as asked"),
        "log" => loop {
            host::warn(&"a line that never ends ".repeat(1000));
        },
        "claim" => Outcome::Paid(Receipt { code: "00".into() }),
        "giant" => Outcome::Unknown("x".repeat(16 << 20)),
        "garbage" => Outcome::Unknown(garbage()),
        "knock" => {
            let knock = || told(post("bank", "/knock", String::new()));
            (0..100).fold(knock(), |_, _| knock())
        }
        "flood" => told(post("bank", "/flood", String::new())),
        "stranger" => told(post("http://169.254.169.254", "/", String::new())),
        "undeclared" => told(post("bank", "/control", String::new())),
        "climb" => told(post("bank", "/pay/../control", String::new())),
        "files" => Outcome::Unknown(files()),
        other => Outcome::Unknown(format!("{other} is not a deed")),
    }
}

fn told(answer: Result<Response, Failure>) -> Outcome {
    match answer {
        Ok(response) => Outcome::Paid(Receipt { code: response.status.to_string() }),
        Err(failure) => Outcome::Unknown(words(failure)),
    }
}

/// Grows the stack until there is none.
#[allow(unconditional_recursion, reason = "that is the point")]
fn recurse(depth: u64) -> u64 {
    let frame = black_box([depth; 64]);
    recurse(depth + 1) + frame[7]
}

/// A text that is none.
#[allow(unsafe_code, reason = "a guest can send any bytes for a string")]
fn garbage() -> String {
    // SAFETY: nobody in here reads it; it goes straight to the host, which checks.
    unsafe { String::from_utf8_unchecked(vec![0xff, 0xfe, 0x80]) }
}

#[cfg(feature = "files")]
fn files() -> String {
    std::fs::read_to_string("/etc/passwd").unwrap_or_default()
}

#[cfg(not(feature = "files"))]
fn files() -> String {
    String::new()
}
