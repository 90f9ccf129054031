//! The `railhead` program under the name that its tests start it by.

use std::process::ExitCode;

fn main() -> ExitCode {
    railhead::cli::run()
}
