//! Running one case against a component, with a network that answers as the case says.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use axum::Router;
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use http::StatusCode;
use secrecy::SecretString;

use crate::rails::Rail;
use crate::rails::granted::{call_to, simulated_key, token_source};
use crate::rails::methods::MethodTerms;
use crate::rails::route::SIMULATOR_SECRET;
use crate::wasm::egress::{Exchange, HangUp, Target};
use crate::wasm::rail::{
    Access, Called, Door, Enquiry, Field, Finding, Grant, Message, Money, News, Outcome, Payment,
    RecallReason, RecallRequest, Receipt, Refusal, Reply, Resolution, Verdict,
};

use super::cases::{AnswerCase, ExchangeCase, Expected, PaymentCase, RecipientCase, ViolationCase};

/// What a call came to: its kind, and what else it has.
#[derive(Debug, Default, PartialEq, Eq)]
struct Came {
    kind: &'static str,
    code: Option<String>,
    message: Option<String>,
    network_id: Option<String>,
}

/// Checks a recipient.
pub(super) async fn recipient(rail: &Rail, case: &RecipientCase) -> Result<(), String> {
    let terms = method(rail, case.method.as_deref())?;
    let which = (terms.name.as_str(), terms.currency.as_str());
    let called = rail.code.check(&rail.pure_grant(0), which, &fields(&case.fields)).await;
    match called.result.map_err(|broken| broken.to_string())? {
        Ok(canonical) => {
            let wanted = case.returns.as_ref().ok_or("it passed, and should not have")?;
            let found: BTreeMap<String, String> =
                canonical.into_iter().map(|field| (field.name, field.value)).collect();
            match wanted.iter().find(|(name, value)| found.get(*name) != Some(*value)) {
                None => Ok(()),
                Some((name, value)) => {
                    Err(format!("{name} is {:?}, not {value:?}", found.get(name)))
                }
            }
        }
        Err(found) => {
            let found: Vec<ViolationCase> = found
                .into_iter()
                .map(|found| ViolationCase { field: found.field, code: found.code })
                .collect();
            match found == case.violations {
                true => Ok(()),
                false => Err(format!("found {found:?}, not {:?}", case.violations)),
            }
        }
    }
}

/// Runs a call, and checks what it sent and what it came to. A sending is run twice: on the
/// instance that made the reference, as it goes out first, and on a fresh one, as it is repeated.
pub(super) async fn run(rail: &Rail, case: &ExchangeCase) -> Result<(), String> {
    run_on(rail, case, On::ItsOwn).await?;
    match case.call.as_str() {
        "submit" => {
            let why = |why| format!("on a fresh instance: {why}");
            run_on(rail, case, On::Fresh).await.map_err(why)
        }
        _ => Ok(()),
    }
}

/// Which instance sends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum On {
    ItsOwn,
    Fresh,
}

async fn run_on(rail: &Rail, case: &ExchangeCase, on: On) -> Result<(), String> {
    let answer = case.answer.clone().unwrap_or_default();
    let (came, exchanges) = call(rail, &scripted(rail, answer), case, on).await?;
    if let Some(expected) = &case.expects {
        check_sent(&exchanges, expected)?;
    }
    let moved = exchanges.iter().any(|exchange| exchange.moves_money && exchange.bytes_left());
    if case.call == "submit" && matches!(came.kind, "paid" | "accepted") && !moved {
        return Err(format!("{}, and no call was made that moves money", came.kind));
    }
    let wanted = &case.outcome;
    if came.kind != wanted.kind {
        return Err(format!("{came:?}, not {}", wanted.kind));
    }
    if wanted.code.is_some() && came.code != wanted.code {
        return Err(format!("code {:?}, not {:?}", came.code, wanted.code));
    }
    if wanted.network_id.is_some() && came.network_id != wanted.network_id {
        return Err(format!("network id {:?}, not {:?}", came.network_id, wanted.network_id));
    }
    let message = came.message.unwrap_or_default();
    match &wanted.message {
        Some(part) if !message.contains(part) => Err(format!("{message:?} lacks {part:?}")),
        _ => Ok(()),
    }
}

/// What the first thing that a message says comes to.
fn told(news: Option<News>) -> Came {
    match news {
        Some(News::Ask) => came("ask", None, None),
        Some(News::Found(found)) => finding(found),
        Some(News::Corrected(told)) => came("corrected", Some(told.code), Some(told.message)),
        None => came("nothing", None, None),
    }
}

async fn call(
    rail: &Rail,
    network: &Router,
    case: &ExchangeCase,
    on: On,
) -> Result<(Came, Vec<Exchange>), String> {
    // As if it were called when the payment was begun.
    let begun_at_ms = case.payment.as_ref().map_or(case.begun_at_ms, |it| it.begun_at_ms);
    let then = |grant: Arc<Grant>| Arc::new(Grant { now_ms: begun_at_ms, ..Grant::clone(&grant) });
    let asking = then(grant(rail, network, Money::Stays));
    match case.call.as_str() {
        "prepare" => {
            let payment = payment(rail, case.payment.as_ref())?;
            let (made, _) = rail.code.prepare(&rail.pure_grant(0), &payment).await;
            taken(made, |made| match made {
                Ok(opening) => came("prepared", None, Some(opening.reference)),
                Err(refusal) => refused(refusal),
            })
        }
        "submit" => {
            let payment = payment(rail, case.payment.as_ref())?;
            let (made, kept) = rail.code.prepare(&pure(&asking), &payment).await;
            let made = made.result.map_err(|broken| broken.to_string())?;
            let made = made.map_err(|refusal| format!("prepare refused: {}", refusal.message))?;
            if made.reference != payment.reference {
                let (made, wanted) = (made.reference, payment.reference);
                return Err(format!("made the reference {made}, not {wanted}"));
            }
            let sending = then(grant(rail, network, Money::MayMove));
            let kept = kept.filter(|_| on == On::ItsOwn);
            taken(rail.code.submit(kept, &sending, &payment).await, outcome)
        }
        "query" => {
            let payment = payment(rail, case.payment.as_ref())?;
            taken(rail.code.query(&asking, &payment).await, finding)
        }
        "recall" => {
            let payment = payment(rail, case.payment.as_ref())?;
            let request = RecallRequest {
                serial: case.serial,
                begun_at_ms: case.begun_at_ms,
                reason: RecallReason::CustomerRequest,
            };
            taken(rail.code.recall(&asking, &payment, request).await, finding)
        }
        "resolve" => {
            taken(rail.code.resolve(&asking, &enquiry(rail, case)?).await, |found| match found {
                Verdict::Named(found) => came("resolved", None, Some(found.name)),
                Verdict::Matches(found) => came("matches", None, Some(found.name)),
                Verdict::Close(found) => came("close", None, Some(found.name)),
                Verdict::Differs(why) => came("differs", None, why),
                Verdict::Refused(refusal) => refused(refusal),
                Verdict::Unavailable(why) => came("unavailable", None, Some(why)),
            })
        }
        "receive" => {
            let message = Message {
                method: case.method.clone(),
                path: case.path.clone(),
                query: Vec::new(),
                headers: Vec::new(),
                body: case.body.clone().into_bytes(),
            };
            let called = rail.code.receive(&pure(&asking), &message).await;
            if let Ok(Ok((reply, _))) = &called.result {
                refuse_reply(reply)?;
            }
            taken(called, |read| match read {
                Err(why) => came("rejected", None, Some(why)),
                Ok((_, notices)) => told(notices.into_iter().next().map(|notice| notice.news)),
            })
        }
        other => Err(format!("{other} is no call")),
    }
}

/// Refuses a reply that no host would send.
pub(super) fn refuse_reply(reply: &Reply) -> Result<(), String> {
    match (200..300).contains(&reply.status) {
        true => Ok(()),
        false => Err(format!("a message that is taken is answered with {}", reply.status)),
    }
}

/// What a call came to, with what it sent.
fn taken<T>(
    called: Called<T>,
    read: impl FnOnce(T) -> Came,
) -> Result<(Came, Vec<Exchange>), String> {
    let answer = called.result.map_err(|broken| broken.to_string())?;
    Ok((read(answer), called.exchanges))
}

fn outcome(outcome: Outcome) -> Came {
    match outcome {
        Outcome::Paid(receipt) => received("paid", receipt),
        Outcome::Accepted(receipt) => received("accepted", receipt),
        Outcome::Refused(refusal) => refused(refusal),
        Outcome::Unknown(why) => came("unknown", None, Some(why)),
    }
}

fn finding(finding: Finding) -> Came {
    match finding {
        Finding::Paid(receipt) => received("paid", receipt),
        Finding::Accepted(receipt) => received("accepted", receipt),
        Finding::Refused(refusal) => refused(refusal),
        Finding::Returned(funds) => came("returned", Some(funds.code), Some(funds.message)),
        Finding::Unknown(why) => came("unknown", None, Some(why)),
        Finding::NeverReceived(why) => came("never-received", None, Some(why)),
    }
}

fn received(kind: &'static str, receipt: Receipt) -> Came {
    Came { network_id: receipt.network_id, ..came(kind, Some(receipt.code), None) }
}

fn refused(refusal: Refusal) -> Came {
    came("refused", Some(refusal.code), Some(refusal.message))
}

fn came(kind: &'static str, code: Option<String>, message: Option<String>) -> Came {
    Came { kind, code, message, ..Came::default() }
}

/// Whether the last request is the one that was expected.
pub(super) fn check_sent(exchanges: &[Exchange], expected: &Expected) -> Result<(), String> {
    let last = exchanges.iter().rfind(|exchange| !exchange.is_for_token);
    if expected.nothing {
        return last.map_or(Ok(()), |sent| Err(format!("{} was sent", sent.call)));
    }
    let sent = last.ok_or("nothing was sent")?;
    for (what, found, wanted) in
        [("call", &sent.call, &expected.call), ("path", &sent.path, &expected.path)]
    {
        if let Some(wanted) = wanted.as_ref().filter(|wanted| *wanted != found) {
            return Err(format!("the {what} was {found}, not {wanted}"));
        }
    }
    let body = String::from_utf8_lossy(&sent.request);
    match expected.contains.iter().find(|part| !body.contains(part.as_str())) {
        None => Ok(()),
        Some(part) => Err(format!("{part} is not in what was sent:\n{body}")),
    }
}

/// A network that gives a token to whoever asks, and answers everything else as a case says.
pub(super) fn scripted(rail: &Rail, answer: AnswerCase) -> Router {
    let declaration = &rail.declaration;
    let mut network = Router::new();
    for terms in declaration.tokens.values() {
        let mut calls = declaration.endpoints.values().flat_map(|endpoint| &endpoint.calls);
        let Some(call) = calls.find(|call| call.name == terms.call) else { continue };
        let names = terms.token.rsplit('.');
        let token = names
            .fold(serde_json::json!("token"), |within, name| serde_json::json!({ name: within }));
        let token = token.to_string();
        network = network.route(&call.path, any(move || async move { token }));
    }
    network.fallback(move || {
        let response = respond(&answer);
        async move { response }
    })
}

fn respond(answer: &AnswerCase) -> Response {
    if let Some(failure) = &answer.failure {
        let mut response = StatusCode::BAD_GATEWAY.into_response();
        response.extensions_mut().insert(match failure.as_str() {
            "no-answer" => HangUp::Received,
            _ => HangUp::NotSent,
        });
        return response;
    }
    let status = StatusCode::from_u16(answer.status.unwrap_or(200)).unwrap_or(StatusCode::OK);
    (status, answer.body.clone()).into_response()
}

/// A grant whose every call leads into `network`.
pub(super) fn grant(rail: &Rail, network: &Router, money: Money) -> Arc<Grant> {
    let declaration = &rail.declaration;
    let target = Arc::new(Target::InProcess(network.clone()));
    let calls = declaration.endpoints.values().flat_map(|endpoint| &endpoint.calls);
    let makes_files = declaration.files.is_some();
    let calls = calls.filter_map(|terms| call_to(terms, &target, (None, makes_files)));
    let defaults = declaration.settings.iter();
    let settings = defaults.filter_map(|(name, terms)| Some((name.clone(), terms.sandboxed()?)));
    let secrets = declaration.secrets.keys().filter(|it| !declaration.is_client_certificate(it));
    let secrets = secrets.map(|name| (name.clone(), SIMULATOR_SECRET.into()));
    let secrets: BTreeMap<String, SecretString> = secrets.collect();
    let calls: HashMap<_, _> = calls.map(|call| (call.name.clone(), Arc::new(call))).collect();
    let tokens = declaration
        .tokens
        .iter()
        .filter_map(|(name, terms)| Some((name.clone(), token_source(terms, &calls, &secrets)?)));
    let keys = declaration.keys.iter();
    let keys =
        keys.filter_map(|(name, terms)| Some((name.clone(), Arc::new(simulated_key(terms).ok()?))));
    let open = declaration.notices.iter().filter(|notice| notice.auth.path_token);
    let door = Door {
        address: "https://host.example/notices/route/".to_owned(),
        token: "door".into(),
        paths: open.map(|notice| notice.path.clone()).collect(),
    };
    let access = Access {
        rail: declaration.rail.name.clone(),
        tokens: tokens.collect(),
        door: Some(door),
        calls,
        settings: settings.collect(),
        secrets,
        sealed_with: declaration.sealed_with(),
        keys: keys.collect(),
        tables: rail.tables.clone(),
    };
    let seeds = declaration.seeds.keys().map(|name| (name.clone(), "conformance".into()));
    let seeds = seeds.collect();
    Arc::new(Grant { access: Arc::new(access), money, seeds, ..Grant::default() })
}

/// The same without a way out.
pub(super) fn pure(grant: &Grant) -> Arc<Grant> {
    let Access { rail, settings, tables, .. } = &*grant.access;
    let access = Access {
        rail: rail.clone(),
        settings: settings.clone(),
        tables: tables.clone(),
        ..Access::default()
    };
    Arc::new(Grant { access: Arc::new(access), ..Grant::default() })
}

/// The payment of a case, as the rail is told of it.
pub(super) fn payment(rail: &Rail, case: Option<&PaymentCase>) -> Result<Payment, String> {
    let case = case.ok_or("the case has no payment")?;
    let terms = method(rail, case.method.as_deref())?;
    Ok(Payment {
        payout: "po_conformance00000000000000".to_owned(),
        reference: case.reference.clone(),
        serial: case.serial,
        begun_at_ms: case.begun_at_ms,
        method: terms.name.clone(),
        currency: terms.currency.to_string(),
        exponent: terms.exponent,
        amount_minor: case.amount_minor,
        recipient: fields(&case.recipient),
        sender: Vec::new(),
        narration: case.narration.clone(),
        resolution: case.resolution.as_ref().map(|resolution| Resolution {
            name: resolution.name.clone(),
            reference: resolution.reference.clone(),
            attributes: fields(&resolution.attributes),
        }),
        network_id: case.network_id.clone(),
        facts: fields(&case.facts),
    })
}

fn enquiry(rail: &Rail, case: &ExchangeCase) -> Result<Enquiry, String> {
    let terms = method(rail, case.pays_by.as_deref())?;
    Ok(Enquiry {
        serial: case.serial,
        begun_at_ms: case.begun_at_ms,
        method: terms.name.clone(),
        currency: terms.currency.as_str().to_owned(),
        account: fields(&case.account),
    })
}

/// The method of this name; the rail's first without a name.
fn method<'a>(rail: &'a Rail, name: Option<&str>) -> Result<&'a MethodTerms, String> {
    let mut methods = rail.declaration.methods.iter();
    let found = methods.find(|terms| name.is_none_or(|name| terms.name == name));
    found.ok_or_else(|| format!("{} is no method of the rail", name.unwrap_or("nothing")))
}

fn fields(map: &BTreeMap<String, String>) -> Vec<Field> {
    map.iter().map(|(name, value)| Field { name: name.clone(), value: value.clone() }).collect()
}
