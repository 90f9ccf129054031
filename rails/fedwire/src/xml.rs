//! XML in both directions: what leaves is put together from elements, and what comes is read into a
//! tree, strictly.

use std::borrow::Cow;

use quick_xml::escape::{escape, resolve_xml_entity};
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::name::ResolveResult;
use quick_xml::{NsReader, XmlVersion};

/// A return, the longest message that comes, is some ten thousand bytes.
const BODY_BYTES_MAX: usize = 131_072;
const DEPTH_MAX: usize = 32;
const ELEMENTS_MAX: usize = 2_000;

/// What stands before the name of a message in its namespace.
const NAMESPACE: &str = "urn:iso:std:iso:20022:tech:xsd:";

/// A document that is being written.
#[derive(Debug, Default)]
pub struct Writer {
    text: String,
}

impl Writer {
    /// An element with this text. ISO 20022 knows no empty texts: it is left out.
    pub fn leaf(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.element(name, "", |writer| writer.text.push_str(&escape(value)));
        }
    }

    /// An amount of dollars.
    pub fn dollars(&mut self, name: &str, amount: &str) {
        self.element(name, " Ccy=\"USD\"", |writer| writer.text.push_str(amount));
    }

    /// An element with others in it.
    pub fn within(&mut self, name: &str, fill: impl FnOnce(&mut Self)) {
        self.element(name, "", fill);
    }

    /// The outermost element of a part of ISO 20022, such as `pacs.008.001.08`.
    pub fn part(&mut self, name: &str, of: &str, fill: impl FnOnce(&mut Self)) {
        self.element(name, &format!(" xmlns=\"{NAMESPACE}{of}\""), fill);
    }

    /// The whole document.
    #[must_use]
    pub fn finish(self) -> String {
        format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>{}", self.text)
    }

    fn element(&mut self, name: &str, attributes: &str, fill: impl FnOnce(&mut Self)) {
        for part in ["<", name, attributes, ">"] {
            self.text.push_str(part);
        }
        fill(self);
        for part in ["</", name, ">"] {
            self.text.push_str(part);
        }
    }
}

/// An element that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    name: String,
    namespace: String,
    /// Names and values of its attributes, declarations of namespaces excepted.
    attributes: Vec<(String, String)>,
    text: String,
    children: Vec<Node>,
}

impl Node {
    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The element at the end of this path; the first step is a child of this one.
    ///
    /// # Errors
    /// There is none, or a step of the path stands there twice.
    pub fn at(&self, path: &[&str]) -> Result<&Self, String> {
        self.find(path)?.ok_or_else(|| format!("it has no {}", path.join("/")))
    }

    /// The same, where it may be missing.
    ///
    /// # Errors
    /// A step of the path stands there twice.
    pub fn find(&self, path: &[&str]) -> Result<Option<&Self>, String> {
        let mut found = self;
        for step in path {
            let mut those = found.children.iter().filter(|child| child.name == *step);
            match (those.next(), those.next()) {
                (None, _) => return Ok(None),
                (Some(only), None) => found = only,
                (Some(_), Some(_)) => return Err(format!("it has {step} twice")),
            }
        }
        Ok(Some(found))
    }

    /// The text at the end of a path.
    ///
    /// # Errors
    /// As with [`Node::at`]; or there are elements, or nothing.
    pub fn text(&self, path: &[&str]) -> Result<&str, String> {
        let found = self.at(path)?;
        if found.children.is_empty() && !found.text.trim().is_empty() {
            return Ok(found.text.trim());
        }
        Err(format!("its {} is no text", path.join("/")))
    }

    /// All children of this name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Self> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// An attribute's value.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// A message of ISO 20022.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its kind and version, such as `pacs.002.001.10`.
    pub kind: String,
    /// The only element of its document.
    pub content: Node,
}

/// Reads the message out of a body: its `Document`, whatever envelopes and headers stand around it.
///
/// # Errors
/// Says what kept it from being read. Whatever is not exactly one whole message is refused: a body
/// that is too large or not UTF-8, is cut off, declares a document type or uses an entity beyond
/// XML's own five, or holds elements of another namespace in the message.
pub fn read(body: &[u8]) -> Result<Message, String> {
    let root = tree(body)?;
    let mut documents = Vec::new();
    gather(&root, &mut documents);
    let [document] = documents.as_slice() else {
        return Err(format!("the body holds {} messages", documents.len()));
    };
    let [content] = document.children.as_slice() else {
        return Err("the body's message is not one".to_owned());
    };
    let kind = document.namespace.strip_prefix(NAMESPACE).unwrap_or_default().to_owned();
    if kind.is_empty() || !is_all_of(document, &document.namespace) {
        return Err("the body holds no message of ISO 20022".to_owned());
    }
    Ok(Message { kind, content: content.clone() })
}

/// Documents that stand in no other one.
fn gather<'a>(node: &'a Node, documents: &mut Vec<&'a Node>) {
    if node.name == "Document" {
        documents.push(node);
    } else {
        node.children.iter().for_each(|child| gather(child, documents));
    }
}

fn is_all_of(node: &Node, namespace: &str) -> bool {
    node.namespace == namespace && node.children.iter().all(|child| is_all_of(child, namespace))
}

fn tree(body: &[u8]) -> Result<Node, String> {
    if body.len() > BODY_BYTES_MAX {
        return Err("the body is too large".to_owned());
    }
    let text = std::str::from_utf8(body).map_err(|_| "the body is not UTF-8")?;
    let mut reader = NsReader::from_str(text.trim_start_matches('\u{feff}'));
    reader.config_mut().expand_empty_elements = true;
    let mut reading = Reading::default();
    loop {
        let read = reader.read_resolved_event();
        let (namespace, event) = read.map_err(|_| "the body is not well-formed XML")?;
        match event {
            Event::Start(tag) => reading.open(opened(&tag, &namespace)?)?,
            Event::End(_) => reading.close()?,
            Event::Text(text) => reading.text(&text.xml10_content())?,
            Event::CData(text) => reading.text(&text.xml10_content())?,
            Event::GeneralRef(entity) => reading.text(&resolved(&entity)?)?,
            Event::DocType(_) => return Err("the body declares a document type".to_owned()),
            Event::Eof => return reading.finish(),
            Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
        }
    }
}

fn opened(tag: &BytesStart<'_>, namespace: &ResolveResult<'_>) -> Result<Node, String> {
    let namespace = match namespace {
        ResolveResult::Bound(namespace) => namespace.0.to_owned(),
        ResolveResult::Unbound => String::new(),
        ResolveResult::Unknown(_) => return Err("the body uses an undeclared prefix".to_owned()),
    };
    let mut attributes = Vec::new();
    for attribute in tag.attributes() {
        let attribute = attribute.map_err(|_| "the body is not well-formed XML")?;
        let name = attribute.key.as_ref().to_owned();
        if name != "xmlns" && !name.starts_with("xmlns:") {
            let value = attribute.normalized_value(XmlVersion::Implicit1_0);
            let value = value.map_err(|_| "the body is not well-formed XML")?.into_owned();
            attributes.push((name, value));
        }
    }
    let name = tag.local_name().as_ref().to_owned();
    Ok(Node { name, namespace, attributes, ..Node::default() })
}

fn resolved(entity: &BytesRef<'_>) -> Result<Cow<'static, str>, String> {
    match entity.resolve_char_ref() {
        Ok(Some(character)) => Ok(character.to_string().into()),
        Ok(None) => resolve_xml_entity(entity)
            .map(Cow::from)
            .ok_or_else(|| "the body uses an entity of its own".to_owned()),
        Err(_) => Err("the body holds an invalid character reference".to_owned()),
    }
}

/// Where the reader stands: the elements that are open, and the outermost one once it is closed.
#[derive(Default)]
struct Reading {
    open: Vec<Node>,
    elements: usize,
    root: Option<Node>,
}

impl Reading {
    fn open(&mut self, node: Node) -> Result<(), String> {
        self.elements += 1;
        if self.open.len() >= DEPTH_MAX || self.elements > ELEMENTS_MAX {
            return Err("the body is nested too deeply or has too many elements".to_owned());
        }
        if self.open.is_empty() && self.root.is_some() {
            return Err("the body has two outermost elements".to_owned());
        }
        self.open.push(node);
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        let node = self.open.pop().ok_or("the body is not well-formed XML")?;
        if !node.children.is_empty() && !node.text.trim().is_empty() {
            return Err("the body has text among elements".to_owned());
        }
        match self.open.last_mut() {
            Some(parent) => parent.children.push(node),
            None => self.root = Some(node),
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), String> {
        match self.open.last_mut() {
            Some(node) => node.text.push_str(text),
            None if text.trim().is_empty() => {}
            None => return Err("the body is not well-formed XML".to_owned()),
        }
        Ok(())
    }

    fn finish(self) -> Result<Node, String> {
        if !self.open.is_empty() {
            return Err("the body is cut off".to_owned());
        }
        self.root.ok_or_else(|| "the body is empty".to_owned())
    }
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::{Writer, read};

    fn of(inner: &str) -> Result<super::Message, String> {
        let body = format!(
            "<D><A/><p:Document xmlns:p=\"urn:iso:std:iso:20022:tech:xsd:x.1\"><p:M>{inner}</p:M>\
             </p:Document></D>"
        );
        read(body.as_bytes())
    }

    #[test]
    fn written_and_read() {
        let mut writer = Writer::default();
        writer.part("Document", "x.1", |writer| {
            writer.within("M", |writer| {
                writer.leaf("A", "<b> & \"c\"");
                writer.leaf("B", "");
                writer.dollars("C", "1.50");
            });
        });
        let text = writer.finish();
        let message = read(text.as_bytes()).expect("a message");
        assert_eq!((message.kind.as_str(), message.content.name()), ("x.1", "M"));
        assert_eq!(message.content.text(&["A"]), Ok("<b> & \"c\""));
        assert_eq!(message.content.find(&["B"]), Ok(None));
        let amount = message.content.at(&["C"]).expect("an amount");
        assert_eq!((amount.attribute("Ccy"), amount.attribute("ccy")), (Some("USD"), None));
    }

    #[test]
    fn with_prefixes_and_whatever_is_legal() {
        let message = of("<p:A>1<!-- --><![CDATA[<]]>&amp;&#50;</p:A>\n<p:B/>").expect("a message");
        assert_eq!(message.content.text(&["A"]), Ok("1<&2"));
        assert!(message.content.text(&["B"]).is_err() && message.content.text(&["C"]).is_err());
        assert!(
            read(
                "\u{feff}<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:a\"><M/></Document>"
                    .as_bytes()
            )
            .is_ok()
        );
    }

    #[test]
    fn what_stands_twice_is_not_believed() {
        let message = of("<p:A>1</p:A><p:A>1</p:A><p:B><p:C>1</p:C></p:B>").expect("a message");
        assert!(message.content.text(&["A"]).is_err() && message.content.find(&["A"]).is_err());
        assert_eq!(message.content.all("A").count(), 2);
        assert_eq!(message.content.text(&["B", "C"]), Ok("1"));
        assert!(message.content.text(&["B"]).is_err());
    }

    #[test]
    fn what_is_no_message() {
        for inner in ["<p:A>", "<q:A/>", "<A/>", "text<p:A/>", "&own;", "<p:A a='1' a='2'/>"] {
            assert!(of(inner).is_err(), "{inner}");
        }
        let document = "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:a\"><M/></Document>";
        let deep = format!("{}{}", "<a>".repeat(40), "</a>".repeat(40));
        let wide = document.replace("<M/>", &format!("<M>{}</M>", "<a/>".repeat(2_001)));
        let long = document.replace("<M/>", &format!("<M>{}</M>", "a".repeat(140_000)));
        for body in [
            "",
            " ",
            "text",
            "<a/>",
            "<Document><M/></Document>",
            "<Document xmlns=\"urn:other\"><M/></Document>",
            "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:a\"/>",
            &document.replace("<M/>", "<M/><M/>"),
            &format!("{document}{document}"),
            &format!("<a>{document}{document}</a>"),
            &format!("<!DOCTYPE a>{document}"),
            &format!("{document}x"),
            &document[..document.len() - 3],
            &deep,
            &wide,
            &long,
        ] {
            assert!(read(body.as_bytes()).is_err(), "{body:.80}");
        }
        assert!(read(b"\xff\xfe").is_err());
    }
}
