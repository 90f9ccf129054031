//! `railhead batch`: a payroll out of a file is paid once, whatever happens on the way.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use http::Method;
use rstest::rstest;
use rust_xlsxwriter::Workbook;
use serde_json::json;
use tokio::process::Command;

use crate::accounts::account;
use crate::batches::{COST, START, bulk_key};
use crate::program::PROGRAM;
use crate::test_host::{Engine, OPERATOR_TOKEN, TestHost, with_host};

/// Somebody with a payroll, a key and a terminal.
struct Clerk<'a> {
    host: &'a TestHost,
    key: String,
    folder: tempfile::TempDir,
}

impl<'a> Clerk<'a> {
    async fn of(host: &'a TestHost) -> Self {
        let key = bulk_key(host, "test").await;
        Self { host, key, folder: tempfile::tempdir().expect("a folder") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, lines: &[String]) {
        std::fs::write(self.path(name), lines.join("\n")).expect("written");
    }

    /// What a command says, and whether it went well.
    async fn run(&self, arguments: &[&str]) -> (bool, String) {
        let mut command = Command::new(PROGRAM);
        command.arg("batch").args(arguments).args(["--url", &self.host.base]);
        command.current_dir(self.folder.path()).env_remove("DATABASE_URL");
        command.env("RAILHEAD_API_KEY", &self.key).stdin(std::process::Stdio::null());
        let output = command.output().await.expect("the program");
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).expect("text"))
    }

    async fn good(&self, arguments: &[&str]) -> String {
        let (is_good, said) = self.run(arguments).await;
        assert!(is_good, "{said}");
        said
    }

    async fn bad(&self, arguments: &[&str]) -> String {
        let (is_good, said) = self.run(arguments).await;
        assert!(!is_good, "{said}");
        said
    }

    async fn payouts(&self) -> i64 {
        self.host.count("SELECT COUNT(*) FROM payouts").await
    }
}

fn line(serial: u32) -> String {
    format!("1000.00,{},058,wages-{serial}", account(700_000_000 + serial))
}

fn payroll(serials: std::ops::RangeInclusive<u32>) -> Vec<String> {
    let head = "amount,account_number,bank_code,reference".to_owned();
    std::iter::once(head).chain(serials.map(line)).collect()
}

fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).expect("a file");
    text.lines().map(str::to_owned).collect()
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_payroll_is_paid_in_batches_and_once(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let clerk = Clerk::of(host).await;
        clerk.write("wages.csv", &payroll(1..=320));
        let said = clerk.good(&["send", "wages.csv", "--dry-run"]).await;
        assert!(
            said.contains("320 payouts of 320000.00 naira together would be sent, in 3 batches")
        );
        let said = clerk.bad(&["send", "wages.csv"]).await;
        assert!(said.contains("Say --yes"), "{said}");
        let nowhere = ["send", "wages.csv", "--yes", "--results", "no/such/folder.csv"];
        let said = clerk.bad(&nowhere).await;
        assert!(said.contains("--results no/such/folder.csv: No such file"), "{said}");
        assert_eq!(clerk.payouts().await, 0);
        let said = clerk.good(&["send", "wages.csv", "--yes"]).await;
        assert!(said.contains("320 of 320 are paid"), "{said}");
        assert_eq!(host.balance(&host.merchant.test_wallet).await, START - 320 * COST);
        let results = clerk.path("wages.csv.results.csv");
        // Names and accounts are in both: nobody else on this machine reads them.
        for file in [&results, &clerk.path("wages.csv.journal")] {
            let mode = std::fs::metadata(file).expect("a file").permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{}", file.display());
        }
        let results = lines(&results);
        assert_eq!(results.len(), 321);
        assert!(results[1].contains("\"wages-1\",") && results[320].contains("\"wages-320\","));
        // The same once more is nothing new; what is added is.
        let said = clerk.good(&["send", "wages.csv", "--yes"]).await;
        assert!(said.contains("320 of 320 rows were sent before"), "{said}");
        clerk.write("wages.csv", &[payroll(1..=320), vec![line(321)]].concat());
        clerk.good(&["send", "wages.csv", "--yes"]).await;
        assert_eq!(clerk.payouts().await, 321);
        // Another account knows nothing of what this one has sent.
        let other = Clerk { key: bulk_key(host, "live").await, ..clerk };
        let said = other.bad(&["send", "wages.csv", "--yes"]).await;
        assert!(said.contains("belongs to"), "{said}");
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_interrupted_goes_on_with_the_very_same(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let clerk = Clerk::of(host).await;
        clerk.write("wages.csv", &payroll(1..=200));
        clerk.good(&["send", "wages.csv", "--yes"]).await;
        assert_eq!(clerk.payouts().await, 200);
        // As if its answer had not arrived: the last line says that the second batch was taken.
        let journal = clerk.path("wages.csv.journal");
        let known = lines(&journal);
        assert_eq!(known.len(), 4);
        let cut = format!("{}\n{}", known[..3].join("\n"), &known[3][..10]);
        std::fs::write(&journal, cut).expect("written");
        // Meanwhile somebody has edited the file around it, and nobody is paid again.
        clerk.write("wages.csv", &[payroll(190..=205)].concat());
        let said = clerk.good(&["send", "wages.csv", "--yes"]).await;
        assert!(said.contains("sending the very same again"), "{said}");
        assert!(said.contains("11 of 16 rows were sent before"), "{said}");
        assert_eq!(clerk.payouts().await, 205);
    })
    .await;
}

/// Who is turned away at the door has not heard what became of the batch that was not answered: it
/// stays open, and nobody is paid twice.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_answered_stays_open_whoever_is_turned_away_meanwhile(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let clerk = Clerk::of(host).await;
        clerk.write("wages.csv", &payroll(1..=2));
        clerk.good(&["send", "wages.csv", "--yes"]).await;
        let journal = clerk.path("wages.csv.journal");
        let known = lines(&journal);
        assert_eq!(known.len(), 2);
        std::fs::write(&journal, format!("{}\n", known[0])).expect("written");
        let merchant = format!("merchants/{}", host.merchant.id);
        host.admin(Method::PATCH, &merchant, json!({ "status": "suspended" })).await.ok();
        let said = clerk.bad(&["send", "wages.csv", "--yes"]).await;
        assert!(said.contains("nobody can tell whether the batch was taken before"), "{said}");
        assert_eq!(lines(&journal).len(), 1, "nobody has said that it was refused");
        host.admin(Method::PATCH, &merchant, json!({ "status": "active" })).await.ok();
        // Otherwise the cool-down would stand in the way of a second payment.
        host.advance(3_600);
        let said = clerk.good(&["send", "wages.csv", "--yes"]).await;
        assert!(said.contains("sending the very same again"), "{said}");
        assert_eq!(clerk.payouts().await, 2);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_is_named_by_its_line_and_mended(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let clerk = Clerk::of(host).await;
        let mut file = payroll(1..=200);
        // Line 173 is in the second batch.
        file[172] = file[172].replace(",058,", ",999,");
        clerk.write("wages.csv", &file);
        let said = clerk.bad(&["send", "wages.csv", "--yes"]).await;
        assert!(said.contains("unknown_bank_code") && said.contains("line 173:"), "{said}");
        assert_eq!(clerk.payouts().await, 150);
        clerk.write("wages.csv", &payroll(1..=200));
        clerk.good(&["send", "wages.csv", "--yes"]).await;
        assert_eq!(clerk.payouts().await, 200);
        for (text, why) in [
            ("amount,account_number,bank_code\n1.005,0123456785,058", "line 2: amount"),
            ("amount,account_number,bank_code\n1,123456785,058", "leading zeros"),
            ("amount,salary\n1,2", "no column \"salary\""),
        ] {
            std::fs::write(clerk.path("odd.csv"), text).expect("written");
            let said = clerk.bad(&["send", "odd.csv", "--yes"]).await;
            assert!(said.contains(why), "{said}");
        }
        assert!(!clerk.path("odd.csv.journal").exists());
        // What is no key is not tried again and again.
        let key = format!("{}\n", clerk.key);
        let pasted = Clerk { host, key, folder: tempfile::tempdir().expect("a folder") };
        pasted.write("wages.csv", &payroll(1..=1));
        let said = pasted.bad(&["send", "wages.csv", "--yes"]).await;
        assert!(said.contains("a character that no key has"), "{said}");
        // Rows that fail in the end are an error, and are written down.
        clerk.write("late.csv", &payroll(301..=302));
        let said = clerk.bad(&["send", "late.csv", "--yes", "--scenario", "failed"]).await;
        assert!(said.contains("2 rows are not paid"), "{said}");
        assert!(lines(&clerk.path("late.csv.results.csv"))[1].contains(",\"failed\","));
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_workbook_is_read_and_a_large_batch_is_waited_for(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let clerk = Clerk::of(host).await;
        let path = format!("merchants/{}", host.merchant.id);
        let settings = json!({ "batch_approval_threshold_minor": { "NGN": "200000" } });
        host.admin(Method::PATCH, &path, settings).await.ok();
        let mut book = Workbook::new();
        let sheet = book.add_worksheet();
        for (at, name) in (0..).zip(["Amount", "Account_Number", "bank_code", "name"]) {
            sheet.write_string(0, at, name).expect("written");
        }
        for row in 1..=3_u32 {
            sheet.write_number(row, 0, 1000.0).expect("written");
            sheet.write_string(row, 1, account(700_000_000 + row)).expect("written");
            sheet.write_string(row, 2, "058").expect("written");
            sheet.write_string(row, 3, "Ada Obi").expect("written");
        }
        book.save(clerk.path("wages.xlsx")).expect("saved");
        let said = clerk.bad(&["send", "wages.xlsx", "--yes"]).await;
        assert!(said.contains("waits for a second person"), "{said}");
        // Whoever does not wait is told, too.
        let said = clerk.good(&["send", "wages.xlsx", "--yes", "--no-wait"]).await;
        assert!(said.contains("waits for a second person"), "{said}");
        let id = said.split_whitespace().find(|word| word.starts_with("bat_")).expect("a batch");
        let shown = clerk.good(&["show", id]).await;
        assert!(shown.contains("awaiting_approval"), "{shown}");
        let mut approve = Command::new(PROGRAM);
        approve.args(["admin", "batch", "approve", id, "--url", &host.base]);
        approve.env("RAILHEAD_OPERATOR_TOKEN", OPERATOR_TOKEN).env_remove("DATABASE_URL");
        let approved = approve.current_dir(clerk.folder.path()).output().await.expect("it ran");
        assert!(approved.status.success(), "{}", String::from_utf8_lossy(&approved.stderr));
        let said = clerk.good(&["send", "wages.xlsx", "--yes"]).await;
        assert!(said.contains("3 of 3 are paid"), "{said}");
        let said = clerk.bad(&["cancel", id]).await;
        assert!(said.contains("batch_not_cancellable"), "{said}");
    })
    .await;
}
