//! The `railhead` program.

use std::process::ExitCode;

/// The system's allocator spends a tenth of the host's time on the many small pieces that a
/// request is made of.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    railhead::cli::run()
}
