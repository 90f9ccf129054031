//! `railhead admin case`, `alert`, `batch` and `quarantine`: what needs a person.

use clap::Subcommand;
use reqwest::Method;
use serde_json::json;

use crate::start::StartError;

use super::admin::{PageArgs, Request, object, paged};

#[derive(Subcommand)]
pub(super) enum Case {
    /// List cases, newest first.
    List {
        /// Only those of this kind, such as `paid_after_failure`.
        #[arg(long)]
        kind: Option<String>,
        /// `open` or `resolved`.
        #[arg(long, default_value = "open")]
        status: String,
        /// Only those about this payout, file or route.
        #[arg(long)]
        subject: Option<String>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Show a case: what happened, what to do about it, what may be decided.
    Show {
        /// The case's id.
        id: String,
    },
    /// Decide about a case.
    Resolve {
        /// The case's id.
        id: String,
        /// One of the resolutions that the case names.
        resolution: String,
        /// What shows that it is right.
        #[arg(long)]
        evidence: String,
    },
}

#[derive(Subcommand)]
pub(super) enum Alert {
    /// List alerts, newest first, each with what to do.
    List {
        /// `open` or `ended`.
        #[arg(long, default_value = "open")]
        status: String,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Look after an alert: nobody is reminded of it any more.
    Acknowledge {
        /// The alert's id.
        id: String,
    },
    /// Try whether alerts arrive.
    Test,
}

#[derive(Subcommand)]
pub(super) enum Batch {
    /// List batches, newest first.
    List {
        /// What was decided: `awaiting_approval`, `flagged_held`, `approved`, `rejected` or
        /// `cancelled`.
        #[arg(long)]
        status: Option<String>,
        /// Only those of this merchant.
        #[arg(long)]
        merchant: Option<String>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Show a batch.
    Show {
        /// The batch's id or `bat_` reference.
        id: String,
    },
    /// List its payouts, the last row first.
    Items {
        /// The batch's id or `bat_` reference.
        id: String,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Debit and queue all its payouts.
    Approve {
        /// The batch's id or `bat_` reference.
        id: String,
    },
    /// Cancel all its payouts.
    Reject {
        /// The batch's id or `bat_` reference.
        id: String,
        /// Why, for the merchant and the audit log.
        #[arg(long)]
        reason: String,
    },
    /// Set it aside.
    Hold {
        /// The batch's id or `bat_` reference.
        id: String,
        /// Why, for the merchant and the audit log.
        #[arg(long)]
        reason: String,
    },
}

#[derive(Subcommand)]
pub(super) enum Quarantine {
    /// Show it.
    Show,
    /// Let live payments go again.
    Release {
        /// Why, for the audit log.
        #[arg(long)]
        reason: String,
    },
}

pub(super) fn case(command: Case) -> Result<Request, StartError> {
    Ok(match command {
        Case::List { kind, status, subject, page } => {
            let filters = [("kind", kind), ("status", Some(status)), ("subject_id", subject)];
            (Method::GET, paged("cases", page, filters)?, None)
        }
        Case::Show { id } => (Method::GET, format!("cases/{id}"), None),
        Case::Resolve { id, resolution, evidence } => {
            let body = object([("resolution", json!(resolution)), ("evidence", json!(evidence))]);
            (Method::POST, format!("cases/{id}/resolve"), Some(body))
        }
    })
}

pub(super) fn batch(command: Batch) -> Result<Request, StartError> {
    let decide = |id: String, verb: &str, reason: Option<String>| {
        let body = object([("reason", json!(reason))]);
        (Method::POST, format!("batches/{id}/{verb}"), Some(body))
    };
    Ok(match command {
        Batch::List { status, merchant, page } => {
            let filters = [("status", status), ("merchant_id", merchant)];
            (Method::GET, paged("batches", page, filters)?, None)
        }
        Batch::Show { id } => (Method::GET, format!("batches/{id}"), None),
        Batch::Items { id, page } => {
            (Method::GET, paged(&format!("batches/{id}/items"), page, [])?, None)
        }
        Batch::Approve { id } => decide(id, "approve", None),
        Batch::Reject { id, reason } => decide(id, "reject", Some(reason)),
        Batch::Hold { id, reason } => decide(id, "hold", Some(reason)),
    })
}

pub(super) fn quarantine(command: Quarantine) -> Request {
    match command {
        Quarantine::Show => (Method::GET, "quarantine".to_owned(), None),
        Quarantine::Release { reason } => {
            let body = object([("reason", json!(reason))]);
            (Method::POST, "quarantine/release".to_owned(), Some(body))
        }
    }
}

pub(super) fn alert(command: Alert) -> Result<Request, StartError> {
    Ok(match command {
        Alert::List { status, page } => {
            (Method::GET, paged("alerts", page, [("status", Some(status))])?, None)
        }
        Alert::Acknowledge { id } => (Method::POST, format!("alerts/{id}/acknowledge"), None),
        Alert::Test => (Method::POST, "alerts/test".to_owned(), None),
    })
}
