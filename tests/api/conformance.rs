//! `railhead rail check` fails a rail that would have the host believe what it did not see.

use std::path::{Path, PathBuf};
use std::process::Command;

use rstest::rstest;

use crate::hostile::{built, packed};
use crate::program::PROGRAM;
use crate::repacked;

const DECLARATION: &str = include_str!("../hostile/rail.toml");
/// The network's answers are all good: it is the rail that makes them out to be something else.
const CASES: &str = r#"
[[exchanges]]
name = "pays"
call = "submit"
payment = { amount_minor = 100000, narration = "accept", recipient = { account_number = "1", bank_code = "1" }, serial = 1, begun_at_ms = 0, reference = "hostile-000000000001" }
outcome = { kind = "accepted" }

[[exchanges]]
name = "sends nothing"
call = "submit"
payment = { amount_minor = 100000, narration = "claim", recipient = { account_number = "1", bank_code = "1" }, serial = 1, begun_at_ms = 0, reference = "hostile-000000000001" }
outcome = { kind = "paid" }

[[exchanges]]
name = "looks up"
call = "submit"
payment = { amount_minor = 100000, narration = "ask", recipient = { account_number = "1", bank_code = "1" }, serial = 1, begun_at_ms = 0, reference = "hostile-000000000001" }
outcome = { kind = "paid" }

[[exchanges]]
name = "asks"
call = "query"
payment = { amount_minor = 100000, narration = "anything", recipient = { account_number = "1", bank_code = "1" }, serial = 1, begun_at_ms = 0, reference = "hostile-000000000001" }
outcome = { kind = "paid" }
"#;

/// What a check of a rail says, line by line, and whether it went well.
struct Checked {
    is_good: bool,
    lines: Vec<String>,
}

impl Checked {
    fn of(rail: &[u8], cases: &Path) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("rail.wasm");
        std::fs::write(&file, rail).expect("written");
        let mut command = Command::new(PROGRAM);
        command.args(["rail", "check"]).arg(&file).arg("--cases").arg(cases);
        let output = command.current_dir(&folder).output().expect("a program");
        let said = [output.stdout, output.stderr].concat();
        let lines = String::from_utf8(said).expect("text").lines().map(str::to_owned).collect();
        Self { is_good: output.status.success(), lines }
    }

    /// Whether it fails a case, or the whole rail, in these words.
    fn fails(&self, parts: &[&str]) -> bool {
        self.lines.iter().any(|line| parts.iter().all(|part| line.contains(part)))
    }

    #[track_caller]
    fn must_fail(&self, parts: &[&str]) {
        assert!(!self.is_good && self.fails(parts), "{parts:?}: {:#?}", self.lines);
    }
}

/// The cases that a built-in rail comes with.
fn shipped(rail: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../rails").join(rail).join("cases")
}

/// Folders within one that have such a file, at any depth.
fn folders_with(within: &Path, is_it: &dyn Fn(&Path) -> bool) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![within.to_owned()]);
    while let Some(folder) = open.pop() {
        let entries = std::fs::read_dir(&folder).expect("a folder");
        let entries: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
        if entries.iter().any(|entry| is_it(entry)) {
            found.push(folder);
        }
        open.extend(entries.into_iter().filter(|entry| entry.is_dir()));
    }
    found.sort();
    found
}

/// Every rail that the host brings holds its own cases, in each folder that has some.
#[test]
fn built_in_rails_hold_the_cases_beside_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rails");
    let (mut failed, mut checked) = (Vec::new(), 0);
    for rail in folders_with(&root, &|file| file.ends_with("rail.toml")) {
        let name = rail.strip_prefix(&root).expect("within").to_str().expect("text").to_owned();
        let is_case = |file: &Path| file.extension().is_some_and(|it| it == "toml");
        for cases in folders_with(&rail.join("cases"), &is_case) {
            let mut command = Command::new(PROGRAM);
            command.args(["rail", "check", &name.replace('/', "-"), "--cases"]).arg(&cases);
            let output = command.output().expect("a program");
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            if !output.status.success() {
                failed.push(format!("{}: {said}", cases.display()));
            }
            checked += 1;
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(checked >= 13, "{checked} folders of cases");
}

/// A rail that says "paid" where no call left that moves money fails, though its case expects it;
/// so does one that asks, and takes the answer for one to a payment.
#[test]
fn a_payment_without_a_call_that_moves_money_is_none() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("cases.toml"), CASES).expect("written");
    let component = built("hostile", "");
    let honest = Checked::of(&packed(&component, DECLARATION), folder.path());
    for case in ["FAILED sends nothing: ", "FAILED looks up: "] {
        honest.must_fail(&[case, "paid, and no call was made that moves money"]);
    }
    for case in ["FAILED pays: ", "FAILED asks: "] {
        assert!(!honest.fails(&[case]), "{case}: {:#?}", honest.lines);
    }
    // Declared to move money, the same look-up stands for a payment: it is no question any more.
    let looking = DECLARATION.replace("path = \"/ask\"", "path = \"/ask\"\nmoves_money = true");
    assert_ne!(looking, DECLARATION);
    let looking = Checked::of(&packed(&component, &looking), folder.path());
    looking.must_fail(&["FAILED asks: ", "ask moves money, and nothing is sent here"]);
}

/// A rail that passes its own cases does not when its declaration says otherwise of one call.
#[rstest]
#[case::a_question(
    "nip",
    "path = \"/nip/txnstatusquerysingleitem\"",
    &["FAILED response code 00 on query: ", "status_query moves money"]
)]
#[case::a_name_enquiry(
    "nip",
    "path = \"/nip/nameenquirysingleitem\"",
    &["FAILED response code 00 on resolve: ", "name_enquiry moves money"]
)]
#[case::a_look_for_a_file(
    "ach",
    "name = \"look\"",
    &["FAILED looking for it: received: ", "it makes the call look, which moves money"]
)]
fn a_look_up_that_is_declared_to_move_money_is_found(
    #[case] rail: &str,
    #[case] call: &str,
    #[case] found: &[&str],
) {
    let checked = Checked::of(&repacked::component(rail, &[]), &shipped(rail));
    assert!(checked.is_good, "as it is: {:#?}", checked.lines);
    let moving = format!("{call}\nmoves_money = true");
    let changed = repacked::component(rail, &[(call, &moving)]);
    Checked::of(&changed, &shipped(rail)).must_fail(found);
}

/// The call that pays is not declared to move money, and another one is; or none is at all, and
/// the rail is not even loaded.
#[rstest]
#[case::another_call(
    &[("moves_money = true\n", ""), ("path = \"/nip/txnstatusquerysingleitem\"",
        "path = \"/nip/txnstatusquerysingleitem\"\nmoves_money = true")],
    &["FAILED response code 00 on submit: ", "paid, and no call was made that moves money"]
)]
#[case::no_call(&[("moves_money = true\n", "")], &["no call of it moves money"])]
fn a_payment_that_is_not_declared_to_move_money_is_found(
    #[case] changes: &[(&str, &str)],
    #[case] found: &[&str],
) {
    Checked::of(&repacked::component("nip", changes), &shipped("nip")).must_fail(found);
}

/// A rail that goes by a calendar of which no host knows would have no routes.
#[test]
fn a_calendar_that_no_host_has_is_found() {
    let nowhere = [("calendar = \"us-federal-reserve\"", "calendar = \"nowhere\"")];
    let found = ["FAILED calendar nowhere: ", "it is not packed into the rail"];
    Checked::of(&repacked::component("ach", &nowhere), &shipped("ach")).must_fail(&found);
}
