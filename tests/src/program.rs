//! The `railhead` program under the name that its tests start it by.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    railhead::cli::run()
}
