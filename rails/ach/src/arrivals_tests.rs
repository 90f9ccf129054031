//! Files of the bank's: whole ones, and the same damaged in every place.

use railhead_rail::host::double;
use railhead_rail::types::{Finding, News, Notice, ReturnOfFunds, Subject};

use crate::arrivals::read;
use crate::fixtures;
use crate::incoming;

const RETURNS: &[u8] = include_bytes!("../cases/golden/returns.ach");
const TRIMMED: &[u8] = include_bytes!("../cases/golden/returns-trimmed.ach");
const CHANGES: &[u8] = include_bytes!("../cases/golden/changes.ach");
const REPORT: &[u8] = br#"{"report":"file","reference_code":"00000042","status":"accepted",
"total_credit":12345,"rejected_entries":[{"trace_number":"121042880000001","amount":5,"code":"limit"}]}"#;

/// What the returns say that repeat our reference.
const NAMED: [&str; 4] = [
    "R16000000000002 R02",
    "R16000000000004 R15",
    "R16000000000006 C03 routing_number=121042882 account_number=0098-76X",
    "R16000000000003 R23",
];

/// Settings, each as another company or another bank has it.
const OTHERS: [(&str, &str); 2] = [("company_id", "1987654320"), ("odfi", "12104289")];

fn returned(notices: &[Notice]) -> Vec<(Option<String>, i64)> {
    let funds = |notice: &Notice| match &notice.news {
        News::Found(Finding::Returned(ReturnOfFunds { network_id, amount_minor, .. })) => {
            Some((network_id.clone(), *amount_minor))
        }
        _ => None,
    };
    notices.iter().filter_map(funds).collect()
}

/// Reads what a file was made into. Nobody's amount may be another one than it was.
fn try_it(damaged: &[u8], good: &[(Option<String>, i64)]) -> bool {
    let Ok(notices) = read("incoming", "a.ach", damaged) else { return false };
    for (id, amount) in returned(&notices) {
        let is_known = good.iter().any(|known| known.1 == amount && known.0 == id);
        assert!(is_known, "{id:?} {amount} in {}", String::from_utf8_lossy(damaged));
    }
    true
}

/// What is said about whom, with the code: and the fields of a correction.
fn told(notices: &[Notice]) -> Vec<String> {
    let about = |notice: &Notice| match &notice.about {
        Subject::Reference(text) | Subject::NetworkId(text) | Subject::File(text) => text.clone(),
    };
    let tell = |notice: &Notice| match &notice.news {
        News::Found(Finding::Returned(funds)) => format!("{} {}", about(notice), funds.code),
        News::Corrected(correction) => {
            let fields = correction.fields.iter();
            let fields: Vec<_> = fields.map(|it| format!(" {}={}", it.name, it.value)).collect();
            format!("{} {}{}", about(notice), correction.code, fields.concat())
        }
        News::Ask => about(notice),
        other => panic!("{other:?}"),
    };
    notices.iter().map(tell).collect()
}

#[test]
fn returns_and_changes_between_each_other() {
    fixtures::install();
    let [first, second, third, fourth] = NAMED;
    let expected = [first, second, third, fourth, "121042880000005 R03"];
    for content in [RETURNS, TRIMMED] {
        let notices = read("incoming", "a.ach", content).expect("a file");
        assert_eq!(told(&notices), expected);
        let amounts: Vec<i64> = returned(&notices).iter().map(|(_, amount)| *amount).collect();
        assert_eq!(amounts, [125_050, 1, 4_200_000, 99]);
        assert_eq!(returned(&notices)[3].0.as_deref(), Some("021000020000005"));
    }
}

#[test]
fn every_change() {
    fixtures::install();
    let notices = read("incoming", "a.ach", CHANGES).expect("a file");
    let account = "account_number=00012345678901234";
    let expected = [
        "R16000000000100 C01 account_number=7654-321".to_owned(),
        "R16000000000101 C02 routing_number=021000021".to_owned(),
        format!("R16000000000102 C03 routing_number=021000021 {account}"),
        "R16000000000103 C04 name=Jane Smith-Jones".to_owned(),
        "R16000000000104 C05 account_type=savings".to_owned(),
        format!("R16000000000105 C06 {account} account_type=savings"),
        format!("R16000000000106 C07 routing_number=021000021 {account} account_type=checking"),
        "R16000000000107 C08".to_owned(),
        "R16000000000108 C09".to_owned(),
        "R16000000000109 C10".to_owned(),
        "R16000000000110 C11".to_owned(),
        "R16000000000111 C12".to_owned(),
        "R16000000000112 C13".to_owned(),
        "R16000000000113 C14".to_owned(),
    ];
    assert_eq!(told(&notices), expected);
}

#[test]
fn corrected_data_that_cannot_be_read() {
    fixtures::install();
    let odd = include_bytes!("../cases/golden/changes-odd.ach");
    let notices = read("incoming", "a.ach", odd).expect("a file");
    assert_eq!(notices.len(), 11);
    for (notice, told) in notices.iter().zip(told(&notices)) {
        let News::Corrected(correction) = &notice.news else { panic!("{told}") };
        assert!(correction.fields.is_empty() && !correction.message.is_empty(), "{told}");
    }
}

#[test]
fn what_is_bad_or_about_something_else_hides_nothing() {
    fixtures::install();
    let notices = read("incoming", "a.ach", include_bytes!("../cases/golden/neighbours.ach"));
    let unread = |line| format!("a record that could not be read, line {line} of a.ach");
    let mut expected: Vec<String> = [5, 11, 13].map(unread).to_vec();
    expected.push("R16000000000050 R03".to_owned());
    expected.extend([17, 19, 21, 22, 24, 26].map(unread));
    expected.push("R16000000000051 R99".to_owned());
    expected.push(unread(39));
    expected.push("R16000000000061 C05 account_type=savings".to_owned());
    expected.push(unread(45));
    assert_eq!(told(&notices.expect("a file")), expected);
    let elsewhere = read("incoming", "a.ach", include_bytes!("../cases/golden/elsewhere.ach"));
    assert_eq!(elsewhere, Ok(Vec::new()));
    assert!(read("incoming", "a.ach", include_bytes!("../cases/golden/unreadable.ach")).is_err());
}

#[test]
fn a_bank_may_place_the_companys_identification_as_it_likes() {
    fixtures::install();
    let text = std::str::from_utf8(RETURNS).expect("ASCII");
    let placed = |kind: char, instead: &str, text: &str| {
        let lines = text.lines().map(|line| match line.starts_with(kind) {
            true => line.replace("1987654321", instead),
            false => line.to_owned(),
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    let headers = placed('5', "987654321 ", text);
    assert!(read("incoming", "a.ach", headers.as_bytes()).is_err());
    let both = placed('8', " 987654321", &headers);
    assert_eq!(incoming::parse(both.as_bytes()).expect("a file").len(), 5);
    // It is the same company, also to the entry that does not repeat our reference.
    assert_eq!(read("incoming", "a.ach", both.as_bytes()), read("incoming", "a.ach", RETURNS));
    // Nine other characters are those of another one: a person looks.
    let other = both.replace("987654321", "887654321");
    let notices = read("incoming", "a.ach", other.as_bytes()).expect("a file");
    assert!(notices.iter().all(|it| matches!(&it.about, Subject::NetworkId(_))), "{notices:?}");
}

#[test]
fn our_reference_tells_whose_it_is_of_every_company_that_the_settings_name() {
    fixtures::install();
    let changes = told(&read("incoming", "a.ach", CHANGES).expect("a file"));
    let all = told(&read("incoming", "a.ach", RETURNS).expect("a file"));
    for (setting, other) in OTHERS {
        let mut host = fixtures::host();
        host.settings.insert(setting.into(), other.into());
        host.settings.insert("further_company_ids".into(), "1123456789 1987654321".into());
        double::install(host);
        let notices = read("incoming", "a.ach", RETURNS).expect("a file");
        // By its trace number alone an entry is the bank's of these days only.
        let expected =
            if setting == "odfi" { NAMED.map(str::to_owned).to_vec() } else { all.clone() };
        assert_eq!(told(&notices), expected, "{setting}");
        let notices = read("incoming", "a.ach", CHANGES).expect("a file");
        assert_eq!(told(&notices), changes, "{setting}");
    }
    let mut host = fixtures::host();
    host.settings.remove("company_id");
    double::install(host);
    assert!(read("incoming", "a.ach", RETURNS).is_err());
}

#[test]
fn a_person_looks_at_our_reference_of_another_company() {
    let mut host = fixtures::host();
    let [(setting, other), _] = OTHERS;
    host.settings.insert(setting.into(), other.into());
    double::install(host);
    let notices = read("incoming", "a.ach", RETURNS).expect("a file");
    assert_eq!(notices.len(), NAMED.len());
    for notice in &notices {
        let Subject::NetworkId(name) = &notice.about else { panic!("{notice:?}") };
        let is_told = name.starts_with("an entry to the company 1987654321 with the reference R16");
        assert!(is_told && name.len() <= 80, "{name}");
    }
}

#[test]
fn a_person_looks_at_what_comes_back_as_a_duplicate() {
    fixtures::install();
    let text = std::str::from_utf8(RETURNS).expect("ASCII").replace("799R02", "799R24");
    let notices = read("incoming", "a.ach", text.as_bytes()).expect("a file");
    let expected = "121042880000001 returned as a duplicate (R24) R24";
    assert_eq!(told(&notices)[0], expected);
    assert_eq!(returned(&notices)[0], (Some("021000020000001".to_owned()), 125_050));
    assert_eq!(notices.len(), 5);
}

#[test]
fn a_record_that_could_not_be_read_is_told_of_by_a_name_that_can_be_shown() {
    fixtures::install();
    let content = include_bytes!("../cases/golden/neighbours.ach");
    let name = format!("a\n{}", "b".repeat(200));
    let told = told(&read("incoming", &name, content).expect("a file"));
    let shown = format!("line 5 of a {}", "b".repeat(78));
    assert!(told[0].ends_with(&shown), "{}", told[0]);
}

#[test]
fn no_damage_changes_an_amount() {
    for content in [RETURNS, TRIMMED, CHANGES, REPORT] {
        fixtures::install();
        let good = returned(&read("incoming", "a.ach", content).expect("a file"));
        for at in 0..content.len() {
            for byte in b"092A -\n\"\xff" {
                let mut damaged = content.to_vec();
                damaged[at] = *byte;
                try_it(&damaged, &good);
                damaged.insert(at, content[at]);
                try_it(&damaged, &good);
            }
            let without = [&content[..at], &content[at + 1..]].concat();
            try_it(&without, &good);
            try_it(&content[..at], &good);
        }
        double::install(double::Host::default());
    }
}

#[test]
fn no_damage_makes_a_refusal_or_an_acceptance() {
    fixtures::install();
    let head = "{\"report\":\"file\",\"reference_code\":\"00000042\",\"status\":";
    for rest in [
        "\"rejected\",\"code\":\"already_received\",\"message\":\"We have it\"}",
        "\"rejected\",\"code\":\"invalid_file\",\"message\":\"A duplicate, a duplicate\"}",
        "\"rejected\",\"total_credit\":12345}",
        "\"accepted\",\"entries\":5}",
        "\"accepted\",\"total_credit\":12345,\"code\":\"exposure_limit\"}",
        "\"accepted\",\"total_credit\":12345,\"accepted_entries\":0}",
    ] {
        let content = format!("{head}{rest}").into_bytes();
        for at in 0..content.len() {
            let mut others = vec![[&content[..at], &content[at + 1..]].concat()];
            for byte in b"092A -\n\"\xff_" {
                let mut damaged = content.clone();
                damaged[at] = *byte;
                others.push(damaged.clone());
                damaged.insert(at, content[at]);
                others.push(damaged);
            }
            for damaged in others {
                let notices = read("incoming", "a.json", &damaged).unwrap_or_default();
                let is_definite = |notice: &Notice| {
                    matches!(notice.news, News::Found(Finding::Refused(_) | Finding::Accepted(_)))
                };
                let text = String::from_utf8_lossy(&damaged);
                assert!(!notices.iter().any(is_definite), "{notices:?}: {text}");
            }
        }
    }
}

#[test]
fn every_digit_of_an_amount_and_of_a_total_counts() {
    fixtures::install();
    let text = std::str::from_utf8(RETURNS).expect("ASCII");
    let good = returned(&read("incoming", "a.ach", RETURNS).expect("a file"));
    for (place, line) in text.lines().enumerate() {
        let fields = match &line[..1] {
            "6" => 29..39,
            "8" => 4..44,
            "9" if !line.starts_with("99") => 1..55,
            _ => continue,
        };
        for at in fields {
            let mut damaged = RETURNS.to_vec();
            let byte = &mut damaged[place * 95 + at];
            *byte = if *byte == b'9' { b'0' } else { *byte + 1 };
            assert!(!try_it(&damaged, &good), "line {} position {}", place + 1, at + 1);
        }
    }
}

#[test]
fn entries_that_change_places_or_get_lost_are_noticed() {
    fixtures::install();
    let text = std::str::from_utf8(RETURNS).expect("ASCII");
    let good = returned(&read("incoming", "a.ach", RETURNS).expect("a file"));
    let lines: Vec<&str> = text.lines().collect();
    for at in 0..lines.len() {
        let mut without = lines.clone();
        without.remove(at);
        let is_filler = lines[at].starts_with("99");
        assert_eq!(try_it(without.join("\n").as_bytes(), &good), is_filler, "line {}", at + 1);
        let mut twice = lines.clone();
        twice.insert(at, lines[at]);
        assert_eq!(try_it(twice.join("\n").as_bytes(), &good), is_filler, "line {}", at + 1);
        for other in at + 1..lines.len() {
            let mut swapped = lines.clone();
            swapped.swap(at, other);
            try_it(swapped.join("\n").as_bytes(), &good);
        }
    }
}

#[test]
fn a_feed_that_there_is_not() {
    fixtures::install();
    assert!(read("outgoing", "a.ach", RETURNS).is_err());
}
