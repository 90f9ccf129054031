//! Exchange between currencies: rates, what they make of amounts, and what the platform holds of
//! each currency because of it.
//!
//! A merchant's rate is its own, where the operator has set one, and the platform's otherwise. It
//! is used until its validity ends, and not at all while the same merchant's rate directly
//! back would make going there and back pay.
//!
//! Every conversion has a journal in each of its currencies, against the account `fx_position`:
//! what that account holds of a currency is the platform's position, and an operator may say how
//! far it may go below zero.
//!
//! | file | what is in it |
//! |---|---|
//! | `rate` | rates as decimals, and the arithmetic: one place, for quotes and for what is executed |
//! | `market` | which rate applies, and why none does |
//! | `lists` | the list of a merchant's rates, remembered for a minute |
//! | `position` | what the platform holds, counted under lock |
//! | `source` | components that read what a provider publishes, and what follows from it |
//! | `provider` | whom to ask, and what becomes of a rate then |

pub mod lists;
pub mod market;
pub mod position;
pub mod provider;
pub mod rate;
pub mod source;
pub mod sql;

pub use lists::RateLists;
pub use market::{Applied, Pair, SetRate};
pub use position::{Basis, Exchange, Limit};
pub use provider::{Provider, Providers};
pub use rate::Rate;
pub use source::RateSource;
