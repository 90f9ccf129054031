//! `railhead compile-component`: what a host starts to compile what was uploaded to it.

use clap::Args;

use crate::start::StartError;
use crate::wasm::compiler;

/// Compiles a component within limits.
#[derive(Args)]
pub(super) struct Compile {
    /// Processor time, in seconds.
    #[arg(long)]
    seconds: u64,
    /// Address space, in bytes.
    #[arg(long)]
    bytes: u64,
}

impl Compile {
    pub(super) fn run(self) -> Result<(), StartError> {
        let (input, output) = (std::io::stdin().lock(), std::io::stdout().lock());
        Ok(compiler::compile((self.seconds, self.bytes), input, output)?)
    }
}
