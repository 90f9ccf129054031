//! `railhead admin settlement`: differences between banks' statements and the books.

use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, Args, Subcommand};
use reqwest::Method;
use serde_json::json;
use strum::IntoEnumIterator as _;

use crate::reconciliation::Contra;
use crate::start::StartError;

use super::admin::{PageArgs, Request, object, paged};

#[derive(Subcommand)]
pub(super) enum Settlement {
    /// Take a difference into the books; in live it takes two operators.
    Adjust(Adjust),
    /// List what was taken into the books, newest first.
    List {
        /// Only those of this route.
        #[arg(long)]
        route: Option<String>,
        /// `test` or `live`.
        #[arg(long)]
        env: Option<String>,
        #[command(flatten)]
        page: PageArgs,
    },
}

#[derive(Args)]
#[command(group(ArgGroup::new("direction").required(true).args(["paid_out", "received"])))]
pub(super) struct Adjust {
    /// The route whose bank account it is; `manual` for what went over none.
    route: String,
    /// How much, in minor units.
    #[arg(long)]
    amount_minor: String,
    /// The bank has paid what the books do not say.
    #[arg(long)]
    paid_out: bool,
    /// Money came in, or the books say that the bank paid and it did not.
    #[arg(long)]
    received: bool,
    /// Where it went, or came from: your own money (`funding`), what the bank charges and pays as
    /// interest (`bank_charges`), or what nobody can explain (`written_off`).
    #[arg(long, value_parser = PossibleValuesParser::new(Contra::iter().map(Contra::as_str)))]
    account: String,
    /// The reference of what it explains, as `railhead reconcile` shows it.
    #[arg(long)]
    reference: String,
    /// On which day the bank booked it.
    #[arg(long)]
    booked_on: String,
    /// Why, for whoever reads it later.
    #[arg(long)]
    reason: String,
    /// `test` or `live`.
    #[arg(long)]
    env: Option<String>,
    /// The account's currency; needed for `manual` only.
    #[arg(long)]
    currency: Option<String>,
}

pub(super) fn settlement(command: Settlement) -> Result<Request, StartError> {
    Ok(match command {
        Settlement::Adjust(adjust) => {
            let body = object([
                ("route", json!(adjust.route)),
                ("env", json!(adjust.env)),
                ("currency", json!(adjust.currency)),
                ("amount_minor", json!(adjust.amount_minor)),
                ("direction", json!(if adjust.received { "received" } else { "paid_out" })),
                ("account", json!(adjust.account)),
                ("reference", json!(adjust.reference)),
                ("booked_on", json!(adjust.booked_on)),
                ("reason", json!(adjust.reason)),
            ]);
            (Method::POST, "settlement_adjustments".to_owned(), Some(body))
        }
        Settlement::List { route, env, page } => {
            let filters = [("route", route), ("env", env)];
            (Method::GET, paged("settlement_adjustments", page, filters)?, None)
        }
    })
}
