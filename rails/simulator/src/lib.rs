//! What a simulated network is written with: the types of the contract in `wit/simulator.wit`,
//! the host's imports as plain functions, and doubles of those imports for tests on the
//! developer's own machine.
//!
//! A simulator shares no code with the rail that it is the other side of.

#[allow(unsafe_code, missing_docs, unreachable_pub, unused_qualifications, clippy::all)]
mod bindings {
    wit_bindgen::generate!({
        path: ["../../wit/host.wit", "../../wit/simulator.wit"],
        inline: "
            package railhead:simulated;
            world imports {
                import railhead:simulator/types@0.1.0;
                import railhead:simulator/book@0.1.0;
                import railhead:simulator/play@0.1.0;
                import railhead:simulator/signatures@0.1.0;
                import railhead:simulator/outbox@0.1.0;
                import railhead:host/clock@0.2.0;
                import railhead:host/log@0.2.0;
            }
        ",
        world: "railhead:simulated/imports",
        generate_all,
        additional_derives: [PartialEq, Eq],
    });
}

pub mod answers;
pub mod host;

/// Records and variants of `railhead:simulator/types`.
pub mod types {
    pub use crate::bindings::railhead::simulator::types::*;
}

/// The raw imports, for `with:` in a simulator's own `wit_bindgen::generate!`.
pub mod imports {
    pub use crate::bindings::railhead::host::{clock, log};
    pub use crate::bindings::railhead::simulator::{book, outbox, play, signatures, types};
}

pub use wit_bindgen;

use types::{Message, Place, Request, State, Transfer};

/// What rails present to a simulated network for every secret that they declare: there is no
/// money behind it.
pub const CREDENTIAL: &str = "simulator";

impl Transfer {
    /// A transfer of which nothing has arrived yet.
    #[must_use]
    pub fn new(reference: &str, amount_minor: i64, account: &str) -> Self {
        Self {
            reference: reference.to_owned(),
            amount_minor,
            account: account.to_owned(),
            state: State::Lost,
            received: 0,
            executed: 0,
            scenario: host::scenario(account),
            notes: Vec::new(),
        }
    }

    /// Pays the recipient.
    pub fn pay(&mut self) {
        self.state = State::Paid;
        self.executed += 1;
    }

    /// What the network has noted about it; an empty string where it has noted nothing.
    #[must_use]
    pub fn noted(&self, name: &str) -> &str {
        self.notes.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// The same with a note.
    #[must_use]
    pub fn noting(mut self, name: &str, value: &str) -> Self {
        self.notes.retain(|(known, _)| known != name);
        self.notes.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A message about it.
    #[must_use]
    pub fn message(&self, to: Place, body: &str) -> Message {
        let about = self.reference.clone();
        Message { about, to, headers: Vec::new(), body: body.as_bytes().to_vec() }
    }
}

impl Request {
    /// A header's value; an empty string where there is none.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// A parameter of the query; an empty string where there is none.
    #[must_use]
    pub fn parameter(&self, name: &str) -> &str {
        self.query.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// Method and path, to choose by.
    #[must_use]
    pub fn what(&self) -> (&str, &str) {
        (&self.method, &self.path)
    }
}
