//! Components that cost more than they are worth: refused by what they hold, or given up by a
//! process of its own, while the host serves on.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Output;

use railhead::built_in;
use railhead::config::Config;
use railhead::wasm::compiler::command;
use railhead::wasm::module::repack;
use railhead::wasm::section::CustomSections;
use rstest::rstest;
use tokio::task::JoinHandle;

use crate::hostile::packed;
use crate::oversized::{laborious, oversized, spacious};
use crate::packs::{guard, push, push_as, read, until};
use crate::program::{Deployment, PROGRAM};
use crate::test_host::{Answer, Engine, OPERATOR_TOKEN, TestHost, naira, with_host_configured};

/// The component as a pack that could be pushed, but for its code.
fn as_pack(component: &[u8]) -> Vec<u8> {
    packed(component, &guard("1", "amount_minor", &[]))
}

/// A rail's code: sound, and nothing that a rule pack can be.
fn of_a_rail() -> Vec<u8> {
    let rail = built_in::COMPONENTS.iter().find(|(name, _)| *name == "rails/nip").expect("a rail");
    let declaration = guard("1", "amount_minor", &[]);
    let sections = CustomSections { declaration, ..CustomSections::default() };
    repack(rail.1, &sections).expect("a component")
}

async fn upload(host: &TestHost, component: Vec<u8>) -> Answer {
    push_as(host, OPERATOR_TOKEN, "application/wasm", component).await
}

#[track_caller]
fn is_refused(answer: &Answer, what: &str, words: &[&str]) {
    assert_eq!(answer.refused(), (422, "validation_failed"), "{what}: {}", answer.text);
    let problems = answer.json["error"]["detail"]["problems"].to_string();
    assert!(words.iter().all(|word| problems.contains(word)), "{what}: {problems}");
    assert!(problems.len() < 500, "{what}: {problems}");
}

/// Names of the files in a folder.
fn files(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder).expect("a folder");
    let name = |file: std::io::Result<std::fs::DirEntry>| file.expect("a file").file_name();
    let mut names: Vec<_> = files.map(|file| name(file).to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_holds_too_much_is_refused_before_anybody_compiles_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    // With a compiler that does not exist, whatever needs it is answered otherwise.
    let without = |config: &mut Config| {
        config.compiler = Some("/nowhere/railhead".into());
    };
    with_host_configured(engine, without, async |host| {
        let before = read(host, "rule-packs").await.ok();
        for (what, component, word) in oversized() {
            let refused = upload(host, as_pack(&component)).await;
            is_refused(&refused, what, &[word, "at most", "are accepted"]);
        }
        let too_long = upload(host, vec![0; (16 << 20) + 1]).await;
        assert_eq!(too_long.refused(), (413, "body_too_large"));
        let needed = upload(host, of_a_rail()).await;
        assert_eq!(needed.refused(), (503, "service_unavailable"), "{}", needed.text);
        assert_eq!(read(host, "rule-packs").await.ok().text, before.text);
        // The code of the built-in pack is there, whatever its rules say.
        assert_eq!(push(host, &guard("1", "amount_minor", &[])).await.ok().status, 201);
        assert_eq!(host.pay("paid", naira(100_000)).await.ok().status_word(), "paid");
    })
    .await;
}

/// A name of one's own for the compiler, by which its processes are told from others'.
fn compiler(folder: &Path) -> PathBuf {
    let name = folder.join("railhead");
    std::os::unix::fs::symlink(PROGRAM, &name).expect("a link");
    name
}

/// How many processes of this compiler there are.
fn compiling(compiler: &Path) -> usize {
    let name = compiler.to_string_lossy().into_owned();
    let processes = std::fs::read_dir("/proc").expect("processes");
    let lines =
        processes.filter_map(|process| std::fs::read(process.ok()?.path().join("cmdline")).ok());
    lines.filter(|line| line.starts_with(name.as_bytes())).count()
}

/// Pushes a component for as long as it takes.
fn uploading(host: &TestHost, component: Vec<u8>) -> JoinHandle<reqwest::Result<Answer>> {
    let request = host
        .client
        .post(format!("{}/admin/v1/rule-packs", host.base))
        .bearer_auth(OPERATOR_TOKEN)
        .header("content-type", "application/wasm")
        .body(component);
    tokio::spawn(async move { Answer::read(request.send().await?).await })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_takes_too_long_is_given_up_while_others_are_served() {
    let folder = tempfile::tempdir().expect("a folder");
    let compiler = compiler(folder.path());
    let data = folder.path().join("data");
    let own = |config: &mut Config| {
        config.compiler = Some(compiler.clone());
        config.data.dir = data.clone();
    };
    with_host_configured(Engine::Sqlite, own, async |host| {
        let before = (read(host, "rule-packs").await.ok().text, files(&data.join("cache")));
        let upload = uploading(host, as_pack(&laborious()));
        until("a compiler", async || compiling(&compiler) == 1).await;
        let pays = async {
            for _ in 0..20 {
                assert_eq!(host.pay("paid", naira(100_000)).await.ok().status_word(), "paid");
            }
        };
        // One at a time: who comes meanwhile is told to come again.
        let pack = guard("2", "amount_minor", &[]);
        let (second, ()) = tokio::join!(push(host, &pack), pays);
        assert_eq!(second.refused(), (503, "service_unavailable"), "{}", second.text);
        assert!(second.headers.contains_key("retry-after"), "{:?}", second.headers);
        assert_eq!(compiling(&compiler), 1);
        assert!(!upload.is_finished());
        let refused = upload.await.expect("a task").expect("an answer");
        is_refused(&refused, "laborious", &["cannot be compiled"]);
        until("no compiler", async || compiling(&compiler) == 0).await;
        let after = (read(host, "rule-packs").await.ok().text, files(&data.join("cache")));
        assert_eq!(after, before);
        assert_eq!(push(host, &pack).await.ok().status, 201);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_compiles_for_one_who_has_gone() {
    let folder = tempfile::tempdir().expect("a folder");
    let compiler = compiler(folder.path());
    let own = |config: &mut Config| config.compiler = Some(compiler.clone());
    with_host_configured(Engine::Sqlite, own, async |host| {
        let upload = uploading(host, as_pack(&laborious()));
        until("a compiler", async || compiling(&compiler) == 1).await;
        upload.abort();
        until("no compiler", async || compiling(&compiler) == 0).await;
        assert_eq!(push(host, &guard("1", "amount_minor", &[])).await.ok().status, 201);
    })
    .await;
}

/// Code that a refused pack was compiled to stays nowhere.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_pack_leaves_no_code() {
    let data = tempfile::tempdir().expect("a folder");
    let own = |config: &mut Config| config.data.dir = data.path().to_owned();
    with_host_configured(Engine::Sqlite, own, async |host| {
        let cache = data.path().join("cache");
        let before = files(&cache);
        // Compiled, and then found to be no pack.
        let refused = upload(host, of_a_rail()).await;
        is_refused(&refused, "a rail", &["imports railhead:host/"]);
        assert_eq!(files(&cache), before);
        // Rules of text share the code of the built-in pack, which is there.
        assert_eq!(push(host, &guard("1", "amount_minor", &[])).await.ok().status, 201);
        assert_eq!(files(&cache), before);
    })
    .await;
}

/// The program that serves keeps its memory, and finds itself to compile with.
#[tokio::test(flavor = "multi_thread")]
async fn the_program_that_serves_does_not_grow() {
    let deployment = Deployment::open(Engine::Sqlite, "").await;
    let before = deployment.resident_bytes();
    for (what, component, word) in oversized() {
        is_refused(&upload(&deployment.host, as_pack(&component)).await, what, &[word]);
    }
    for (what, component) in [("laborious", laborious()), ("spacious", spacious())] {
        let refused = upload(&deployment.host, as_pack(&component)).await;
        is_refused(&refused, what, &["cannot be compiled"]);
    }
    let grown = deployment.peak_bytes().saturating_sub(before);
    assert!(grown < 200 << 20, "{} MB more", grown >> 20);
    let pushed = upload(&deployment.host, crate::rule_hostile::hostile("1", "")).await.ok();
    assert_eq!(pushed.json["state"], "checked", "{}", pushed.text);
    deployment.prove().await;
}

/// What the subcommand answers about a component.
fn compile(costs: (u64, u64), component: &[u8]) -> Output {
    let mut child = command(Path::new(PROGRAM), costs).spawn().expect("a program");
    let mut input = child.stdin.take().expect("its input");
    let component = component.to_vec();
    // One that is gone reads no more.
    let feeding = std::thread::spawn(move || drop(input.write_all(&component)));
    let output = child.wait_with_output().expect("an end");
    feeding.join().expect("fed");
    output
}

#[test]
fn the_compiler_binds_itself() {
    const PLENTY: u64 = 512 << 20;
    let (_, fraud) =
        built_in::COMPONENTS.iter().find(|(name, _)| *name == "rules/fraud").expect("");
    let answer = compile((30, PLENTY), fraud);
    assert!(answer.status.success() && answer.stdout.starts_with(b"railhead: code\n"));
    let answer = compile((30, PLENTY), b"nonsense");
    assert!(answer.status.success() && answer.stdout.starts_with(b"railhead: refused\n"));
    // Again and again: whether there is enough memory is not left to luck.
    for _ in 0..5 {
        assert!(compile((30, PLENTY / 2), fraud).status.success());
    }
    for (costs, component) in
        [((1, PLENTY), laborious()), ((30, PLENTY), spacious()), ((30, 32 << 20), fraud.to_vec())]
    {
        let answer = compile(costs, &component);
        assert!(!answer.status.success(), "{costs:?}");
        assert!(!answer.stdout.starts_with(b"railhead: code\n"), "{costs:?}");
    }
}

/// A host that was started inside a program of another kind says that it cannot compile.
#[tokio::test(flavor = "multi_thread")]
async fn another_program_is_not_believed() {
    for program in ["/bin/cat", "/bin/true", "/bin/echo"] {
        let odd = |config: &mut Config| config.compiler = Some(program.into());
        with_host_configured(Engine::Sqlite, odd, async |host| {
            let refused = upload(host, of_a_rail()).await;
            assert_eq!(refused.refused(), (503, "service_unavailable"), "{program}");
        })
        .await;
    }
}
