//! Cases of rails that pay by file: what is assembled, what the answers to a delivery mean, and
//! what the network's files say.

mod made;
mod played;
mod told;

use crate::rails::Rail;
use crate::rails::methods::Via;
use crate::wasm::egress::Exchange;
use crate::wasm::rail::{Delivery, File, Money, Presence};

use super::cases::{Cases, FileCallCase};
use super::exchange::{check_sent, grant, scripted};
use super::{Report, twice};

pub(super) use played::Filed;

pub(super) async fn run(rail: &Rail, cases: &Cases, report: &mut Report) {
    if let Err(why) = declared_as_made(rail) {
        return report.note("what the declaration says of files", Err(why));
    }
    let mut files = Vec::new();
    for case in &cases.assemblies {
        let made = made::make(rail, case).await;
        let result = made.as_ref().map_err(Clone::clone);
        report.note(&case.name, result.and_then(|made| made::check(cases, case, made)));
        files.push(made.ok().map(|made| File {
            name: made.name,
            identity: made.identity,
            content: made.content,
        }));
    }
    let first = files.into_iter().next().flatten();
    for case in &cases.deliveries {
        let result = match &first {
            Some(file) => twice(async || deliver(rail, file, case).await).await,
            None => Err("no file was made that could be delivered".to_owned()),
        };
        report.note(&format!("delivery {}", case.name), result);
    }
    for case in &cases.looks {
        let result = match &first {
            Some(file) => twice(async || look(rail, file, case).await).await,
            None => Err("no file was made that could be looked for".to_owned()),
        };
        report.note(&format!("looking for it: {}", case.name), result);
    }
    for case in &cases.readings {
        let result = twice(async || told::check(rail, cases, case).await).await;
        report.note(&format!("reading {}", case.name), result);
    }
}

/// A rail that pays by file says so, in its declaration and in what it exports.
fn declared_as_made(rail: &Rail) -> Result<(), String> {
    let by_file = rail.declaration.methods.iter().find(|terms| terms.via == Via::Files);
    match (by_file, rail.code.makes_files()) {
        (Some(terms), false) => {
            let name = &terms.name;
            Err(format!("method {name} goes by file, and the component exports no files"))
        }
        (None, true) => {
            Err("the component exports files, and no method has via = \"files\"".to_owned())
        }
        _ => Ok(()),
    }
}

async fn deliver(rail: &Rail, file: &File, case: &FileCallCase) -> Result<(), String> {
    let network = scripted(rail, case.answer.clone().unwrap_or_default());
    let called = rail.code.deliver(&grant(rail, &network, Money::MayMove), file).await;
    let (came, why) = match called.result.map_err(|broken| broken.to_string())? {
        Delivery::Taken => ("taken", String::new()),
        Delivery::Refused(refusal) => ("refused", refusal.message),
        Delivery::NotTaken(why) => ("not-taken", why),
        Delivery::Unknown(why) => ("unknown", why),
    };
    if matches!(came, "taken" | "refused") && !called.may_have_moved_money {
        return Err(format!("{came}, and no call was made that moves money"));
    }
    concluded(case, (came, &why), &called.exchanges)
}

async fn look(rail: &Rail, file: &File, case: &FileCallCase) -> Result<(), String> {
    let network = scripted(rail, case.answer.clone().unwrap_or_default());
    let called = rail.code.look(&grant(rail, &network, Money::Stays), file).await;
    moves_nothing(&called.exchanges)?;
    let (came, why) = match called.result.map_err(|broken| broken.to_string())? {
        Presence::Present => ("present", String::new()),
        Presence::Absent => ("absent", String::new()),
        Presence::Unknown(why) => ("unknown", why),
    };
    concluded(case, (came, &why), &called.exchanges)
}

fn concluded(
    case: &FileCallCase,
    (came, why): (&str, &str),
    exchanges: &[Exchange],
) -> Result<(), String> {
    if let Some(expected) = &case.expects {
        check_sent(exchanges, expected)?;
    }
    match came == case.outcome {
        true => Ok(()),
        false if why.is_empty() => Err(format!("{came}, not {}", case.outcome)),
        false => Err(format!("{came} ({why}), not {}", case.outcome)),
    }
}

/// Only a delivery may try a call that moves money.
fn moves_nothing(exchanges: &[Exchange]) -> Result<(), String> {
    match exchanges.iter().find(|exchange| exchange.moves_money) {
        None => Ok(()),
        Some(tried) => Err(format!("it makes the call {}, which moves money", tried.call)),
    }
}
