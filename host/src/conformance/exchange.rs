//! Running one case against a component, with a network that answers as the case says.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use http::{Method, StatusCode};

use crate::config::limits;
use crate::rails::Rail;
use crate::rails::route::SIMULATOR_SECRET;
use crate::wasm::egress::{Endpoint, HangUp, Target};
use crate::wasm::rail::{
    Access, Enquiry, Field, Finding, Grant, Message, News, Outcome, Payment, Resolution, Unresolved,
};

use super::cases::{AnswerCase, ExchangeCase, Expected, PaymentCase, RecipientCase, ViolationCase};

/// What was sent: path and body.
type Sent = Arc<Mutex<Vec<(String, String)>>>;

/// What a call came to: its kind, and a code and a message where it has them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Came {
    pub(super) kind: &'static str,
    pub(super) code: Option<String>,
    pub(super) message: Option<String>,
}

/// Checks a recipient.
pub(super) async fn recipient(rail: &Rail, case: &RecipientCase) -> Result<(), String> {
    let method = case.method.clone().unwrap_or_else(|| default_method(rail));
    let called = rail.code.check(&rail.pure_grant(0), &method, &fields(&case.fields)).await;
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
    let sent = Sent::default();
    let answer = case.answer.clone().unwrap_or_default();
    let grant = grant(rail, &scripted(answer, Arc::clone(&sent)));
    let came = call(rail, &grant, case, on).await?;
    if let Some(expected) = &case.expects {
        check_sent(&sent, expected)?;
    }
    let wanted = &case.outcome;
    if came.kind != wanted.kind {
        return Err(format!("{came:?}, not {}", wanted.kind));
    }
    if wanted.code.is_some() && came.code != wanted.code {
        return Err(format!("code {:?}, not {:?}", came.code, wanted.code));
    }
    let message = came.message.unwrap_or_default();
    match &wanted.message {
        Some(part) if !message.contains(part) => Err(format!("{message:?} lacks {part:?}")),
        _ => Ok(()),
    }
}

async fn call(
    rail: &Rail,
    grant: &Arc<Grant>,
    case: &ExchangeCase,
    on: On,
) -> Result<Came, String> {
    let broken = |broken: crate::wasm::rail::Broken| broken.to_string();
    match case.call.as_str() {
        "submit" => {
            let payment = payment(rail, case.payment.as_ref())?;
            let (made, kept) = rail.code.reference(grant, &payment).await;
            let reference = made.result.map_err(broken)?;
            if reference != payment.reference {
                return Err(format!("made the reference {reference}, not {}", payment.reference));
            }
            let called = rail.code.submit(kept.filter(|_| on == On::ItsOwn), grant, &payment).await;
            Ok(outcome(called.result.map_err(broken)?))
        }
        "query" => {
            let payment = payment(rail, case.payment.as_ref())?;
            let called = rail.code.query(grant, &payment).await;
            Ok(finding(called.result.map_err(broken)?))
        }
        "resolve" => {
            let account = fields(&case.account);
            let (number, begun_at_ms) = (case.number, case.begun_at_ms);
            let called = rail.code.resolve(grant, &Enquiry { number, begun_at_ms, account }).await;
            Ok(match called.result.map_err(broken)? {
                Ok(found) => came("resolved", None, Some(found.name)),
                Err(Unresolved::Refused(why)) => came("refused", Some(why.code), Some(why.message)),
                Err(Unresolved::Unavailable(why)) => came("unavailable", None, Some(why)),
            })
        }
        "receive" => {
            let message = Message { path: case.path.clone(), body: case.body.clone().into_bytes() };
            let called = rail.code.receive(grant, &message).await;
            Ok(match called.result.map_err(broken)? {
                Err(why) => came("rejected", None, Some(why)),
                Ok((_, notices)) => match notices.into_iter().next().map(|notice| notice.news) {
                    Some(News::Ask) => came("ask", None, None),
                    Some(News::Returned(back)) => {
                        came("returned", Some(back.code), Some(back.message))
                    }
                    None => came("nothing", None, None),
                },
            })
        }
        other => Err(format!("{other} is no call")),
    }
}

pub(super) fn outcome(outcome: Outcome) -> Came {
    match outcome {
        Outcome::Paid(receipt) => came("paid", Some(receipt.code), None),
        Outcome::Accepted(receipt) => came("accepted", Some(receipt.code), None),
        Outcome::Refused(why) => came("refused", Some(why.code), Some(why.message)),
        Outcome::Unknown(why) => came("unknown", None, Some(why)),
    }
}

pub(super) fn finding(finding: Finding) -> Came {
    match finding {
        Finding::Paid(receipt) => came("paid", Some(receipt.code), None),
        Finding::Accepted(receipt) => came("accepted", Some(receipt.code), None),
        Finding::Refused(why) => came("refused", Some(why.code), Some(why.message)),
        Finding::Unknown(why) => came("unknown", None, Some(why)),
        Finding::NeverReceived(why) => came("never-received", None, Some(why)),
    }
}

fn came(kind: &'static str, code: Option<String>, message: Option<String>) -> Came {
    Came { kind, code, message }
}

fn check_sent(sent: &Sent, expected: &Expected) -> Result<(), String> {
    let sent = sent.lock().unwrap_or_else(PoisonError::into_inner);
    if expected.nothing {
        return if sent.is_empty() { Ok(()) } else { Err("something was sent".into()) };
    }
    let (path, body) = sent.first().ok_or("nothing was sent")?;
    if let Some(wanted) = expected.path.as_ref().filter(|wanted| *wanted != path) {
        return Err(format!("sent to {path}, not to {wanted}"));
    }
    match expected.contains.iter().find(|part| !body.contains(part.as_str())) {
        None => Ok(()),
        Some(part) => Err(format!("{part} is not in what was sent:\n{body}")),
    }
}

/// A network that answers every request as a case says, and notes what it was sent.
fn scripted(answer: AnswerCase, sent: Sent) -> Router {
    Router::new().fallback(move |request: Request| async move {
        let path = request.uri().path().to_owned();
        let body = axum::body::to_bytes(request.into_body(), limits::ANSWER_BYTES_MAX).await;
        let body = String::from_utf8_lossy(&body.unwrap_or_else(|_| Bytes::new())).into_owned();
        sent.lock().unwrap_or_else(PoisonError::into_inner).push((path, body));
        respond(&answer)
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

/// A grant whose every endpoint leads into `network`.
pub(super) fn grant(rail: &Rail, network: &Router) -> Arc<Grant> {
    let declaration = &rail.declaration;
    let endpoints: HashMap<_, _> = declaration
        .endpoints
        .iter()
        .map(|(name, terms)| {
            let methods = terms.methods.iter();
            let endpoint = Endpoint {
                name: name.clone(),
                target: Target::InProcess(network.clone()),
                paths: terms.paths.clone(),
                methods: methods.filter_map(|m| Method::from_bytes(m.as_bytes()).ok()).collect(),
                timeout: Duration::from_millis(terms.timeout_ms),
                answer_bytes_max: terms.response_bytes_max,
            };
            (name.clone(), Arc::new(endpoint))
        })
        .collect();
    let defaults = declaration.settings.iter();
    let settings =
        defaults.filter_map(|(name, terms)| Some((name.clone(), terms.default.clone()?)));
    let secrets = declaration.secrets.keys().map(|name| (name.clone(), SIMULATOR_SECRET.into()));
    let access = Access {
        rail: declaration.rail.name.clone(),
        endpoints,
        settings: settings.collect(),
        secrets: secrets.collect(),
        tables: rail.tables.clone(),
    };
    Arc::new(Grant { access: Arc::new(access), ..Grant::default() })
}

/// The payment of a case, as the rail is told of it.
pub(super) fn payment(rail: &Rail, case: Option<&PaymentCase>) -> Result<Payment, String> {
    let case = case.ok_or("the case has no payment")?;
    let currency = rail.declaration.currencies.first().ok_or("the rail has no currency")?;
    Ok(Payment {
        payout: "po_conformance00000000000000".to_owned(),
        reference: case.reference.clone(),
        number: case.number,
        begun_at_ms: case.begun_at_ms,
        method: default_method(rail),
        currency: currency.code.to_string(),
        amount_minor: case.amount_minor,
        recipient: fields(&case.recipient),
        sender: Vec::new(),
        narration: case.narration.clone(),
        resolution: case.resolution.as_ref().map(|resolution| Resolution {
            name: resolution.name.clone(),
            reference: resolution.reference.clone(),
            attributes: fields(&resolution.attributes),
        }),
    })
}

fn default_method(rail: &Rail) -> String {
    let first = rail.declaration.currencies.first();
    first.map(|terms| terms.methods[0].clone()).unwrap_or_default()
}

fn fields(map: &BTreeMap<String, String>) -> Vec<Field> {
    map.iter().map(|(name, value)| Field { name: name.clone(), value: value.clone() }).collect()
}
