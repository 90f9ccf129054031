//! What rails read in files that the network left ready.

use std::collections::BTreeMap;
use std::path::Path;

use axum::Router;

use crate::rails::Rail;
use crate::wasm::rail::{Field, Finding, Money, News, Notice, Receipt, Subject};

use super::super::cases::{Cases, NoticeCase, ReadingCase};
use super::super::exchange::{grant, pure};

/// The name of content that a case brings itself.
const UNNAMED: &str = "content";

/// Reads a file of the network, and checks what it says.
pub(super) async fn check(rail: &Rail, cases: &Cases, case: &ReadingCase) -> Result<(), String> {
    let feeds = rail.declaration.files.iter().flat_map(|terms| &terms.feeds);
    let feed = case.feed.as_ref().or_else(|| feeds.into_iter().next());
    let feed = feed.ok_or("the rail declares no feed")?;
    let (name, content) = match (&case.file, &case.content) {
        (Some(file), None) => (base(file), cases.content(file)?),
        (None, Some(content)) => (UNNAMED.to_owned(), content.clone().into_bytes()),
        _ => return Err("a reading has either file or content".to_owned()),
    };
    match (read(rail, (feed, &name), &content).await?, case.error) {
        (Err(_), true) => Ok(()),
        (Err(why), false) => Err(why),
        (Ok(notices), true) => Err(format!("it is no error, and says {notices:?}")),
        (Ok(notices), false) => says(notices, &case.notices),
    }
}

/// What a file says, if it is what files may say.
pub(super) async fn read(
    rail: &Rail,
    place: (&str, &str),
    content: &[u8],
) -> Result<Result<Vec<Notice>, String>, String> {
    let pure = pure(&grant(rail, &Router::new(), Money::Stays));
    let called = rail.code.read(&pure, place, content).await;
    let read = called.result.map_err(|broken| broken.to_string())?;
    for notice in read.iter().flatten() {
        makes_sense(rail, notice)?;
    }
    Ok(read)
}

/// Of a file only "accepted" and "refused" can be found, and corrections are of declared fields.
pub(super) fn makes_sense(rail: &Rail, Notice { about, news }: &Notice) -> Result<(), String> {
    match (about, news) {
        (
            Subject::File(_),
            News::Ask
            | News::Found(Finding::Accepted(_) | Finding::Refused(_) | Finding::Unknown(_)),
        )
        | (Subject::Reference(_) | Subject::NetworkId(_), News::Ask | News::Found(_)) => Ok(()),
        (Subject::File(identity), other) => {
            Err(format!("this cannot be said of the whole file {identity}: {other:?}"))
        }
        (_, News::Corrected(correction)) => {
            let declared = &rail.declaration.recipient.fields;
            let is_odd = |field: &&Field| !declared.iter().any(|it| it.name == field.name);
            match correction.fields.iter().find(is_odd) {
                None => Ok(()),
                Some(field) => Err(format!("{} is corrected, and not declared", field.name)),
            }
        }
    }
}

fn says(notices: Vec<Notice>, wanted: &[NoticeCase]) -> Result<(), String> {
    let found: Vec<NoticeCase> = notices.into_iter().map(in_words).collect();
    if found.len() != wanted.len() {
        return Err(format!("it says {} things, not {}: {found:?}", found.len(), wanted.len()));
    }
    match found.iter().zip(wanted).find(|(found, wanted)| !fits(found, wanted)) {
        None => Ok(()),
        Some((found, wanted)) => Err(format!("it says {found:?}, not {wanted:?}")),
    }
}

fn fits(found: &NoticeCase, wanted: &NoticeCase) -> bool {
    fn may<T: PartialEq>(found: &Option<T>, wanted: &Option<T>) -> bool {
        wanted.is_none() || found == wanted
    }
    (&found.about, &found.kind) == (&wanted.about, &wanted.kind)
        && may(&found.code, &wanted.code)
        && may(&found.amount_minor, &wanted.amount_minor)
        && may(&found.network_id, &wanted.network_id)
        && may(&found.fields, &wanted.fields)
}

/// A notice in the words of the cases.
fn in_words(notice: Notice) -> NoticeCase {
    let about = match notice.about {
        Subject::Reference(reference) => format!("reference:{reference}"),
        Subject::NetworkId(id) => format!("network-id:{id}"),
        Subject::File(identity) => format!("file:{identity}"),
    };
    let told = |kind: &str, code| NoticeCase {
        about: about.clone(),
        kind: kind.to_owned(),
        code,
        amount_minor: None,
        network_id: None,
        fields: None,
    };
    let received = |kind, receipt: Receipt| NoticeCase {
        amount_minor: receipt.amount_minor,
        network_id: receipt.network_id,
        ..told(kind, Some(receipt.code))
    };
    match notice.news {
        News::Ask => told("ask", None),
        News::Corrected(it) => {
            NoticeCase { fields: Some(fields(it.fields)), ..told("corrected", Some(it.code)) }
        }
        News::Found(Finding::Paid(receipt)) => received("paid", receipt),
        News::Found(Finding::Accepted(receipt)) => received("accepted", receipt),
        News::Found(Finding::Refused(refusal)) => told("refused", Some(refusal.code)),
        News::Found(Finding::Returned(funds)) => NoticeCase {
            amount_minor: Some(funds.amount_minor),
            network_id: funds.network_id,
            ..told("returned", Some(funds.code))
        },
        News::Found(Finding::Unknown(_)) => told("unknown", None),
        News::Found(Finding::NeverReceived(_)) => told("never-received", None),
    }
}

fn fields(fields: Vec<Field>) -> BTreeMap<String, String> {
    fields.into_iter().map(|field| (field.name, field.value)).collect()
}

fn base(file: &str) -> String {
    let name = Path::new(file).file_name();
    name.map_or_else(|| UNNAMED.to_owned(), |name| name.to_string_lossy().into_owned())
}
