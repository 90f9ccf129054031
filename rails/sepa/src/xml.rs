//! Writing and reading the XML of ISO 20022: one document, one namespace, values without markup.

use quick_xml::NsReader;
use quick_xml::escape::{partial_escape, resolve_xml_entity};
use quick_xml::events::{BytesDecl, BytesRef, Event};
use quick_xml::name::{Namespace, ResolveResult};

/// As large as files are that the host fetches itself.
const BYTES_MAX: usize = 16 * 1024 * 1024;
/// Elements of a file that fit into a component's memory, those that are not looked into left out.
const ELEMENTS_MAX: usize = 150_000;
/// ISO 20022 goes some fifteen levels deep.
const DEPTH_MAX: usize = 32;
/// What a bank adds to a message, in namespaces of its own: not looked into.
const SUPPLEMENT: &str = "SplmtryData";
/// What messages about whole files repeat of each payment, or tell besides: not looked into either,
/// because of ten thousand payments it would be most of the message.
const REPEATED: &[(&str, &[&str])] = &[
    ("pain.002.", &["OrgnlTxRef"]),
    ("camt.054.", &["RltdPties", "RltdAgts", "RmtInf", "BkTxCd", "AmtDtls", "RltdDts"]),
];
/// What stands before a document, and room for all that is not said of single payments.
const HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>";
const HEAD_ROOM: usize = 4096;
/// Where all messages of ISO 20022 have their namespaces.
const NAMESPACES: &str = "urn:iso:std:iso:20022:tech:xsd:";

/// A document being written: an element a line, so that parts of it can be shown.
#[derive(Debug)]
pub struct Document {
    text: String,
    open: Vec<&'static str>,
}

impl Document {
    /// An empty document of this message, such as `pain.001.001.09`.
    #[must_use]
    pub fn new(message: &str) -> Self {
        Self::with_room(message, 0)
    }

    /// The same, with room for what will be added to it.
    #[must_use]
    pub fn with_room(message: &str, bytes: usize) -> Self {
        let mut text = String::with_capacity(bytes + HEAD_ROOM);
        for part in [HEAD, "\n<Document xmlns=\"", NAMESPACES, message, "\">\n"] {
            text.push_str(part);
        }
        Self { text, open: vec!["Document"] }
    }

    /// Adds an element with what `inside` adds.
    pub fn within(&mut self, name: &'static str, inside: impl FnOnce(&mut Self)) {
        self.begin(&["<", name, ">\n"]);
        self.open.push(name);
        inside(self);
        self.open.pop();
        self.begin(&["</", name, ">\n"]);
    }

    /// Adds an element with a value. It is escaped here and nowhere else.
    pub fn value(&mut self, name: &str, value: &str) {
        self.begin(&["<", name, ">", &partial_escape(value), "</", name, ">\n"]);
    }

    /// Adds an amount in euros.
    pub fn euros(&mut self, name: &str, euros: &str) {
        self.begin(&["<", name, " Ccy=\"EUR\">", euros, "</", name, ">\n"]);
    }

    /// Adds what was written by another document at the same depth.
    pub fn lines(&mut self, lines: &str) {
        self.text.push_str(lines);
    }

    /// What `inside` writes, as it stands in a document within so many elements.
    #[must_use]
    pub fn part(depth: usize, inside: impl FnOnce(&mut Self)) -> String {
        let mut part = Self { text: String::new(), open: vec![""; depth] };
        inside(&mut part);
        // Thousands of parts are kept together.
        part.text.shrink_to_fit();
        part.text
    }

    /// The whole document.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.text.push_str("</Document>\n");
        self.text.into_bytes()
    }

    fn begin(&mut self, line: &[&str]) {
        for _ in &self.open {
            self.text.push(' ');
        }
        line.iter().for_each(|part| self.text.push_str(part));
    }
}

/// An element that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Element {
    name: String,
    attributes: Vec<(String, String)>,
    text: String,
    children: Vec<Element>,
    /// Whether it has elements that are not looked into.
    has_more: bool,
}

/// What is wrong with a document, in words that hold nothing of it.
pub type Odd = String;

impl Element {
    /// Its local name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its own value.
    #[must_use]
    pub fn own(&self) -> &str {
        self.text.trim()
    }

    /// Its elements of this name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Self> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// Its element of this name.
    ///
    /// # Errors
    /// There are several: nobody knows which one counts.
    pub fn find(&self, name: &str) -> Result<Option<&Self>, Odd> {
        let mut found = self.children.iter().filter(|child| child.name == name);
        let first = found.next();
        if found.next().is_some() {
            return Err(format!("{} has several {name}", self.name));
        }
        Ok(first)
    }

    /// The element under these names, one in the other.
    ///
    /// # Errors
    /// One of them stands there several times.
    pub fn at(&self, names: &[&str]) -> Result<Option<&Self>, Odd> {
        let mut found = self;
        for name in names {
            match found.find(name)? {
                Some(child) => found = child,
                None => return Ok(None),
            }
        }
        Ok(Some(found))
    }

    /// The value under these names, if there is one.
    ///
    /// # Errors
    /// One of them stands there several times, holds elements, or holds nothing: no value of ISO
    /// 20022 is empty.
    pub fn text(&self, names: &[&str]) -> Result<Option<&str>, Odd> {
        let Some(found) = self.at(names)? else { return Ok(None) };
        if !found.children.is_empty() {
            return Err(format!("{} holds elements", found.name));
        }
        match found.own() {
            "" => Err(format!("{} is empty", found.name)),
            text => Ok(Some(text)),
        }
    }

    /// The value under these names.
    ///
    /// # Errors
    /// It is not there, or not once.
    pub fn need(&self, names: &[&str]) -> Result<&str, Odd> {
        self.text(names)?.ok_or_else(|| format!("{} has no {}", self.name, names.join("/")))
    }

    /// An attribute's value.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// A message that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Which one it is, such as `pain.002.001.10`.
    pub kind: String,
    /// Its only element below `Document`.
    pub content: Element,
}

/// Reads a message.
///
/// # Errors
/// In words that hold nothing of it. Whatever is not exactly one whole document is refused, because
/// half a message about money is none: one that is too large or not UTF-8, is cut off, declares a
/// document type, uses an entity beyond XML's own five, or has elements of another namespace than
/// its own.
pub fn read(body: &[u8]) -> Result<Message, Odd> {
    let (document, namespace) = tree(body)?;
    if document.name != "Document" {
        return Err("it is no document of ISO 20022".to_owned());
    }
    let kind = namespace.strip_prefix(NAMESPACES).ok_or("it is no document of ISO 20022")?;
    let mut content = document.children.into_iter();
    match (content.next(), content.next()) {
        (Some(only), None) => Ok(Message { kind: kind.to_owned(), content: only }),
        _ => Err("the document has not exactly one message".to_owned()),
    }
}

/// The root, and the namespace of all elements.
fn tree(body: &[u8]) -> Result<(Element, String), Odd> {
    if body.len() > BYTES_MAX {
        return Err("it is too large".to_owned());
    }
    let text = std::str::from_utf8(body).map_err(|_| "it is not UTF-8")?;
    let mut reader = NsReader::from_str(text.trim_start_matches('\u{feff}'));
    reader.config_mut().expand_empty_elements = true;
    let mut reading = Reading::default();
    loop {
        let (of, event) =
            reader.read_resolved_event().map_err(|_| "it is not well-formed XML".to_owned())?;
        match event {
            Event::Start(tag) => {
                let element = Element {
                    name: tag.local_name().as_ref().to_owned(),
                    attributes: attributes(&tag)?,
                    ..Element::default()
                };
                reading.open(element, &of)?;
            }
            Event::End(_) => reading.close()?,
            Event::Text(text) => reading.text(&text.xml10_content())?,
            Event::CData(text) => reading.text(&text.xml10_content())?,
            Event::GeneralRef(entity) => reading.text(&resolve(&entity)?)?,
            Event::DocType(_) => return Err("it declares a document type".to_owned()),
            Event::PI(_) => return Err("it holds a processing instruction".to_owned()),
            Event::Decl(declaration) => reading.declare(&declaration)?,
            Event::Eof => return reading.finish(),
            Event::Empty(_) | Event::Comment(_) => {}
        }
    }
}

fn attributes(tag: &quick_xml::events::BytesStart<'_>) -> Result<Vec<(String, String)>, Odd> {
    let mut attributes = Vec::new();
    for attribute in tag.attributes() {
        let attribute = attribute.map_err(|_| "an attribute is not well-formed")?;
        let name: &str = attribute.key.as_ref();
        let value = attribute
            .normalized_value(quick_xml::XmlVersion::Implicit1_0)
            .map_err(|_| "an attribute is not well-formed")?;
        attributes.push((name.to_owned(), value.into_owned()));
    }
    Ok(attributes)
}

fn resolve(entity: &BytesRef<'_>) -> Result<String, Odd> {
    match entity.resolve_char_ref() {
        Ok(Some(character)) => Ok(character.to_string()),
        Ok(None) => resolve_xml_entity(entity)
            .map(str::to_owned)
            .ok_or_else(|| "it uses an entity of its own".to_owned()),
        Err(_) => Err("it holds an invalid character reference".to_owned()),
    }
}

/// Where the reader stands in a document.
#[derive(Default)]
struct Reading {
    /// Elements that are open, from the root on.
    open: Vec<Element>,
    /// How deep the reader is in what is not looked into.
    skipped: usize,
    count: usize,
    namespace: Option<String>,
    root: Option<Element>,
    is_declared: bool,
}

impl Reading {
    fn declare(&mut self, declaration: &BytesDecl<'_>) -> Result<(), Odd> {
        let encoding = declaration.encoding().transpose();
        let encoding = encoding.map_err(|_| "its declaration is not well-formed")?;
        let is_utf8 = encoding
            .is_none_or(|encoding| AsRef::<str>::as_ref(&encoding).eq_ignore_ascii_case("UTF-8"));
        if self.is_declared || self.count > 0 || !is_utf8 {
            return Err("its declaration is not one of XML in UTF-8".to_owned());
        }
        self.is_declared = true;
        Ok(())
    }

    /// Whether an element is not looked into.
    fn is_passed_over(&self, name: &str) -> bool {
        let kind = self.namespace.as_ref().and_then(|it| it.strip_prefix(NAMESPACES));
        let repeated = |(of, names): &(&str, &[&str])| {
            kind.is_some_and(|kind| kind.starts_with(of)) && names.contains(&name)
        };
        name == SUPPLEMENT || REPEATED.iter().any(repeated)
    }

    fn open(&mut self, element: Element, of: &ResolveResult<'_>) -> Result<(), Odd> {
        let is_skipped = self.skipped > 0 || self.is_passed_over(&element.name);
        self.count += usize::from(!is_skipped);
        if self.open.len() + self.skipped >= DEPTH_MAX || self.count > ELEMENTS_MAX {
            return Err("it is nested too deeply or has too many elements".to_owned());
        }
        if self.skipped == 0
            && self.open.last().is_some_and(|parent| !parent.text.trim().is_empty())
        {
            return Err("an element holds both text and elements".to_owned());
        }
        if is_skipped {
            if self.skipped == 0
                && let Some(parent) = self.open.last_mut()
            {
                parent.has_more = true;
            }
            self.skipped += 1;
            return Ok(());
        }
        let ResolveResult::Bound(Namespace(of)) = of else {
            return Err("an element has no namespace".to_owned());
        };
        match &self.namespace {
            None => self.namespace = Some((*of).to_owned()),
            Some(known) if known == of => {}
            Some(_) => return Err("an element has another namespace".to_owned()),
        }
        if self.root.is_some() {
            return Err("it holds several documents".to_owned());
        }
        self.open.push(element);
        Ok(())
    }

    fn close(&mut self) -> Result<(), Odd> {
        if self.skipped > 0 {
            self.skipped -= 1;
            return Ok(());
        }
        let mut element = self.open.pop().ok_or("it is not well-formed XML")?;
        element.children.shrink_to_fit();
        match self.open.last_mut() {
            Some(parent) => parent.children.push(element),
            None => self.root = Some(element),
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), Odd> {
        if self.skipped > 0 {
            return Ok(());
        }
        let is_blank = text.trim().is_empty();
        match self.open.last_mut() {
            None if is_blank => Ok(()),
            None => Err("it is not well-formed XML".to_owned()),
            // Nobody keeps what stands between elements.
            Some(element) if is_blank && element.text.is_empty() => Ok(()),
            Some(element) if is_blank || (element.children.is_empty() && !element.has_more) => {
                element.text.push_str(text);
                Ok(())
            }
            Some(_) => Err("an element holds both text and elements".to_owned()),
        }
    }

    fn finish(self) -> Result<(Element, String), Odd> {
        if !self.open.is_empty() || self.skipped > 0 {
            return Err("it is cut off".to_owned());
        }
        self.root.zip(self.namespace).ok_or_else(|| "it holds no document".to_owned())
    }
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
#[path = "xml_tests.rs"]
mod tests;
