//! Writing and reading the flat XML documents of NIP: one root, one element for each value.
//!
//! Samples of the network differ in whether elements stand in the namespace
//! `http://core.nip.nibss/` and whether a SOAP envelope surrounds them, so a document is
//! found by the local name of its root, at any depth, and prefixes are ignored.

use quick_xml::Reader;
use quick_xml::escape::{escape, resolve_xml_entity};
use quick_xml::events::{BytesRef, Event};

/// A NIP message has some twenty short elements; a body larger than this is not one.
const BODY_BYTES_MAX: usize = 65_536;
/// An envelope, its body, an operation, the document, its elements, and some to spare.
const DEPTH_MAX: usize = 16;
const ELEMENTS_MAX: usize = 256;

/// A document being written.
#[derive(Debug)]
pub struct Document {
    root: &'static str,
    text: String,
}

impl Document {
    /// An empty document with this root.
    #[must_use]
    pub fn new(root: &'static str) -> Self {
        Self { root, text: format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?><{root}>") }
    }

    /// Adds an element. The value is escaped here and nowhere else: a value escaped twice
    /// reaches the beneficiary's statement as `&amp;amp;`.
    #[must_use]
    pub fn element(mut self, name: &str, value: &str) -> Self {
        for part in ["<", name, ">", &escape(clean(value)), "</", name, ">"] {
            self.text.push_str(part);
        }
        self
    }

    /// The whole document.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        for part in ["</", self.root, ">"] {
            self.text.push_str(part);
        }
        self.text.into_bytes()
    }
}

/// The text with a space for every character that XML 1.0 cannot hold, even escaped.
fn clean(value: &str) -> String {
    let is_forbidden = |c: char| matches!(c, '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}');
    value.replace(is_forbidden, " ")
}

/// A document that was read: its values, by the local names of their elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    children: Vec<(String, String)>,
}

impl Element {
    /// The value of the element with this name, trimmed; an empty string without one.
    #[must_use]
    pub fn get(&self, name: &str) -> &str {
        self.children.iter().find(|(child, _)| child == name).map_or("", |(_, value)| value.trim())
    }
}

/// Reads the document with this root out of a body. Unknown elements are ignored.
///
/// # Errors
/// Says what kept the body from being read. Whatever is not exactly one whole document is
/// refused, because half an answer about money is none: a body that is too large or not
/// UTF-8, is cut off, declares a document type or uses an entity beyond XML's own five, holds
/// the root twice, or a value twice.
pub fn read(body: &[u8], root: &str) -> Result<Element, &'static str> {
    if body.len() > BODY_BYTES_MAX {
        return Err("the body is too large");
    }
    let text = std::str::from_utf8(body).map_err(|_| "the body is not UTF-8")?;
    let mut reader = Reader::from_str(text);
    reader.config_mut().expand_empty_elements = true;
    let mut reading = Reading::new(root);
    loop {
        match reader.read_event().map_err(|_| "the body is not well-formed XML")? {
            Event::Start(tag) => reading.open(tag.local_name().as_ref())?,
            Event::End(_) => reading.close()?,
            Event::Text(text) => reading.text(&text.xml10_content())?,
            Event::CData(text) => reading.text(&text.xml10_content())?,
            Event::GeneralRef(entity) => reading.text(&resolve(&entity)?)?,
            Event::DocType(_) => return Err("the body declares a document type"),
            Event::Eof => return reading.finish(),
            Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
        }
    }
}

fn resolve(entity: &BytesRef) -> Result<String, &'static str> {
    match entity.resolve_char_ref() {
        Ok(Some(character)) => Ok(character.to_string()),
        Ok(None) => resolve_xml_entity(entity)
            .map(str::to_owned)
            .ok_or("the body uses an entity of its own"),
        Err(_) => Err("the body holds an invalid character reference"),
    }
}

/// Where the reader stands in the body.
struct Reading<'a> {
    root: &'a str,
    depth: usize,
    elements: usize,
    /// The depth of the root, while inside it.
    root_at: Option<usize>,
    /// The child that is open, and whether it holds elements, which makes it no value.
    child: Option<(String, String)>,
    is_nested: bool,
    found: Option<Element>,
}

impl<'a> Reading<'a> {
    fn new(root: &'a str) -> Self {
        Self {
            root,
            depth: 0,
            elements: 0,
            root_at: None,
            child: None,
            is_nested: false,
            found: None,
        }
    }

    fn open(&mut self, name: &str) -> Result<(), &'static str> {
        self.depth += 1;
        self.elements += 1;
        if self.depth > DEPTH_MAX || self.elements > ELEMENTS_MAX {
            return Err("the body is nested too deeply or has too many elements");
        }
        match self.root_at {
            None if name == self.root && self.found.is_some() => {
                return Err("the body holds the answer twice");
            }
            None if name == self.root => {
                self.root_at = Some(self.depth);
                self.found = Some(Element { children: Vec::new() });
            }
            None => {}
            Some(at) if self.depth == at + 1 => {
                self.child = Some((name.to_owned(), String::new()));
                self.is_nested = false;
            }
            Some(_) => self.is_nested = true,
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), &'static str> {
        let at = self.root_at;
        if at == Some(self.depth) {
            self.root_at = None;
        } else if at.map(|at| at + 1) == Some(self.depth) {
            self.keep_child()?;
        }
        self.depth = self.depth.saturating_sub(1);
        Ok(())
    }

    fn keep_child(&mut self) -> Result<(), &'static str> {
        let Some((name, value)) = self.child.take().filter(|_| !self.is_nested) else {
            return Ok(());
        };
        let Some(element) = &mut self.found else {
            return Ok(());
        };
        if element.children.iter().any(|(other, _)| *other == name) {
            return Err("the body holds a value twice");
        }
        element.children.push((name, value));
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), &'static str> {
        if self.depth == 0 && !text.trim_matches('\u{feff}').trim().is_empty() {
            return Err("the body is not well-formed XML");
        }
        if let Some((_, value)) = &mut self.child {
            value.push_str(text);
        }
        Ok(())
    }

    fn finish(self) -> Result<Element, &'static str> {
        if self.depth > 0 {
            return Err("the body is cut off");
        }
        self.found.ok_or("the body holds no such answer")
    }
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
#[path = "xml_tests.rs"]
mod tests;
