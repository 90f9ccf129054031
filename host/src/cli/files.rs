//! `railhead admin window` and `railhead admin file`: files of payments.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::json;

use crate::start::StartError;

use super::admin::{PageArgs, Request, object, paged};

#[derive(Subcommand)]
pub(super) enum Window {
    /// List the next closings, with what waits for each.
    List,
    /// Hold back what leaves when a window closes.
    Hold(Act),
    /// Close it before its time: what waits for it leaves now.
    Close(Act),
    /// Let it go again.
    Release(Act),
}

#[derive(Subcommand)]
pub(super) enum File {
    /// List files, newest first.
    List {
        /// Those of this environment.
        #[arg(long, value_parser = ["live", "test"], default_value = "live")]
        env: String,
        /// Only those over the route of this name.
        #[arg(long)]
        route: Option<String>,
        /// Only those in this state, such as `unclear`.
        #[arg(long)]
        state: Option<String>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Show a file, and how much is in it.
    Show {
        /// The file's id.
        id: String,
    },
    /// List the payments of a file, newest first.
    Payments {
        /// The file's id.
        id: String,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Write out the very bytes that the bank gets; the audit log says so.
    Content {
        /// The file's id.
        id: String,
        /// Where to; standard output if left out.
        #[arg(long, short)]
        output: Option<PathBuf>,
    },
    /// Hold a file back that has not been sent.
    Hold(Act),
    /// Let a file go that is held back.
    Release(Act),
    /// Deliver the same bytes once more. If the bank has them, payments may be made twice: ask it
    /// first.
    Deliver(Act),
}

#[derive(Args)]
pub(super) struct Act {
    /// The id.
    id: String,
    /// Why, for the audit log.
    #[arg(long)]
    reason: String,
}

pub(super) fn window(command: Window) -> Request {
    match command {
        Window::List => (Method::GET, "windows".to_owned(), None),
        Window::Close(act) => act.request("windows", "close"),
        Window::Hold(act) => act.request("windows", "hold"),
        Window::Release(act) => act.request("windows", "release"),
    }
}

pub(super) fn file(command: File) -> Result<Request, StartError> {
    Ok(match command {
        File::List { env, route, state, page } => {
            let filters = [("env", Some(env)), ("route", route), ("state", state)];
            (Method::GET, paged("files", page, filters)?, None)
        }
        File::Show { id } => (Method::GET, format!("files/{id}"), None),
        File::Payments { id, page } => {
            let list = format!("files/{id}/payments");
            (Method::GET, paged(&list, page, [])?, None)
        }
        File::Content { id, .. } => (Method::GET, format!("files/{id}/content"), None),
        File::Hold(act) => act.request("files", "hold"),
        File::Release(act) => act.request("files", "release"),
        File::Deliver(act) => act.request("files", "deliver"),
    })
}

impl Act {
    fn request(self, of: &str, verb: &str) -> Request {
        let body = object([("reason", json!(self.reason))]);
        (Method::POST, format!("{of}/{}/{verb}", self.id), Some(body))
    }
}

/// Writes a file's bytes, as they are.
///
/// # Errors
/// They cannot be written.
pub(super) fn write(to: Option<&Path>, bytes: &[u8]) -> Result<(), StartError> {
    match to {
        // It has names and accounts: nobody else on this machine reads it.
        Some(path) => std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .and_then(|mut file| file.write_all(bytes))
            .map_err(|cause| format!("{}: {cause}", path.display()).into()),
        None => Ok(std::io::stdout().write_all(bytes)?),
    }
}
