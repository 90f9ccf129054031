//! Reports: what happened in a merchant's wallets, by day, in the merchant's own timezone.
//!
//! What is about money is read from the ledger's entries, so it adds up to the balances. Which
//! entries belong to a range is one span of each wallet's numbering, the same for all reports:
//! ranges that follow each other neither overlap nor leave a gap, whatever clocks did.
//!
//! | file | holds |
//! |---|---|
//! | `answer` | what is asked for, and how it is answered |
//! | `range` | days, in a timezone, with its changes of clocks |
//! | `rows` | what each report shows |
//! | `sql` | what is read |
//! | `table` | the same as CSV and XLSX |

mod answer;
pub mod http;
mod range;
mod rows;
mod sql;
mod table;

pub(crate) use table::{harmless, quoted};
