//! Compiling what somebody uploads, in a process of its own.
//!
//! A component can be small and take the compiler minutes and gigabytes. So the host starts
//! itself as `railhead compile-component`, hands it the component and takes the code from it.
//! That process limits its own processor time and memory before it reads a byte, knows no
//! secret, and is killed when its time is over; the process that serves compiles nothing that
//! was uploaded.

use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, setpriority_process, setrlimit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use wasmtime::Engine;

use crate::config::limits;

use super::cache::{CodeCache, Compiled};
use super::engine;
use super::module::{Refused, Source};

/// The subcommand of `railhead` that compiles.
pub const SUBCOMMAND: &str = "compile-component";
/// What an answer begins with: code follows, or why there is none. Another program that was
/// started by mistake says neither.
const CODE: &[u8] = b"railhead: code\n";
const REFUSED: &[u8] = b"railhead: refused\n";
/// What is kept of a reason.
const REASON_BYTES_MAX: usize = 1_000;
/// The status of a Rust program that panicked.
const PANICKED: i32 = 101;
/// The one who serves goes first.
const NICENESS: i32 = 10;

/// Who compiles uploads.
#[derive(Clone)]
pub struct Compiler {
    program: PathBuf,
    costs: Costs,
}

/// What compiling one component may cost.
#[derive(Clone, Copy)]
pub struct Costs {
    /// Processor time, in seconds.
    pub seconds: u64,
    /// Address space.
    pub bytes: u64,
    /// Time by the clock on the wall.
    pub wall: Duration,
}

impl Default for Costs {
    fn default() -> Self {
        Self {
            seconds: limits::COMPILE_SECONDS_MAX,
            bytes: limits::COMPILE_BYTES_MAX,
            wall: limits::COMPILE_WALL_MAX,
        }
    }
}

/// Why there is no code.
#[derive(Debug, thiserror::Error)]
pub enum NotCompiled {
    /// The component is at fault.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// This machine is.
    #[error("the compiler: {0}")]
    Machine(#[from] std::io::Error),
}

impl Compiler {
    /// By this program: `railhead`, or this very program if none is named.
    ///
    /// # Errors
    /// The system does not say which program this is.
    pub fn new(program: Option<PathBuf>, costs: Costs) -> std::io::Result<Self> {
        let program = match program {
            Some(program) => program,
            // Still the same program after its file was replaced by another version's.
            None if cfg!(target_os = "linux") => "/proc/self/exe".into(),
            None => std::env::current_exe()?,
        };
        Ok(Self { program, costs })
    }

    /// The code of a rule pack, if it was compiled before or can be compiled within the limits.
    ///
    /// # Errors
    /// See [`NotCompiled`].
    pub async fn compile(
        &self,
        engine: &Engine,
        cache: &CodeCache,
        component: Vec<u8>,
    ) -> Result<Compiled, NotCompiled> {
        let (looked_for, in_cache) = (engine.clone(), cache.clone());
        let reading = tokio::task::spawn_blocking(move || {
            let Source { bare, .. } = Source::read(&component)?;
            let known = in_cache.find(&looked_for, &bare);
            Ok::<_, Refused>((bare, known))
        });
        let (bare, known) = reading.await.map_err(std::io::Error::other)??;
        if let Some(known) = known {
            return Ok(known);
        }
        let code = self.run(&bare).await?;
        Ok(Compiled::new(engine, &bare, code))
    }

    /// Has the component compiled by a child, which does not outlive this future.
    async fn run(&self, component: &[u8]) -> Result<Vec<u8>, NotCompiled> {
        let wall = self.costs.wall;
        let command = command(&self.program, (self.costs.seconds, self.costs.bytes));
        let child = Command::from(command).kill_on_drop(true).spawn()?;
        let Ok(ended) = tokio::time::timeout(wall, exchange(child, component)).await else {
            let why = format!("it takes longer than {} seconds", wall.as_secs_f32());
            return Err(Refused::Uncompilable(why).into());
        };
        let (answer, status) = ended?;
        let is_whole = answer.len() as u64 <= limits::COMPILED_BYTES_MAX;
        if let Some(code) = answer.strip_prefix(CODE).filter(|_| status.success() && is_whole) {
            return Ok(code.to_vec());
        }
        if let Some(why) = answer.strip_prefix(REFUSED) {
            let why = String::from_utf8_lossy(why).into_owned();
            return Err(Refused::NotAComponent(why).into());
        }
        tracing::warn!(%status, bytes = answer.len(), "a component was not compiled");
        let is_at_fault = status.signal().is_some() || status.code() == Some(PANICKED) || !is_whole;
        if is_at_fault { Err(self.too_much().into()) } else { Err(unanswered(status)) }
    }

    fn too_much(&self) -> Refused {
        let Costs { seconds, bytes, .. } = self.costs;
        Refused::Uncompilable(format!(
            "it takes more than {seconds} seconds of a processor, {} MB of memory or {} MB of \
             code, or it makes the compiler fail",
            bytes >> 20,
            limits::COMPILED_BYTES_MAX >> 20
        ))
    }
}

/// It is no `railhead`, or could not do what it is told.
fn unanswered(status: ExitStatus) -> NotCompiled {
    std::io::Error::other(format!("it did not answer ({status})")).into()
}

/// How the program is started to compile within so many seconds and bytes.
#[must_use]
pub fn command(program: &Path, (seconds, bytes): (u64, u64)) -> std::process::Command {
    let mut command = std::process::Command::new(program);
    command
        .arg(SUBCOMMAND)
        .args(["--seconds", &seconds.to_string(), "--bytes", &bytes.to_string()])
        .env_clear()
        // The allocator would reserve twice the address space that there is, and then give up.
        .env("MIMALLOC_ARENA_RESERVE", "0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

/// Hands over the component and takes the answer, as far as anybody may answer at all.
async fn exchange(mut child: Child, component: &[u8]) -> std::io::Result<(Vec<u8>, ExitStatus)> {
    let (input, output) = (child.stdin.take(), child.stdout.take());
    let feeding = async move {
        // A child that is gone has said why by its status.
        if let Some(mut input) = input {
            let _ = input.write_all(component).await;
        }
    };
    let reading = async move {
        let mut answer = Vec::new();
        if let Some(output) = output {
            output.take(limits::COMPILED_BYTES_MAX + 1).read_to_end(&mut answer).await?;
        }
        std::io::Result::Ok(answer)
    };
    let ((), answer, status) = tokio::join!(feeding, reading, child.wait());
    Ok((answer?, status?))
}

/// What the child does: compiles what it reads, for rule packs, and writes the code.
///
/// # Errors
/// The limits cannot be set, or the other side is gone.
pub fn compile(
    (seconds, bytes): (u64, u64),
    input: impl Read,
    mut output: impl Write,
) -> std::io::Result<()> {
    confine(seconds, bytes)?;
    let mut component = Vec::new();
    input.take(limits::COMPONENT_BYTES_MAX as u64).read_to_end(&mut component)?;
    let compiled = engine::rules_alone().and_then(|engine| engine.precompile_component(&component));
    match compiled {
        Ok(code) => {
            output.write_all(CODE)?;
            output.write_all(&code)?;
        }
        Err(cause) => {
            let why = format!("{cause:#}");
            output.write_all(REFUSED)?;
            output.write_all(&why.as_bytes()[..why.floor_char_boundary(REASON_BYTES_MAX)])?;
        }
    }
    output.flush()
}

/// Binds this process for good.
fn confine(seconds: u64, bytes: u64) -> std::io::Result<()> {
    let at_most = |most| Rlimit { current: Some(most), maximum: Some(most) };
    setrlimit(Resource::Core, at_most(0))?;
    setrlimit(Resource::Cpu, at_most(seconds))?;
    setrlimit(Resource::As, at_most(bytes))?;
    setpriority_process(None, NICENESS)?;
    Ok(())
}
