//! `railhead reconcile`: a bank's statement against the books, and what comes of the differences.

mod put_right;

use std::process::Command;

use http::Method;
use jiff::civil::Date;
use mt940::{ExtDebitOrCredit, parse_mt940, sanitizers};
use railhead::money::{Currency, Minor};
use railhead::statements::{Columns, Terms, read};
use rstest::rstest;
use serde_json::{Value, json};

use crate::ach::{self, UNTIL_MONDAY, UNTIL_TUESDAY};
use crate::live::{pay, reference, until, with_bank};
use crate::program::PROGRAM;
use crate::team_commands::Desk;
use crate::test_host::{
    Answer, DESK_TOKEN, Engine, OPERATOR_TOKEN, TestHost, naira, with, with_host,
};

/// What a bank has booked: minor units, below zero where they left; a reference; a text.
type Booked<'a> = (i64, &'a str, &'a str);

const DAY: &str = "2026-11-21";

fn major(minor: i64, mark: char) -> String {
    let minor = minor.unsigned_abs();
    format!("{}{mark}{:02}", minor / 100, minor % 100)
}

/// As camt.053, with a balance that the entries come to.
fn camt(entries: &[Booked<'_>]) -> String {
    let sign = |minor: i64| if minor < 0 { "DBIT" } else { "CRDT" };
    let amount = |minor: i64| {
        let (amount, sign) = (major(minor, '.'), sign(minor));
        format!("<Amt Ccy=\"NGN\">{amount}</Amt><CdtDbtInd>{sign}</CdtDbtInd>")
    };
    let entry = |(minor, reference, text): &Booked<'_>| {
        format!(
            "<Ntry>{}<Sts><Cd>BOOK</Cd></Sts><BookgDt><Dt>{DAY}</Dt></BookgDt>\
             <BkTxCd><Prtry><Cd>NTRF</Cd></Prtry></BkTxCd>\
             <NtryDtls><TxDtls><Refs><AcctSvcrRef>{reference}</AcctSvcrRef></Refs>\
             <RmtInf><Ustrd>{text}</Ustrd></RmtInf></TxDtls></NtryDtls></Ntry>",
            amount(*minor)
        )
    };
    let balance = |kind: &str, minor: i64| {
        format!(
            "<Bal><Tp><CdOrPrtry><Cd>{kind}</Cd></CdOrPrtry></Tp>{}<Dt><Dt>{DAY}</Dt></Dt></Bal>",
            amount(minor)
        )
    };
    let sum: i64 = entries.iter().map(|(minor, ..)| minor).sum();
    format!(
        "<?xml version=\"1.0\"?><Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:camt.053.001.08\">\
         <BkToCstmrStmt><GrpHdr><MsgId>M</MsgId><CreDtTm>{DAY}T20:00:00Z</CreDtTm></GrpHdr>\
         <Stmt><Id>S1</Id><Acct><Id><Othr><Id>0123456785</Id></Othr></Id></Acct>{}{}{}</Stmt>\
         </BkToCstmrStmt></Document>",
        balance("OPBD", 1_000_000_000),
        balance("CLBD", 1_000_000_000 + sum),
        entries.iter().map(entry).collect::<String>(),
    )
}

/// As MT940.
fn mt940(entries: &[Booked<'_>]) -> String {
    let entry = |(minor, reference, text): &Booked<'_>| {
        let sign = if *minor < 0 { 'D' } else { 'C' };
        let amount = major(*minor, ',');
        format!(":61:2611211121{sign}{amount}NTRFNONREF//{reference}\r\n:86:{text}\r\n")
    };
    let sum: i64 = entries.iter().map(|(minor, ..)| minor).sum();
    format!(
        ":20:S1\r\n:25:0123456785\r\n:28C:1/1\r\n:60F:C261120NGN10000000,00\r\n{}\
         :62F:C261121NGN{}\r\n-\r\n",
        entries.iter().map(entry).collect::<String>(),
        major(1_000_000_000 + sum, ',')
    )
}

/// As a bank's own table.
fn table(entries: &[Booked<'_>]) -> String {
    let entry = |(minor, reference, text): &Booked<'_>| {
        let (debit, credit) = match minor {
            ..0 => (major(*minor, '.'), String::new()),
            _ => (String::new(), major(*minor, '.')),
        };
        format!("{DAY},\"{text}\",{reference},{debit},{credit}\n")
    };
    let head = "Transaction Date,Narration,Transaction ID,Withdrawal,Deposit\n";
    head.to_owned() + &entries.iter().map(entry).collect::<String>()
}

/// What the command prints, and whether nothing is left over.
fn reconcile(host: &TestHost, statement: &str, more: &[&str]) -> (bool, String) {
    let path = host.database.folder.path().join("statement");
    std::fs::write(&path, statement).expect("written");
    let mut command = Command::new(PROGRAM);
    command.arg("reconcile").arg(&path).args(["--url", &host.base]).args(more);
    for (name, usual) in [("--route", "ngn_nip"), ("--timezone", "Africa/Lagos")] {
        if !more.contains(&name) {
            command.args([name, usual]);
        }
    }
    let output = command
        .env_remove("DATABASE_URL")
        .env("RAILHEAD_OPERATOR_TOKEN", OPERATOR_TOKEN)
        .output()
        .expect("the program");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout) + &text(&output.stderr))
}

fn of_charge(changes: Value) -> Value {
    let mut body = json!({
        "route": "ngn_nip", "amount_minor": "5250", "direction": "paid_out",
        "account": "bank_charges", "reference": "FT0042", "booked_on": DAY, "reason": "SMS",
    });
    for (name, value) in changes.as_object().expect("an object") {
        body[name] = value.clone();
    }
    body
}

async fn adjust(host: &TestHost, token: &str, body: Value) -> Answer {
    let path = "/admin/v1/settlement_adjustments";
    host.send(Method::POST, path, token, &[], Some(body)).await
}

async fn own_account(host: &TestHost, name: &str) -> i64 {
    let sql = "SELECT COALESCE(CAST(SUM(amount_minor) AS BIGINT), 0) FROM own_entries \
               WHERE account_id = $1";
    let account = format!("system/live/NGN/{name}");
    let pool = host.app().db.pool();
    sqlx::query_scalar(sql).bind(account).fetch_one(pool).await.expect("a sum")
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_on_either_side_is_told_and_taken_in_by_two_people(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, _| {
        let mut paid = Vec::new();
        for _ in 0..4 {
            let id = pay(host, "0123456785").await.ok().id();
            paid.push(until(host, &id, "paid").await);
        }
        let sessions: Vec<String> = paid.iter().map(reference).collect();
        let own = paid[1].json["reference"].as_str().expect("a reference");
        let texts = [format!("NIP/{}/OBI", sessions[0]), format!("payout {own}")];
        // The third is with another amount, the fourth is not there, and the bank wants its fee.
        let third = sessions[2].as_str();
        let booked = [
            (-100_000, "FT0001", texts[0].as_str()),
            (-100_000, "FT0002", texts[1].as_str()),
            (-90_000, "FT0003", third),
            (-5_250, "FT0042", "SMS CHARGES"),
        ];
        for statement in [camt(&booked), mt940(&booked), table(&booked)] {
            let (is_clean, said) = reconcile(host, &statement, &[]);
            assert!(!is_clean, "{said}");
            for line in [
                "ngn_nip (live, NGN), 2026-11-21 to 2026-11-21: 2 of 4 entries of the bank are in",
                "At the bank only: 1, -52.50 in total",
                "FT0042  SMS CHARGES",
                "In the books only: 1, -1000.00 in total",
                paid[3].json["reference"].as_str().expect("a reference"),
                "With another amount: 1, -900.00 in total",
                "in the books -1000.00: po_",
                "3 left over",
            ] {
                assert!(said.contains(line), "{line} in\n{said}");
            }
            assert!(!said.contains("does not add up"), "{said}");
        }
        // Two people take the fee in, and what the bank has paid too little.
        let asked = adjust(host, DESK_TOKEN, of_charge(json!({}))).await.ok();
        assert_eq!((asked.status, asked.json["people"].as_u64()), (202, Some(2)));
        assert_eq!(own_account(host, "bank_charges").await, 0);
        let again = adjust(host, DESK_TOKEN, of_charge(json!({}))).await.ok();
        assert_eq!(again.status, 202, "one person twice is one person");
        let other = of_charge(json!({ "amount_minor": "5251" }));
        assert_eq!(adjust(host, OPERATOR_TOKEN, other).await.ok().status, 202);
        let made =
            adjust(host, DESK_TOKEN, of_charge(json!({ "amount_minor": "5251" }))).await.ok();
        assert_eq!(made.status, 201);
        let line = host.last_line().await;
        assert_eq!(
            (&line["action"], &line["after"]["requested_by"]),
            (&json!("settlement.adjust"), &json!("operator"))
        );
        assert_eq!(own_account(host, "bank_charges").await, -5_251);
        // It was a mistake, and is taken back in the same way.
        for token in [DESK_TOKEN, OPERATOR_TOKEN] {
            let back = json!({ "amount_minor": "5251", "direction": "received" });
            adjust(host, token, of_charge(back)).await.ok();
        }
        for token in [DESK_TOKEN, OPERATOR_TOKEN] {
            adjust(host, token, of_charge(json!({}))).await.ok();
        }
        let twice = adjust(host, DESK_TOKEN, of_charge(json!({}))).await;
        assert_eq!(twice.refused(), (409, "state_conflict"), "whoever asks first is told");
        let more = |amount: &str, reference: &str| {
            of_charge(json!({ "amount_minor": amount, "direction": "received",
                "account": "written_off", "reference": reference, "reason": "the bank's mistake" }))
        };
        // Two about one reference wait side by side, and neither takes the other's place.
        let short = of_charge(json!({ "amount_minor": "90000", "account": "written_off",
            "reference": third }));
        let all = [more("100000", third), short, more("100000", &sessions[3])];
        for token in [DESK_TOKEN, OPERATOR_TOKEN] {
            for body in &all {
                adjust(host, token, body.clone()).await.ok();
            }
        }
        for statement in [camt(&booked), mt940(&booked), table(&booked)] {
            let (is_clean, said) = reconcile(host, &statement, &[]);
            assert!(is_clean && said.contains("4 of 4 entries"), "{said}");
        }
        let list = "/admin/v1/settlement_adjustments?route=ngn_nip";
        let list = host.send(Method::GET, list, OPERATOR_TOKEN, &[], None).await.ok();
        assert_eq!(list.json["data"].as_array().map(Vec::len), Some(6));
        // What was written off is known, and the merchant's wallet knows nothing of any of it.
        assert_eq!(own_account(host, "written_off").await, 110_000);
        assert_eq!(own_account(host, "settlement/ngn_nip").await, 295_250);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_lacks_something_says_so_and_files_hold_all_that_is_left(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, _| {
        let id = pay(host, "0123456785").await.ok().id();
        let session = reference(&until(host, &id, "paid").await);
        let booked = [(-100_000, "FT0001", session.as_str()), (-7, "=1+12345", "@fee")];
        let cut = camt(&booked).replace("9998999.93", "9998999.00");
        let (is_clean, said) = reconcile(host, &cut, &[]);
        assert!(!is_clean && said.contains("entries of -0.93 are missing"), "{said}");
        let left = host.database.folder.path().join("left.csv");
        let (_, said) = reconcile(host, &camt(&booked), &["--output", &left.display().to_string()]);
        assert!(said.contains("1 left over"), "{said}");
        let left = std::fs::read_to_string(&left).expect("written");
        // Each text in quotes: where a semicolon separates, none of it begins a cell.
        let line = r#""bank","2026-11-21",-0.07,"NGN","'=1+12345","'@fee","#;
        assert!(left.contains(line), "{left}");
        // Other days are other days.
        let (is_clean, said) =
            reconcile(host, &camt(&booked), &["--to", "2026-11-20", "--from", "2026-11-20"]);
        assert!(is_clean && said.contains("0 of 0 entries"), "{said}");
        for (arguments, why) in [
            (["--from", "2026-11-22"], "is after"),
            (["--route", "nowhere"], "No such route"),
            (["--timezone", "Mars/Base"], "no such one"),
            (["--currency", "EUR"], "must be NGN"),
            (["--env", "moon"], "must be test or live"),
        ] {
            let (is_clean, said) = reconcile(host, &camt(&booked), &arguments);
            assert!(!is_clean && said.contains(why), "{why}: {said}");
        }
        let (_, said) = reconcile(host, "<x/>", &[]);
        assert!(said.contains("there is no statement in it"), "{said}");
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn bad_adjusting_entries_are_refused_by_field(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        for (changes, status, code, field) in [
            (json!({ "route": null }), 400, "missing_field", "route"),
            (json!({ "route": "nowhere" }), 404, "not_found", "route"),
            (json!({ "route": "manual" }), 400, "missing_field", "currency"),
            (json!({ "currency": "EUR" }), 400, "invalid_field", "currency"),
            (json!({ "env": "moon" }), 400, "invalid_field", "env"),
            (json!({ "amount_minor": "-1" }), 400, "invalid_field", "amount_minor"),
            (json!({ "direction": "up" }), 400, "invalid_field", "direction"),
            (json!({ "account": "suspense" }), 400, "invalid_field", "account"),
            (json!({ "reference": "x".repeat(141) }), 400, "invalid_field", "reference"),
            (json!({ "reference": "T-1" }), 400, "invalid_field", "reference"),
            (json!({ "booked_on": "2026-11-23" }), 400, "invalid_field", "booked_on"),
            (json!({ "booked_on": "21.11.2026" }), 400, "invalid_field", "booked_on"),
            (json!({ "reason": " " }), 400, "missing_field", "reason"),
        ] {
            let refused = adjust(host, OPERATOR_TOKEN, of_charge(changes.clone())).await;
            assert_eq!((refused.refused(), refused.field()), ((status, code), field), "{changes}");
        }
        let manual = of_charge(json!({ "route": "manual", "currency": "NGN", "env": "test" }));
        let made = adjust(host, OPERATOR_TOKEN, manual).await.ok();
        assert_eq!((made.status, &made.json["direction"]), (201, &json!("paid_out")));
        // What names it by its id takes it back as it was made, or nothing.
        for (changes, field) in [
            (json!({ "amount_minor": "52500" }), "reference"),
            (json!({ "route": "ngn_nip", "currency": null }), "reference"),
            (json!({ "account": "funding" }), "account"),
        ] {
            let mut back = of_charge(json!({
                "route": "manual", "currency": "NGN", "env": "test", "direction": "received",
                "reference": made.id(),
            }));
            for (name, value) in changes.as_object().expect("an object") {
                back[name] = value.clone();
            }
            let refused = adjust(host, OPERATOR_TOKEN, back).await;
            assert_eq!((refused.status, refused.field()), (400, field), "{changes}");
        }
        let elsewhere = of_charge(json!({
            "route": "manual", "currency": "NGN", "env": "test", "direction": "received",
            "account": "funding",
        }));
        let refused = adjust(host, OPERATOR_TOKEN, elsewhere).await;
        assert_eq!((refused.status, refused.field()), (400, "account"), "under its own name");
        for (query, field) in [
            ("env=live&from=2026-11-21", "route"),
            ("route=ngn_nip", "from"),
            ("route=ngn_nip&from=yesterday", "from"),
        ] {
            let path = format!("/admin/v1/settlement_entries?{query}");
            let refused = host.send(Method::GET, &path, OPERATOR_TOKEN, &[], None).await;
            assert_eq!((refused.status, refused.field()), (400, field), "{query}");
        }
    })
    .await;
}

/// The days of a statement are those that it covers, also where nothing was booked; and the same
/// entries in two forms are one where the bank names them.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_statement_covers_its_days_in_whatever_form(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, _| {
        let id = pay(host, "0123456785").await.ok().id();
        let session = reference(&until(host, &id, "paid").await);
        for nothing in [camt(&[]), mt940(&[])] {
            let (is_clean, said) = reconcile(host, &nothing, &[]);
            assert!(!is_clean && said.contains("In the books only: 1"), "{said}");
            assert!(!said.contains("which days it covers"), "{said}");
        }
        let booked = [(-100_000, "FT0001", session.as_str()), (-5_250, "FT0042", "SMS CHARGES")];
        let (_, said) = reconcile(host, &table(&booked), &[]);
        assert!(said.contains("does not say which days it covers"), "{said}");
        let other = host.database.folder.path().join("statement.sta");
        std::fs::write(&other, mt940(&booked)).expect("written");
        let (is_clean, said) = reconcile(host, &camt(&booked), &[&other.display().to_string()]);
        assert!(!is_clean && said.contains("are of different forms"), "{said}");
        assert!(said.contains("1 of 2 entries") && said.contains("1 left over"), "{said}");
    })
    .await;
}

/// Entries of the sandbox, of other currencies and of other days are of no account here.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_account_is_of_one_environment_and_one_currency(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, _| {
        // The sandbox has a route of the same name.
        host.pay("paid", naira(250_000)).await.ok();
        let by_hand = of_charge(json!({ "route": "manual", "currency": "NGN", "env": "test" }));
        adjust(host, OPERATOR_TOKEN, by_hand).await.ok();
        host.advance(1);
        let october = "2026-10-15";
        for token in [DESK_TOKEN, OPERATOR_TOKEN] {
            adjust(host, token, of_charge(json!({ "booked_on": october }))).await.ok();
        }
        for (account, count) in [
            ("env=test&route=ngn_nip", 1),
            ("env=live&route=ngn_nip", 0),
            ("env=test&route=manual&currency=NGN", 1),
            ("env=live&route=manual&currency=NGN", 0),
            ("env=test&route=manual&currency=USD", 0),
        ] {
            let path = format!("/admin/v1/settlement_entries?{account}&from=2026-11-20");
            let told = host.send(Method::GET, &path, OPERATOR_TOKEN, &[], None).await.ok();
            let end = format!("\"count\":{count}}}");
            assert!(told.text.trim_end().ends_with(&end), "{account}: {}", told.text);
        }
        // What was taken in late counts where the bank has booked it.
        let booked = [(-5_250, "FT0042", "SMS CHARGES")];
        let statement = table(&booked).replace(DAY, october);
        let (is_clean, said) = reconcile(host, &statement, &[]);
        assert!(is_clean && said.contains("1 of 1 entries"), "{said}");
        let nothing = table(&[]);
        let (is_clean, said) = reconcile(host, &nothing, &["--from", DAY, "--to", DAY]);
        assert!(is_clean && said.contains("0 of 0 entries"), "{said}");
    })
    .await;
}

/// What was taken in by mistake is taken back, and taken in as it is right.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_mistake_is_taken_back_and_mended(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, _| {
        let (out, back) = (json!({ "account": "funding" }), json!({ "direction": "received" }));
        let back = with(back, out.clone());
        for (changes, is_taken) in
            [(&out, true), (&out, false), (&back, true), (&json!({}), true), (&json!({}), false)]
        {
            for token in [DESK_TOKEN, OPERATOR_TOKEN] {
                let answer = adjust(host, token, of_charge(changes.clone())).await;
                assert_eq!(answer.status < 300, is_taken, "{changes}: {}", answer.text);
            }
        }
        let booked = [(-5_250, "FT0042", "SMS CHARGES")];
        let (is_clean, said) = reconcile(host, &table(&booked), &[]);
        assert!(is_clean && said.contains("1 of 1 entries"), "{said}");
        assert_eq!(own_account(host, "bank_charges").await, -5_250);
    })
    .await;
}

/// Some banks book each payment of a file, some book the file.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_booked_as_one_is_all_of_its_payments(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, _| {
        ach::funded(host, &host.merchant.live_key.clone()).await;
        let paid = [ach::pay_live(host, "77").await, ach::pay_live(host, "78").await];
        host.advance(UNTIL_MONDAY);
        until(host, &paid[1], "processing").await;
        host.advance(2);
        ach::until_files(host, &[("delivered", 1)]).await;
        host.advance(300);
        ach::until_files(host, &[("acknowledged", 1)]).await;
        host.advance(UNTIL_TUESDAY);
        for id in &paid {
            until(host, id, "paid").await;
        }
        let day = "2026-11-24";
        let traces = [ach::reference(host, &paid[0]).await, ach::reference(host, &paid[1]).await];
        let each = [(-125_050, traces[0].as_str(), "CCD"), (-125_050, traces[1].as_str(), "CCD")];
        let file = "ACH SETTLEMENT ACH-20261123-00000001";
        let to_compare = ["--route", "usd_ach", "--timezone", "America/New_York"];
        for booked in [&each[..], &[(-250_100, "FT1", file)]] {
            let (is_clean, said) = reconcile(host, &table(booked).replace(DAY, day), &to_compare);
            let all = format!("{0} of {0} entries", booked.len());
            assert!(is_clean && said.contains(&all), "{said}");
        }
        // One that is booked besides is its own; the file is then short of the other.
        for (booked, left) in
            [(vec![(-250_000, "FT1", file)], 3), (vec![each[0], (-250_100, "FT1", file)], 2)]
        {
            let (is_clean, said) = reconcile(host, &table(&booked).replace(DAY, day), &to_compare);
            assert!(!is_clean && said.contains(&format!("{left} left over")), "{said}");
        }
    })
    .await;
}

/// The commands of the page for operators.
#[tokio::test(flavor = "multi_thread")]
async fn the_commands_about_settlement_work() {
    with_bank(Engine::Sqlite, async |host, _| {
        let desk = |token: &str| Desk { url: host.base.clone(), token: token.into() };
        let adjust = "admin settlement adjust ngn_nip --amount-minor 5250 --paid-out \
                      --account bank_charges --reference FT0042 --booked-on 2026-11-21";
        let mut words: Vec<&str> = adjust.split_whitespace().collect();
        words.extend(["--reason", "SMS charges of November"]);
        let asked = desk(DESK_TOKEN).says(&words, "");
        assert_eq!(asked["object"], "approval_request");
        let made = desk(OPERATOR_TOKEN).says(&words, "");
        assert_eq!(
            (&made["amount_minor"], &made["account"]),
            (&json!("5250"), &json!("bank_charges"))
        );
        let list = ["admin", "settlement", "list", "--route", "ngn_nip"];
        assert_eq!(desk(OPERATOR_TOKEN).says(&list, "")["data"], json!([made]));
    })
    .await;
}

/// What could be done to adjusting entries by somebody with the database's password: there is one.
pub(crate) const TAMPERINGS: &[(&str, &str)] = &[
    ("UPDATE settlement_adjustments SET amount_minor = 5251", "adjustment-journal"),
    ("UPDATE settlement_adjustments SET contra = 'funding'", "adjustment-journal"),
    ("UPDATE settlement_adjustments SET route = 'ngn_other'", "adjustment-journal"),
    ("UPDATE settlement_adjustments SET reference = 'FT0043'", "adjustment-without-operator"),
    ("UPDATE settlement_adjustments SET nth = 2", "adjustment-without-operator"),
    ("UPDATE settlement_adjustments SET unique_key = 'x'", "adjustment-without-operator"),
    ("UPDATE settlement_adjustments SET reason = 'nothing'", "seal"),
    ("DELETE FROM settlement_adjustments", "journal-without-adjustment"),
    ("DELETE FROM audit WHERE action = 'settlement.adjust'", "adjustment-without-operator"),
    (
        "UPDATE audit SET after = REPLACE(after, '\"by\":\"desk\"', '\"by\":\"operator\"') \
         WHERE action = 'settlement.adjust'",
        "adjustment-without-operator",
    ),
    (
        "UPDATE journals SET lines = REPLACE(lines, '\"bank_charges\"', '\"funding\"') \
         WHERE ref_type = 'SettlementAdjustment'",
        "adjustment-journal",
    ),
];

/// An adjusting entry that two operators made.
pub(crate) async fn ordinary(host: &TestHost) {
    for token in [DESK_TOKEN, OPERATOR_TOKEN] {
        adjust(host, token, of_charge(json!({}))).await.ok();
    }
}

/// Statements of banks that others have collected, read as another program reads them.
#[test]
fn statements_of_many_banks_are_read_as_another_program_reads_them() {
    let folder = sample_folder();
    let (mut statements, mut entries) = (0, 0);
    let mut waiting = vec![folder];
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                waiting.push(path);
                continue;
            }
            if path.extension().is_none_or(|ending| ending != "sta") {
                continue;
            }
            let bytes = std::fs::read(&path).expect("a file");
            let Some((currency, theirs)) = theirs(&bytes) else { continue };
            let terms = Terms { currency, places: 2, columns: Columns::default() };
            let ours = read(&bytes[..], &terms);
            let ours = ours.unwrap_or_else(|why| panic!("{}: {why}", path.display()));
            let ours: Vec<(Date, Minor)> = ours
                .iter()
                .flat_map(|it| it.entries.iter().map(|it| (it.booked_on, it.amount)))
                .collect();
            assert_eq!(ours, theirs, "{}", path.display());
            entries += theirs.len();
            statements += 1;
        }
    }
    assert!(statements >= 12 && entries >= 100, "{statements} files, {entries} entries");
}

/// Where the crate that we compare with keeps its samples.
fn sample_folder() -> std::path::PathBuf {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--offline", "--locked", "--filter-platform"])
        // What other systems need is not here to be looked at.
        .arg(format!("{}-unknown-linux-gnu", std::env::consts::ARCH))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("metadata");
    let mut packages = metadata["packages"].as_array().expect("packages").iter();
    let package = packages.find(|package| package["name"] == "mt940").expect("mt940");
    let manifest = package["manifest_path"].as_str().expect("a path");
    std::path::Path::new(manifest).with_file_name("tests").join("data/mt940/full")
}

/// Day and amount of each entry, as the other program reads them; nothing where it cannot, or where
/// a file is in two currencies.
fn theirs(bytes: &[u8]) -> Option<(Currency, Vec<(Date, Minor)>)> {
    let text = sanitizers::sanitize(&String::from_utf8_lossy(bytes));
    let messages = parse_mt940(&text).ok()?;
    let currency = messages.first()?.opening_balance.iso_currency_code.clone();
    if messages.iter().any(|it| it.opening_balance.iso_currency_code != currency) {
        return None;
    }
    let lines = messages.iter().flat_map(|message| &message.statement_lines);
    let each = lines.map(|line| {
        let day = line.entry_date.unwrap_or(line.value_date).to_string();
        let amount = line.amount.to_string();
        let (whole, part) = amount.split_once('.').unwrap_or((&amount, ""));
        let units: i64 = format!("{whole}{part:0<2}").parse().ok()?;
        // It calls RC, which takes a credit back, a debit taken back, and RD the other way round.
        let sign = match line.ext_debit_credit_indicator {
            ExtDebitOrCredit::Credit | ExtDebitOrCredit::ReverseCredit => 1,
            ExtDebitOrCredit::Debit | ExtDebitOrCredit::ReverseDebit => -1,
        };
        Some((day.parse().ok()?, Minor::new(units * sign)))
    });
    Some((Currency::parse(&currency)?, each.collect::<Option<Vec<_>>>()?))
}
