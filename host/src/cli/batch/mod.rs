//! `railhead batch`: a payroll out of a file, in batches, paid once whatever happens on the way.
//!
//! | file | holds |
//! |---|---|
//! | `sheet` | the file's rows: CSV or a workbook, checked as far as that goes without a host |
//! | `journal` | what was about to be sent, and what came of it |
//! | `send` | sending what is left, following it, writing down how each row ended |

mod journal;
mod send;
mod sheet;

use clap::Subcommand;

use crate::config::Config;
use crate::start::StartError;

/// What is done about batches.
#[derive(Subcommand)]
pub(in crate::cli) enum Batch {
    /// Pay everybody in a file: CSV, or the first sheet of a workbook (.xlsx). Its first line names
    /// the columns: amount (in major units) or `amount_minor`, `account_number`, `bank_code`, and where
    /// they are needed name, narration, `merchant_reference`, email, `customer_reference`,
    /// `allow_duplicate` and those of the sender. Sent again, it goes on where it was interrupted.
    Send(send::Send),
    /// Show a batch and how far it has come.
    Show(send::Show),
    /// Take back all payouts of a batch that have not left.
    Cancel(send::Cancel),
}

impl Batch {
    pub(in crate::cli) async fn run(self, config: &Config) -> Result<(), StartError> {
        match self {
            Self::Send(send) => send.run(config).await,
            Self::Show(show) => show.run(config).await,
            Self::Cancel(cancel) => cancel.run(config).await,
        }
    }
}
