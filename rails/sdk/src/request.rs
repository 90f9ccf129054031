//! Putting a request together.

pub use crate::imports::http::{Failure, Parameter, Part, Request};

/// A piece that is sent as it is.
#[must_use]
pub fn text(text: impl Into<Vec<u8>>) -> Part {
    Part::Bytes(text.into())
}

/// The value of a declared secret, which the host puts in.
#[must_use]
pub fn secret(name: &str) -> Part {
    Part::Secret(name.to_owned())
}

/// A token that the host fetches as rail.toml declares, and renews before it ends.
#[must_use]
pub fn token(name: &str) -> Part {
    Part::Token(name.to_owned())
}

/// The address at which the host takes the network's messages under this declared path.
#[must_use]
pub fn callback(path: &str) -> Part {
    Part::CallbackUrl(path.to_owned())
}

/// The signature of the body under a declared key, which the host makes. For headers only.
#[must_use]
pub fn signature(key: &str) -> Part {
    Part::Signature(key.to_owned())
}

/// The value of a declared secret, which the host encrypts for the network alone under a declared
/// key.
#[must_use]
pub fn sealed(key: &str, secret: &str) -> Part {
    Part::Sealed((key.to_owned(), secret.to_owned()))
}

/// A text that nobody can guess, which the host makes for each attempt as rail.toml declares.
#[must_use]
pub fn seed(name: &str) -> Part {
    Part::Seed(name.to_owned())
}

/// A header, or a parameter of the query.
#[must_use]
pub fn parameter(name: &str, value: impl Into<Vec<Part>>) -> Parameter {
    Parameter { name: name.to_owned(), value: value.into() }
}

/// A declared call without anything to say: no query, no headers, no body.
#[must_use]
pub fn call(name: &str) -> Request {
    Request {
        call: name.to_owned(),
        path: String::new(),
        query: Vec::new(),
        headers: Vec::new(),
        body: Vec::new(),
    }
}

/// Why there is no answer, in words.
#[must_use]
pub fn why(failure: Failure) -> String {
    match failure {
        Failure::NotSent(why) => format!("not sent: {why}"),
        Failure::NoAnswer(why) => format!("no answer: {why}"),
    }
}

/// The bytes of a body, where nothing in it is secret: for a rail's own tests.
#[cfg(not(target_family = "wasm"))]
#[must_use]
pub fn plain(parts: &[Part]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for part in parts {
        match part {
            Part::Bytes(piece) => bytes.extend_from_slice(piece),
            Part::Secret(_)
            | Part::Token(_)
            | Part::CallbackUrl(_)
            | Part::Signature(_)
            | Part::Sealed(_)
            | Part::Seed(_) => return None,
        }
    }
    Some(bytes)
}
