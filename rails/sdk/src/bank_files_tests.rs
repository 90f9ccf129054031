use super::{Limits, Passed, Rejected, Report, Status, records};
use crate::host::double::{self, Host};
use crate::types::{Finding, News, Notice, Subject};

const LIMITS: Limits =
    Limits { file: &["invalid_file"], payment: &["limit"], amount_minor_max: 100 };

fn accepted() -> Report {
    Report {
        file: "42".into(),
        status: Status::Accepted,
        code: None,
        message: None,
        payments: Some(3),
        total_minor: Some(250),
        rejected: Vec::new(),
    }
}

fn rejected(name: &str, code: &str) -> Option<Rejected> {
    Some(Rejected { network_id: name.into(), code: code.into(), message: None })
}

fn told(report: Report) -> Result<Vec<Notice>, String> {
    double::install(Host::default());
    report.notices(&LIMITS)
}

fn findings(report: Report) -> Vec<(Subject, Finding)> {
    let finding = |notice: Notice| match notice.news {
        News::Found(finding) => (notice.about, finding),
        other => panic!("{other:?}"),
    };
    told(report).expect("notices").into_iter().map(finding).collect()
}

#[test]
fn an_accepted_file_and_what_is_rejected_of_it() {
    let rejected = vec![rejected("b", "limit"), rejected("a", "LIMIT")];
    let found = findings(Report { rejected, ..accepted() });
    let [(file, Finding::Accepted(receipt)), a, b] = &found[..] else { panic!("{found:?}") };
    assert_eq!((file, receipt.amount_minor), (&Subject::File("42".into()), Some(250)));
    assert!(matches!(a, (Subject::NetworkId(it), Finding::Unknown(_)) if it == "a"));
    assert!(matches!(b, (Subject::NetworkId(it), Finding::Refused(_)) if it == "b"));
}

#[test]
fn a_rejected_file() {
    let report = |code: Option<&str>| Report {
        status: Status::Rejected,
        code: code.map(Into::into),
        total_minor: None,
        payments: None,
        ..accepted()
    };
    let [(_, Finding::Refused(_))] = &findings(report(Some("invalid_file")))[..] else { panic!() };
    for code in [None, Some("limit"), Some("duplicate")] {
        let [(_, Finding::Unknown(_))] = &findings(report(code))[..] else { panic!("{code:?}") };
    }
    let rejected = vec![rejected("a", "limit")];
    assert!(told(Report { rejected, ..report(Some("invalid_file")) }).is_err());
}

#[test]
fn what_contradicts_itself_accepts_nothing() {
    for report in [
        Report { total_minor: None, ..accepted() },
        Report { total_minor: Some(2), ..accepted() },
        Report { total_minor: Some(301), ..accepted() },
        Report { payments: Some(0), ..accepted() },
        Report { code: Some("invalid_file".into()), ..accepted() },
        Report { message: Some("no".into()), ..accepted() },
        Report {
            payments: Some(1),
            rejected: vec![rejected("a", "x"), rejected("b", "x")],
            ..accepted()
        },
        Report { rejected: vec![rejected("a", "limit"), rejected("a", "limit")], ..accepted() },
    ] {
        let text = format!("{report:?}");
        assert!(told(report).is_err(), "{text}");
    }
}

#[test]
fn a_rejected_payment_that_cannot_be_read_leaves_the_file_open() {
    let found = findings(Report { rejected: vec![rejected("a", "limit"), None], ..accepted() });
    assert!(matches!(&found[..], [(Subject::NetworkId(_), Finding::Refused(_))]));
    assert!(told(Report { rejected: vec![None], ..accepted() }).is_err());
}

#[test]
fn a_record_that_cannot_be_read_hides_nothing() {
    let ask = |name: &str| Notice { about: Subject::NetworkId(name.into()), news: News::Ask };
    let news = |record: &&str| match *record {
        "other" => Err(Passed::Elsewhere("another company's".into())),
        "odd" => Err(Passed::Unreadable("no amount".into())),
        own => Ok(ask(own)),
    };
    let read = |all: &[&str]| {
        double::install(Host::default());
        let told = records(all, news, |record| format!("in words: {record}"))?;
        let name = |notice: Notice| match notice.about {
            Subject::NetworkId(name) => name,
            other => panic!("{other:?}"),
        };
        Ok::<_, String>(told.into_iter().map(name).collect::<Vec<_>>())
    };
    assert_eq!(read(&["a", "odd", "b"]).expect("three"), ["a", "in words: odd", "b"]);
    assert_eq!(read(&["other"]), Ok(Vec::new()));
    assert_eq!(read(&[]), Ok(Vec::new()));
    assert_eq!(read(&["odd", "other"]), Err("no amount".to_owned()));
}
