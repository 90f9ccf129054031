//! A message in its envelope: header and document, held to their shapes.

use roxmltree::{Document, Node};

use crate::rules::{Rule, cents};
use crate::shapes::{Content, HEADER, Need, Shape};

const NAMESPACE: &str = "urn:iso:std:iso:20022:tech:xsd:";

/// A message that keeps to its shape.
pub struct Message<'a> {
    header: Node<'a, 'a>,
    content: Node<'a, 'a>,
}

impl<'a> Message<'a> {
    /// The message of this kind in a body that was parsed, its outermost element and shape.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn of(
        document: &'a Document<'a>,
        (kind, name, shape): (&str, &str, &[Shape]),
    ) -> Result<Self, String> {
        let envelope = document.root_element();
        let children = elements(envelope);
        let [header, content] = children.as_slice() else {
            return Err("BusMsg must hold AppHdr and Document".to_owned());
        };
        named(envelope, "BusMsg", None)?;
        named(*header, "AppHdr", Some("head.001.001.03"))?;
        named(*content, "Document", Some(kind))?;
        held(*header, HEADER, "head.001.001.03")?;
        let children = elements(*content);
        let [content] = children.as_slice() else {
            return Err("Document must hold one message".to_owned());
        };
        named(*content, name, Some(kind))?;
        held(*content, shape, kind)?;
        let message = Self { header: *header, content: *content };
        match message.header(&["MsgDefIdr"]) == kind {
            true => Ok(message),
            false => Err(format!("MsgDefIdr must be {kind}")),
        }
    }

    /// The text at the end of a path of the header.
    #[must_use]
    pub fn header(&self, path: &[&str]) -> &'a str {
        text(self.header, path)
    }

    /// The text at the end of a path of the message; empty where there is none.
    #[must_use]
    pub fn get(&self, path: &[&str]) -> &'a str {
        text(self.content, path)
    }

    /// The cents at the end of a path.
    #[must_use]
    pub fn cents(&self, path: &[&str]) -> i64 {
        cents(self.get(path)).unwrap_or_default()
    }
}

fn text<'a>(node: Node<'a, 'a>, path: &[&str]) -> &'a str {
    let step = |node: Node<'a, 'a>, name: &str| {
        elements(node).into_iter().find(|child| child.tag_name().name() == name)
    };
    let found = path.iter().try_fold(node, |node, name| step(node, name));
    found.and_then(|node| node.text()).unwrap_or_default()
}

fn elements<'a>(node: Node<'a, 'a>) -> Vec<Node<'a, 'a>> {
    node.children().filter(Node::is_element).collect()
}

/// An element has this name, in the namespace of this kind of message.
fn named(node: Node<'_, '_>, name: &str, kind: Option<&str>) -> Result<(), String> {
    let namespace = kind.map(|kind| format!("{NAMESPACE}{kind}"));
    let (found, tag) = (node.tag_name().namespace(), node.tag_name().name());
    if tag == name && found == namespace.as_deref() {
        return Ok(());
    }
    Err(format!("{name} was expected, not {tag} of {}", found.unwrap_or("no namespace")))
}

/// Children keep to these shapes, in this order.
fn held(node: Node<'_, '_>, shapes: &[Shape], kind: &str) -> Result<(), String> {
    let parent = node.tag_name().name();
    let mut children = elements(node).into_iter().peekable();
    for shape in shapes {
        let mut count = 0;
        while let Some(child) = children.next_if(|it| it.tag_name().name() == shape.name) {
            count += 1;
            one(child, shape, kind)?;
        }
        let is_right = match shape.need {
            Need::Once => count == 1,
            Need::Optional => count <= 1,
            Need::UpToTwice => count <= 2,
        };
        if !is_right {
            return Err(format!("{parent} has {} {count} times", shape.name));
        }
    }
    let words = node.children().filter(Node::is_text).filter_map(|it| it.text());
    if words.into_iter().any(|text| !text.trim().is_empty()) {
        return Err(format!("{parent} holds text among elements"));
    }
    match children.next() {
        Some(child) => Err(format!("{parent} must not have {} here", child.tag_name().name())),
        None => Ok(()),
    }
}

fn one(node: Node<'_, '_>, shape: &Shape, kind: &str) -> Result<(), String> {
    named(node, shape.name, Some(kind))?;
    let attributes: Vec<(&str, &str)> =
        node.attributes().map(|attribute| (attribute.name(), attribute.value())).collect();
    let allowed: &[(&str, &str)] = match shape.content {
        Content::Amount => &[("Ccy", "USD")],
        Content::Text(_) | Content::Parts(_) => &[],
    };
    if attributes != allowed {
        return Err(format!("{} has the attributes {attributes:?}", shape.name));
    }
    let rule = match shape.content {
        Content::Parts(shapes) => return held(node, shapes, kind),
        Content::Amount => Rule::Dollars,
        Content::Text(rule) => rule,
    };
    let text = node.text().unwrap_or_default();
    if elements(node).is_empty() && rule.is_kept_by(text) {
        return Ok(());
    }
    Err(format!("{} must be {rule:?}: {text:?}", shape.name))
}
