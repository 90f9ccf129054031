//! What a simulated network is written with: the types of the contract in `wit/simulator.wit`,
//! the host's imports as plain functions, and doubles of those imports for tests on the
//! developer's own machine.
//!
//! A simulator shares no code with the rail that it is the other side of.

#[doc(hidden)]
#[allow(unsafe_code, missing_docs, unreachable_pub, unused_qualifications, clippy::all)]
pub mod bindings {
    wit_bindgen::generate!({
        path: ["../../wit/host.wit", "../../wit/simulator.wit"],
        world: "railhead:simulator/simulator",
        generate_all,
        additional_derives: [PartialEq, Eq],
        pub_export_macro: true,
        export_macro_name: "export_network",
        default_bindings_module: "railhead_simulator::bindings",
    });
}

pub mod answers;
pub mod host;

/// Records and variants of `railhead:simulator/types`.
pub mod types {
    pub use crate::bindings::railhead::simulator::types::*;
}

/// Makes a type that is a [`Network`] what the component exports.
pub use bindings::export_network;
/// What a simulator offers, as its component exports it.
pub use bindings::exports::railhead::simulator::network::Guest as Network;

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

    /// A message about it, by POST.
    #[must_use]
    pub fn message(&self, to: Place, body: &str) -> Message {
        let (about, method) = (self.reference.clone(), "POST".to_owned());
        Message { about, method, to, headers: Vec::new(), body: body.as_bytes().to_vec() }
    }
}

impl Message {
    /// A message in JSON, by POST.
    #[must_use]
    pub fn json(about: &str, to: Place, body: &impl std::fmt::Display) -> Self {
        Self {
            about: about.to_owned(),
            method: "POST".to_owned(),
            to,
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            body: body.to_string().into_bytes(),
        }
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
