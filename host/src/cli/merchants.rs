//! `railhead admin merchant` and `key`.

use clap::Subcommand;
use reqwest::Method;
use serde_json::json;

use crate::start::StartError;

use super::admin::{PageArgs, Request, json_object, object, paged};

#[derive(Subcommand)]
pub(super) enum Merchant {
    /// Create a merchant with a wallet per currency and environment.
    Create {
        /// The merchant's name, as operators see it.
        #[arg(long)]
        name: String,
        /// ISO 3166 alpha-2.
        #[arg(long)]
        country: String,
        /// IANA timezone; the country's if left out.
        #[arg(long)]
        timezone: Option<String>,
    },
    /// List merchants, newest first.
    List(PageArgs),
    /// Show a merchant.
    Show {
        /// The merchant's id.
        id: String,
    },
    /// Change status or settings, given as a JSON object.
    Set {
        /// The merchant's id.
        id: String,
        /// For example '{"limits":{"NGN":{"daily_minor":"100000000"}}}'.
        settings: String,
    },
}

#[derive(Subcommand)]
pub(super) enum Key {
    /// Create a key; its secret is shown once.
    Create {
        /// The id of the merchant that the key belongs to.
        merchant: String,
        /// `test` or `live`.
        #[arg(long)]
        env: String,
        /// A name for the key; it decides nothing.
        #[arg(long)]
        label: String,
        /// What it may do, such as `payout_create`.
        #[arg(long = "capability")]
        capabilities: Vec<String>,
        /// What the one behind it may do, such as `webhook_manage`.
        #[arg(long = "permission")]
        permissions: Vec<String>,
        /// An address or network that it may be used from.
        #[arg(long = "allow")]
        allow: Vec<String>,
        /// When it stops working, in RFC 3339 form.
        #[arg(long)]
        expires_at: Option<String>,
    },
    /// List a merchant's keys, newest first, without their secrets.
    List {
        /// The merchant's id.
        merchant: String,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Show a key, without its secret.
    Show {
        /// The key's id.
        id: String,
    },
    /// Replace a key; the old one works on for a while.
    Rotate {
        /// The key's id.
        id: String,
        /// Seconds that the old one works on.
        #[arg(long)]
        grace_seconds: Option<u64>,
    },
    /// Revoke a key at once.
    Revoke {
        /// The key's id.
        id: String,
    },
}

pub(super) fn merchant(command: Merchant) -> Result<Request, StartError> {
    Ok(match command {
        Merchant::Create { name, country, timezone } => {
            let body = object([
                ("name", json!(name)),
                ("country", json!(country)),
                ("timezone", json!(timezone)),
            ]);
            (Method::POST, "merchants".to_owned(), Some(body))
        }
        Merchant::List(page) => (Method::GET, paged("merchants", page, [])?, None),
        Merchant::Show { id } => (Method::GET, format!("merchants/{id}"), None),
        Merchant::Set { id, settings } => {
            (Method::PATCH, format!("merchants/{id}"), Some(json_object(&settings)?))
        }
    })
}

pub(super) fn key(command: Key) -> Result<Request, StartError> {
    Ok(match command {
        Key::Create { merchant, env, label, capabilities, permissions, allow, expires_at } => {
            let body = object([
                ("env", json!(env)),
                ("label", json!(label)),
                ("capabilities", json!(capabilities)),
                ("permissions", json!(permissions)),
                ("ip_allowlist", json!(allow)),
                ("expires_at", json!(expires_at)),
            ]);
            (Method::POST, format!("merchants/{merchant}/keys"), Some(body))
        }
        Key::List { merchant, page } => {
            (Method::GET, paged(&format!("merchants/{merchant}/keys"), page, [])?, None)
        }
        Key::Show { id } => (Method::GET, format!("keys/{id}"), None),
        Key::Rotate { id, grace_seconds } => {
            let body = object([("grace_seconds", json!(grace_seconds))]);
            (Method::POST, format!("keys/{id}/rotate"), Some(body))
        }
        Key::Revoke { id } => (Method::POST, format!("keys/{id}/revoke"), None),
    })
}
