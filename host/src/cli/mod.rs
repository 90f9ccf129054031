//! The command line.

mod account;
mod admin;
mod batch;
mod calendar;
mod cases;
mod compile;
mod demo;
mod document;
mod files;
mod listen;
mod logs;
mod merchants;
mod rates;
mod reconcile;
mod rules;
mod rules_authoring;
mod serve;
mod settlement;
mod simulate;
mod team;
mod trigger;
mod verify;

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::config::Config;
use crate::start::StartError;
use crate::wasm::compiler::SUBCOMMAND;

/// A self-hosted payout, wallet and collections service with sandboxed rails.
#[derive(Parser)]
#[command(name = "railhead", version, about, max_term_width = 100)]
struct Arguments {
    /// Configuration file; railhead.toml in the working directory if left out.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the service.
    Serve,
    /// Run the service with a funded demo merchant, and pay somebody.
    Demo,
    /// Bring the database's schema up to date.
    Migrate,
    /// Prove the books: every sum, chain and payout, and whatever else follows from another fact.
    Verify(verify::Verify),
    /// Compare a bank's statements with the books: what is missing on either side?
    Reconcile(reconcile::Reconcile),
    /// Print the OpenAPI document.
    Openapi,
    /// Print the error catalogue.
    Errors,
    /// Do what the operator does, through /admin/v1.
    Admin(admin::Admin),
    /// As a member of a merchant's team: take up an invitation, sign in, set up one-time codes.
    Team(team::Team),
    /// Pay everybody in a file.
    #[command(subcommand)]
    Batch(batch::Batch),
    /// Forward events to a server on this machine, as webhooks would.
    Listen(listen::Listen),
    /// Make an event happen in the sandbox.
    Trigger(trigger::Trigger),
    /// Show recent requests and webhook deliveries.
    Logs(logs::Logs),
    /// Work on rails.
    Rail(document::Rail),
    /// Write, try and swap rule packs.
    Rules(rules::Rules),
    /// Show on which days networks settle.
    Calendar(calendar::Calendar),
    /// Run the bank simulator on a port of its own.
    Simulator(simulate::Simulate),
    /// Compile a component for a host that started this: from standard input to standard output.
    #[command(name = SUBCOMMAND, hide = true)]
    CompileComponent(compile::Compile),
}

/// Runs a command; says on stderr what stood in the way.
#[must_use]
pub fn run() -> ExitCode {
    let arguments = Arguments::parse();
    // One provider for everything that speaks TLS; a second call would find it there.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match execute(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            warn(why);
            ExitCode::FAILURE
        }
    }
}

/// Prints a line. Whoever reads may have gone, as `head` does, and that is nobody's mistake; where
/// it cannot be written for another reason, the command fails.
fn say(line: impl std::fmt::Display) {
    use std::io::Write as _;
    if let Err(cause) = writeln!(std::io::stdout(), "{line}")
        && cause.kind() != std::io::ErrorKind::BrokenPipe
    {
        let _ = writeln!(std::io::stderr(), "railhead: writing the output: {cause}");
        std::process::exit(1);
    }
}

/// Says something beside the output, to whoever still listens.
fn warn(line: impl std::fmt::Display) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "railhead: {line}");
}

/// A new file, or an emptied one, with names and accounts in it: where it is new, nobody else on this
/// machine reads it.
fn new_private(path: &Path) -> std::io::Result<File> {
    let mut options = File::options();
    options.write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// The stack of a thread: of address space, not of memory.
const STACK_BYTES: usize = 16 << 20;

fn execute(arguments: Arguments) -> Result<(), StartError> {
    // It needs no settings, and knows none.
    if let Command::CompileComponent(compile) = arguments.command {
        return compile.run();
    }
    let config = Config::load(arguments.config.as_deref())?;
    // What is not optimised stands deep on the stack.
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.thread_stack_size(STACK_BYTES).enable_all().build()?;
    runtime.block_on(async {
        match arguments.command {
            Command::Serve => serve::serve(config).await,
            Command::Demo => demo::demo(config).await,
            Command::Migrate => serve::migrate(&config).await,
            Command::Verify(verify) => verify.run(&config).await,
            Command::Openapi => document::openapi(&config),
            Command::Errors => document::errors(),
            Command::Admin(admin) => admin.run(&config).await,
            Command::Team(team) => team.run(&config).await,
            Command::Reconcile(reconcile) => reconcile.run(&config).await,
            Command::Batch(batch) => batch.run(&config).await,
            Command::Listen(listen) => listen.run(&config).await,
            Command::Trigger(trigger) => trigger.run(&config).await,
            Command::Logs(logs) => logs.run(&config).await,
            Command::Rail(rail) => rail.run(&config).await,
            Command::Rules(rules) => rules.run(&config).await,
            Command::Calendar(calendar) => calendar.run(&config),
            Command::Simulator(simulate) => simulate.run(&config).await,
            Command::CompileComponent(compile) => compile.run(),
        }
    })
}
