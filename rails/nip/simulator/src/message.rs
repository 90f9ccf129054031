//! Reading and writing the gateway's XML.

/// The elements of a message, in order of appearance.
pub struct Message(Vec<(String, String)>);

impl Message {
    /// Reads a message whose outermost element is `root`.
    ///
    /// # Errors
    /// It is none.
    pub fn read(body: &[u8], root: &str) -> Result<Self, String> {
        let text = std::str::from_utf8(body).map_err(|_| "not UTF-8".to_owned())?;
        let document = roxmltree::Document::parse(text).map_err(|cause| cause.to_string())?;
        let outermost = document.root_element();
        if outermost.tag_name().name() != root {
            return Err(format!("{root} was expected, not {}", outermost.tag_name().name()));
        }
        let children = outermost.children().filter(roxmltree::Node::is_element);
        let elements = children
            .map(|node| (node.tag_name().name().to_owned(), node.text().unwrap_or("").to_owned()));
        Ok(Self(elements.collect()))
    }

    /// All of them.
    #[must_use]
    pub fn elements(&self) -> &[(String, String)] {
        &self.0
    }

    /// An element's text; empty where there is none.
    #[must_use]
    pub fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// An element that must be there and have this many digits.
    ///
    /// # Errors
    /// It has not.
    pub fn digits(&self, name: &str, count: usize) -> Result<&str, String> {
        let value = self.get(name);
        let is_right = value.len() == count && value.bytes().all(|byte| byte.is_ascii_digit());
        is_right.then_some(value).ok_or_else(|| format!("{name} must be {count} digits: {value:?}"))
    }

    /// An element that must not be empty, and not longer than this.
    ///
    /// # Errors
    /// It is.
    pub fn text(&self, name: &str, most: usize) -> Result<&str, String> {
        let value = self.get(name);
        let length = value.chars().count();
        (1..=most)
            .contains(&length)
            .then_some(value)
            .ok_or_else(|| format!("{name} must have 1 to {most} characters, not {length}"))
    }

    /// The amount in kobo: naira with exactly two decimals.
    ///
    /// # Errors
    /// It is none, or nothing.
    pub fn amount(&self) -> Result<i64, String> {
        let value = self.get("Amount");
        let wrong = || format!("Amount must be naira with two decimals: {value:?}");
        let (naira, kobo) = value.split_once('.').ok_or_else(wrong)?;
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !digits(naira) || !digits(kobo) || kobo.len() != 2 {
            return Err(wrong());
        }
        format!("{naira}{kobo}").parse().ok().filter(|&amount| amount > 0).ok_or_else(wrong)
    }
}

/// Writes a message.
#[must_use]
pub fn document(root: &str, elements: &[(&str, &str)]) -> String {
    let inner: String = elements.iter().map(|(name, value)| element(name, value)).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\
         <ns2:{root} xmlns:ns2=\"http://core.nip.nibss/\">{inner}</ns2:{root}>"
    )
}

/// Writes an element with its text escaped.
fn element(name: &str, value: &str) -> String {
    let value = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!("<{name}>{value}</{name}>")
}
