//! Webhooks: telling merchants of events, whatever other merchants' receivers do.
//!
//! | file | holds |
//! |---|---|
//! | `model` | endpoints, deliveries, what follows from an attempt; pure |
//! | `bodies` | what deliveries send |
//! | `claims` | who makes which of them |
//! | `lanes` | whose delivery is made next; pure |
//! | `deliver` | the loop that makes deliveries |
//! | `record` | writing down what came of one |
//! | `endpoints`, `replay`, `try_out` | the calls' use cases |
//!
//! | step | durable afterwards | if the host dies here |
//! |---|---|---|
//! | the event's commit | event, delivery, place in the queue | due for any host after a head start |
//! | claim (lease, fence), for what was not handed over, or turned away | who may deliver, until when | the lease runs out |
//! | the exchange | nothing | delivered again, with the same id and bytes |
//! | the result's commit | delivered, or when to try again | nothing |
//!
//! A receiver may hear of an event twice and never not at all, until it is given up.
//!
//! A deleted endpoint keeps its row until nobody can be about to write a delivery to it: whoever
//! has read it before is waited for, and a sweeper leaves it alone for longer than that takes. What
//! a host that dies leaves of it is found by that row.

mod bodies;
mod claims;
pub mod deliver;
mod endpoints;
pub mod http;
mod lanes;
mod leftovers;
pub mod model;
mod record;
mod replay;
pub mod sql;
mod try_out;
pub mod verify;
mod view;
