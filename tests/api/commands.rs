//! The program's commands, run as their users run them. The commands of the README and of the
//! pages under docs are run word for word.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::test_host::{KEY, share_compiled};

const PROGRAM: &str = env!("CARGO_BIN_EXE_railhead-under-test");
const TOKEN: &str = "op_of_the_commands";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The program in a folder of its own, on a port that is free.
fn railhead(folder: &Path) -> Command {
    let mut command = Command::new(PROGRAM);
    command
        .current_dir(folder)
        .env_remove("DATABASE_URL")
        .env("RAILHEAD_ENCRYPTION__KEYS", KEY)
        .env("RAILHEAD_SERVER__ADDRESS", "127.0.0.1:0");
    command
}

/// What a command that ends prints.
#[track_caller]
fn said(command: &mut Command) -> String {
    let output = command.output().expect("the program");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// A program that serves, until dropped.
struct Serving {
    child: Child,
    lines: Vec<String>,
}

impl Serving {
    /// Starts it and reads what it says up to a line that ends with `last`.
    fn start(mut command: Command, last: &str) -> Self {
        let child = command.stdout(Stdio::piped()).spawn().expect("the program");
        let mut serving = Self { child, lines: Vec::new() };
        let output = serving.child.stdout.take().expect("its output");
        for line in BufReader::new(output).lines() {
            serving.lines.push(line.expect("text"));
            if serving.lines.last().is_some_and(|line| line.ends_with(last)) {
                return serving;
            }
        }
        panic!("the program ended: {:#?}", serving.lines);
    }

    /// The last word of the line that begins with a word.
    fn word(&self, label: &str) -> &str {
        let line = self.lines.iter().find(|line| line.trim_start().starts_with(label));
        line.and_then(|line| line.split_whitespace().last()).expect(label)
    }

    /// Ends it as an operator does.
    fn stop(mut self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().expect("kill").success());
        assert!(self.child.wait().expect("an end").success(), "it did not stop in order");
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn demo(folder: &Path) -> Serving {
    share_compiled(&folder.join("data"));
    let mut command = railhead(folder);
    command.arg("demo").env("RAILHEAD_OPERATOR_TOKEN", TOKEN);
    Serving::start(command, "The data stays.")
}

/// The commands on a page that anyone can run: its blocks in the language `sh`.
fn blocks(page: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join(page)).unwrap();
    let blocks = text.split("```sh\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn the_pages_work_word_for_word_and_a_second_start_keeps_its_data() {
    let folder = tempfile::tempdir().unwrap();
    let host = demo(folder.path());
    let shown = host.lines.join("\n");
    assert!(shown.contains("payout.paid") && shown.contains("not a second one"), "{shown}");
    let api = host.word("API ").trim_end_matches("/v1").to_owned();
    let (address, key) = (api.trim_start_matches("http://"), host.word("Test key").to_owned());

    let bin = folder.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(PROGRAM, bin.join("railhead")).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let pages = ["README.md", "docs/operating.md", "docs/webhooks.md"];
    let blocks: Vec<String> = pages.iter().flat_map(|page| blocks(page)).collect();
    assert!(blocks.len() >= 14);
    let run = |block: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-euc", &block.replace("127.0.0.1:8080", address)]).current_dir(root());
        shell
            .env("PATH", &path)
            .env("RAILHEAD_ENCRYPTION__KEYS", KEY)
            .env("KEY", &key)
            .env("RAILHEAD_API_KEY", &key);
        shell.env_remove("DATABASE_URL");
        shell.env("RAILHEAD_OPERATOR_TOKEN", TOKEN).env("RAILHEAD_SERVER__ADDRESS", address);
        shell.env("RAILHEAD_DATA__DIR", folder.path().join("data"));
        said(&mut shell)
    };
    let answers: Vec<String> = blocks.iter().map(|block| run(block)).collect();
    for answer in &answers {
        assert!(!answer.is_empty() && !answer.contains(r#""error":{"type""#), "{answer}");
    }
    let payment = blocks.iter().position(|block| block.contains("invoice-1001")).unwrap();
    let paid: Value = serde_json::from_str(&answers[payment]).unwrap();
    assert_eq!(paid["status"], "paid");
    assert_eq!(run(&blocks[payment]), answers[payment]);
    host.stop();

    let host = demo(folder.path());
    assert!(host.lines.join("\n").contains("still here"));
    assert_eq!(host.word("Test key"), key);
    host.stop();
    let proven = said(railhead(folder.path()).arg("verify"));
    assert!(proven.contains("in order") && !proven.contains(" 0 payouts"), "{proven}");
}

#[test]
fn the_page_about_batches_works_word_for_word() {
    let folder = tempfile::tempdir().unwrap();
    let host = demo(folder.path());
    let api = host.word("API ").trim_end_matches("/v1").to_owned();
    let (address, merchant) = (
        api.trim_start_matches("http://"),
        host.word("Created merchant").trim_end_matches('.').to_owned(),
    );
    let bin = folder.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(PROGRAM, bin.join("railhead")).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut key = String::new();
    let mut answers = Vec::new();
    for block in blocks("docs/batches.md") {
        let mut shell = Command::new("sh");
        shell.args(["-euc", &block.replace("127.0.0.1:8080", address)]).current_dir(&folder);
        shell
            .env("PATH", &path)
            .env("RAILHEAD_ENCRYPTION__KEYS", KEY)
            .env("MERCHANT", &merchant)
            .env("RAILHEAD_API_KEY", &key);
        shell.env_remove("DATABASE_URL").env("RAILHEAD_OPERATOR_TOKEN", TOKEN);
        shell.env("RAILHEAD_SERVER__ADDRESS", address);
        let answer = said(&mut shell);
        if key.is_empty() {
            let made: Value = serde_json::from_str(&answer).unwrap();
            key = made["secret"].as_str().unwrap().to_owned();
        }
        answers.push(answer);
    }
    let told = answers.join("\n");
    for expected in [
        "3 payouts of 525000.50 naira together would be sent, in one batch. Nothing was sent.",
        "3 of 3 are paid. How each row ended: payroll.csv.results.csv",
        r#""wages-2026-11-bola",7000000024,058,"#,
        r#""status":"approved""#,
        r#""report_type":"cashflow""#,
        "OPENING BALANCE",
    ] {
        assert!(told.contains(expected), "{expected}: {told}");
    }
    host.stop();
}

#[test]
fn the_page_about_rules_works_word_for_word() {
    let folder = tempfile::tempdir().unwrap();
    let host = demo(folder.path());
    let api = host.word("API ").trim_end_matches("/v1").to_owned();
    let (address, key) = (api.trim_start_matches("http://"), host.word("Test key").to_owned());
    let bin = folder.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(PROGRAM, bin.join("railhead")).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let run = |block: &String| {
        let mut shell = Command::new("sh");
        shell.args(["-euc", &block.replace("127.0.0.1:8080", address)]).current_dir(&folder);
        shell
            .env("PATH", &path)
            .env("RAILHEAD_ENCRYPTION__KEYS", KEY)
            .env("KEY", &key)
            .env_remove("DATABASE_URL");
        // What the new crate builds is kept beside what these tests are built from.
        shell.env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("rules"));
        shell.env("RAILHEAD_OPERATOR_TOKEN", TOKEN).env("RAILHEAD_SERVER__ADDRESS", address);
        let answer = said(&mut shell);
        // Decisions are compared after they are made.
        let mut list = railhead(folder.path());
        list.args(["rules", "list", "--url", &api]).env("RAILHEAD_OPERATOR_TOKEN", TOKEN);
        let tries = if block.contains("careful-$number") { 1_000 } else { 0 };
        let _ = (0..tries).find(|_| said(&mut list).contains("2 compared"));
        answer
    };
    let answers: Vec<String> = blocks("docs/rules.md").iter().map(run).collect();
    let told = answers.join("\n");
    for expected in [
        "careful 1.0.0 is shadow for platform",
        "fraud/1.0.0: allow [] -> careful 1.0.0: hold [second_today]",
        "allow -> hold",
        "careful 1.0.0 is active for platform",
        r#""status":"awaiting_admin_review""#,
        "careful 1.0.0 (",
        "second_today: hold. A second payment",
        "decided again now: the same",
        "fraud 1.0.0 is active for platform",
        "Pushed first-pay 0.1.0",
    ] {
        assert!(told.contains(expected), "{expected}: {told}");
    }
    assert!(answers.iter().all(|answer| !answer.is_empty()), "{answers:#?}");
    host.stop();
    let page = std::fs::read_to_string(root().join("docs/rules.md")).unwrap();
    for (fact, ..) in railhead_facts::PLAIN {
        assert!(page.contains(&format!("`{fact}`")), "the page does not name {fact}");
    }
}

#[test]
fn serve_shows_a_new_token_once() {
    let folder = tempfile::tempdir().unwrap();
    // As whoever has set up nothing: the key is a file, and all components are compiled.
    let railhead = |folder: &Path| {
        let mut command = railhead(folder);
        command.env_remove("RAILHEAD_ENCRYPTION__KEYS");
        command
    };
    let mut command = railhead(folder.path());
    command.arg("serve");
    let host = Serving::start(command, "");
    assert!(host.word("Operator token").starts_with("op_"));
    let locked = railhead(folder.path()).arg("serve").output().unwrap();
    let why = String::from_utf8_lossy(&locked.stderr).into_owned();
    assert!(!locked.status.success(), "two hosts on one SQLite file");
    assert!(why.contains("railhead: "), "{why}");
    host.stop();
    let mut command = railhead(folder.path());
    command.arg("serve").env("RUST_LOG", "info").stderr(Stdio::piped());
    let mut again = command.stdout(Stdio::piped()).spawn().unwrap();
    let log = BufReader::new(again.stderr.take().unwrap()).lines();
    assert!(log.map(Result::unwrap).any(|line| line.contains("serving")));
    let id = again.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    let output = again.wait_with_output().unwrap();
    assert!(output.stdout.is_empty() && output.status.success());
}

#[test]
fn documents_are_printed() {
    let folder = tempfile::tempdir().unwrap();
    let document = said(railhead(folder.path()).arg("openapi"));
    let committed = std::fs::read_to_string(root().join("host/openapi.json")).unwrap();
    assert!(document == committed, "host/openapi.json is not current; write it: make openapi");
    let errors = said(railhead(folder.path()).arg("errors"));
    assert!(errors.contains("insufficient_funds (422, invalid_request_error)"), "{errors}");
    assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none(), "documents leave nothing");
}

#[test]
fn a_wrong_setting_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for (name, value, named) in [
        ("RAILHEAD_SERVER__ADRESS", "127.0.0.1:1", "adress"),
        ("RAILHEAD_SERVER__ADDRESS", "nowhere", "address"),
        ("RAILHEAD_ENCRYPTION__KEYS", "abc", "encryption.keys"),
        ("DATABASE_URL", "mysql://x", "database URL"),
        ("RAILHEAD_MODULES__DIR", "/nowhere", "modules.dir"),
    ] {
        let output = railhead(folder.path()).arg("serve").env(name, value).output().unwrap();
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && why.contains(named), "{name}={value}: {why}");
    }
}

/// As before `| head`: whoever reads has seen enough.
#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&["errors"][..], &["openapi"]] {
        let mut command = railhead(folder.path());
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("its end");
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !words.contains("panicked"), "{arguments:?}: {words}");
    }
}

#[test]
fn operators_commands_go_to_the_door_that_serves_them() {
    let folder = tempfile::tempdir().unwrap();
    share_compiled(&folder.path().join("data"));
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = free.local_addr().expect("its address").to_string();
    drop(free);
    let with = |arguments: &[&str]| {
        let mut command = railhead(folder.path());
        command.args(arguments).env("RAILHEAD_ADMIN__ADDRESS", &address);
        command
    };
    let host = Serving::start(with(&["serve"]), "");
    let token = host.word("Operator token");
    let ask = |arguments: &[&str]| said(with(arguments).env("RAILHEAD_OPERATOR_TOKEN", token));
    assert!(ask(&["admin", "merchant", "list"]).contains("\"data\""));
    assert!(ask(&["rules", "list"]).contains("fees"));
}

#[test]
fn what_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let output = railhead(folder.path()).arg("verify").output().unwrap();
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(why.contains("there is no database at") && why.contains("DATABASE_URL"), "{why}");
}
