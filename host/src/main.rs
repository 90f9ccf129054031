//! The `railhead` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    railhead::cli::run()
}
