//! Messages as the bank reads and writes them. What is read is taken apart element by element, in
//! the order of the schema: what is not expected where it stands is refused.

use quick_xml::Reader;
use quick_xml::escape::{escape, resolve_xml_entity};
use quick_xml::events::{BytesStart, Event};

/// Where the messages' namespaces are.
const URN: &str = "urn:iso:std:iso:20022:tech:xsd:";

/// Why a message is refused, in words.
pub type Fault = String;

/// An element.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// Its name.
    pub name: String,
    attributes: Vec<(String, String)>,
    /// Its text.
    pub text: String,
    children: Vec<Node>,
}

impl Node {
    /// An attribute's value.
    #[must_use]
    pub fn attribute(&self, name: &str) -> &str {
        self.attributes.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// The text of the first element of this name, at any depth: for what cannot be read otherwise.
    #[must_use]
    pub fn first(&self, name: &str) -> Option<&str> {
        self.children.iter().find_map(|child| match child.name == name {
            true => Some(child.text.as_str()),
            false => child.first(name),
        })
    }
}

/// Reads the message of this kind out of a body.
///
/// # Errors
/// It is not one whole document of this kind.
pub fn read(body: &[u8], kind: &str) -> Result<Node, Fault> {
    read_each(body, kind, ("", |_| Ok(())))
}

/// The same of a message that may be large: each element of this name is handed over once it is
/// read, and an empty one is left in its place.
///
/// # Errors
/// It is not one whole document of this kind, or one of these elements is not as it must be.
pub fn read_each(
    body: &[u8],
    kind: &str,
    (each, mut take): (&str, impl FnMut(&Node) -> Result<(), Fault>),
) -> Result<Node, Fault> {
    let text = std::str::from_utf8(body).map_err(|_| "it is not UTF-8")?;
    let mut reader = Reader::from_str(text);
    let mut open = vec![Node::default()];
    loop {
        match reader.read_event().map_err(|cause| format!("it is not XML: {cause}"))? {
            Event::Start(tag) => open.push(node(&tag)?),
            Event::Empty(tag) => {
                let empty = node(&tag)?;
                return Err(format!("{} is empty", empty.name));
            }
            Event::End(_) => {
                let mut done = open.pop().unwrap_or_default();
                if done.name == each {
                    take(&done)?;
                    done = Node { name: done.name, ..Node::default() };
                }
                let parent = open.last_mut().ok_or("it ends before it begins")?;
                parent.children.push(done);
            }
            Event::Text(piece) => push(&mut open, &piece.xml10_content())?,
            Event::GeneralRef(entity) => {
                let known = resolve_xml_entity(&entity).ok_or("it has an entity of its own")?;
                push(&mut open, known)?;
            }
            Event::Decl(_) => {}
            Event::Eof => break,
            _ => return Err("it holds something else than elements and text".to_owned()),
        }
    }
    let [root] = open.as_mut_slice() else { return Err("it is cut off".to_owned()) };
    let [document] = root.children.as_mut_slice() else {
        return Err("it is not one document".to_owned());
    };
    if document.name != "Document" || document.attribute("xmlns") != format!("{URN}{kind}") {
        return Err(format!("it is no {kind}"));
    }
    match document.children.as_mut_slice() {
        [message] => Ok(std::mem::take(message)),
        _ => Err("it is not one message".to_owned()),
    }
}

fn push(open: &mut [Node], piece: &str) -> Result<(), Fault> {
    let (is_inside, node) = (open.len() > 1, open.last_mut().ok_or("it ends before it begins")?);
    let is_blank = piece.trim().is_empty();
    if (!is_inside || !node.children.is_empty()) && !is_blank {
        return Err("text stands beside elements".to_owned());
    }
    node.text.push_str(piece);
    Ok(())
}

fn node(tag: &BytesStart<'_>) -> Result<Node, Fault> {
    let mut node = Node { name: tag.name().as_ref().to_owned(), ..Node::default() };
    for attribute in tag.attributes() {
        let attribute = attribute.map_err(|cause| cause.to_string())?;
        let name: &str = attribute.key.as_ref();
        let value: &str = attribute.value.as_ref();
        node.attributes.push((name.to_owned(), value.to_owned()));
    }
    Ok(node)
}

/// What is left to be read of an element, in the order of the schema.
pub struct Walk<'a> {
    of: &'a Node,
    rest: std::slice::Iter<'a, Node>,
}

impl<'a> Walk<'a> {
    /// The whole element, which holds elements and no text.
    ///
    /// # Errors
    /// It holds text.
    pub fn of(node: &'a Node) -> Result<Self, Fault> {
        match node.text.trim().is_empty() {
            true => Ok(Self { of: node, rest: node.children.iter() }),
            false => Err(format!("{} holds text", node.name)),
        }
    }

    /// The next element, if it has this name.
    pub fn maybe(&mut self, name: &str) -> Option<&'a Node> {
        let next = self.rest.as_slice().first().filter(|next| next.name == name)?;
        self.rest.next();
        Some(next)
    }

    /// The next element, which must have this name.
    ///
    /// # Errors
    /// It has another one.
    pub fn one(&mut self, name: &str) -> Result<&'a Node, Fault> {
        let found = self.rest.as_slice().first().map_or("nothing", |next| next.name.as_str());
        let wrong = format!("in {} is {found} where {name} belongs", self.of.name);
        self.maybe(name).ok_or(wrong)
    }

    /// What the next element holds, which must have this name.
    ///
    /// # Errors
    /// It has another one, or holds text.
    pub fn within(&mut self, name: &str) -> Result<Self, Fault> {
        Walk::of(self.one(name)?)
    }

    /// The text of the next element, which must have this name: up to so many of the characters
    /// that SEPA carries.
    ///
    /// # Errors
    /// It has another one, or holds something else.
    pub fn text(&mut self, name: &str, most: usize) -> Result<&'a str, Fault> {
        read_text(self.one(name)?, most)
    }

    /// The same, if the next element has this name.
    ///
    /// # Errors
    /// It holds something else.
    pub fn text_maybe(&mut self, name: &str, most: usize) -> Result<Option<&'a str>, Fault> {
        self.maybe(name).map(|node| read_text(node, most)).transpose()
    }

    /// The next element must have this name and this text.
    ///
    /// # Errors
    /// It has not.
    pub fn only(&mut self, name: &str, wanted: &str) -> Result<(), Fault> {
        match self.text(name, 140)? == wanted {
            true => Ok(()),
            false => Err(format!("{name} must be {wanted}")),
        }
    }

    /// Nothing may be left.
    ///
    /// # Errors
    /// Something is.
    pub fn end(mut self) -> Result<(), Fault> {
        match self.rest.next() {
            None => Ok(()),
            Some(more) => Err(format!("{} must not stand in {}", more.name, self.of.name)),
        }
    }
}

fn read_text(node: &Node, most: usize) -> Result<&str, Fault> {
    let text = node.text.as_str();
    let is_carried = |c: char| c.is_ascii_alphanumeric() || " /-?:().,'+".contains(c);
    let is_fit = (1..=most).contains(&text.chars().count())
        && text.chars().all(is_carried)
        && text.trim() == text
        && !text.contains("//")
        && !text.starts_with('/')
        && !text.ends_with('/');
    match node.children.is_empty() && is_fit {
        true => Ok(text),
        false => Err(format!("{} must be 1 to {most} characters that SEPA carries", node.name)),
    }
}

/// A message being written.
pub struct Message {
    text: String,
    open: Vec<&'static str>,
}

impl Message {
    /// A message of this kind, in this element.
    #[must_use]
    pub fn new(kind: &str, element: &'static str) -> Self {
        let text = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Document xmlns=\"{URN}{kind}\"><{element}>"
        );
        Self { text, open: vec!["Document", element] }
    }

    /// Opens elements, one in the other.
    #[must_use]
    pub fn open(mut self, names: &[&'static str]) -> Self {
        for name in names {
            self.text.push_str(&format!("<{name}>"));
            self.open.push(name);
        }
        self
    }

    /// Closes so many elements.
    #[must_use]
    pub fn close(mut self, count: usize) -> Self {
        for name in self.open.split_off(self.open.len().saturating_sub(count)).iter().rev() {
            self.text.push_str(&format!("</{name}>"));
        }
        self
    }

    /// An element with a text.
    #[must_use]
    pub fn put(mut self, name: &str, text: &str) -> Self {
        self.text.push_str(&format!("<{name}>{}</{name}>", escape(text)));
        self
    }

    /// An element with a text, where there is one.
    #[must_use]
    pub fn put_some(self, name: &str, text: &str) -> Self {
        if text.is_empty() { self } else { self.put(name, text) }
    }

    /// An amount in euros.
    #[must_use]
    pub fn euros(mut self, name: &str, cents: i64) -> Self {
        self.text
            .push_str(&format!("<{name} Ccy=\"EUR\">{}</{name}>", crate::amounts::written(cents)));
        self
    }

    /// A code in two elements around it.
    #[must_use]
    pub fn reason(self, outer: &'static str, code: &str) -> Self {
        self.open(&[outer, "Rsn"]).put("Cd", code).close(2)
    }

    /// The whole message.
    #[must_use]
    pub fn done(self) -> String {
        let count = self.open.len();
        self.close(count).text + "\n"
    }
}
