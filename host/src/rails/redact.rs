//! Masking what must not be read in records and logs.

use std::borrow::Cow;
use std::ops::Range;

use super::declaration::Declaration;
use super::fields::RecipientFields;

/// Masks declared elements and the values of declared fields in any text.
pub struct Redactor {
    elements: Vec<String>,
    sensitive: Vec<String>,
}

impl Redactor {
    /// For the messages of this rail.
    #[must_use]
    pub fn new(declaration: &Declaration) -> Self {
        let fields = declaration.recipient.fields.iter().filter(|field| field.sensitive);
        Self {
            elements: declaration.redact.elements.clone(),
            sensitive: fields.map(|field| field.name.clone()).collect(),
        }
    }

    /// The text with every secret part masked: the contents of declared elements, as XML or as
    /// keys of JSON, and the recipient's sensitive values wherever they stand.
    #[must_use]
    pub fn text(&self, text: &str, recipient: &RecipientFields) -> String {
        let mut masked = self.contents(text);
        for name in &self.sensitive {
            let value = recipient.get(name);
            if value.len() < 4 {
                continue;
            }
            // Some networks take capitals only.
            let capitals = value.to_ascii_uppercase();
            for value in [value].into_iter().chain((capitals != value).then_some(&*capitals)) {
                if masked.contains(value) {
                    masked = masked.replace(value, &mask(value)).into();
                }
            }
        }
        masked.into_owned()
    }

    /// One pass over the text: every `<` may begin a secret element, and every `"` a secret key.
    fn contents<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let (mut masked, mut copied, mut at) = (String::new(), 0, 0);
        while let Some(found) = memchr::memchr2(b'<', b'"', &text.as_bytes()[at..]) {
            at += found + 1;
            let rest = &text[at..];
            let secret = match text.as_bytes()[at - 1] {
                b'<' => self.element(rest),
                _ => self.value(rest),
            };
            if let Some(secret) = secret {
                masked.push_str(&text[copied..at + secret.start]);
                masked.push_str(&covered(&rest[secret.clone()]));
                at += secret.end;
                copied = at;
            } else if let Some(pair) = self.pair(text, at) {
                let from = pair.start.max(copied);
                masked.push_str(&text[copied..from]);
                masked.push_str(&self.pair_covered(&text[from..pair.end]));
                (at, copied) = (pair.end, pair.end);
            }
        }
        if copied == 0 {
            return text.into();
        }
        masked.push_str(&text[copied..]);
        masked.into()
    }

    /// Where the contents of a secret element are, after its `<`: all that is between its tags,
    /// whatever that is. An element that is cut off reaches to the end of the text.
    fn element(&self, rest: &str) -> Option<Range<usize>> {
        let (name, after) = tag_name(rest)?;
        if !self.elements.iter().any(|known| known == name) {
            return None;
        }
        let from = rest.len() - after.len();
        let start = from + end_of_tag(after)?;
        if rest[..start].ends_with("/>") {
            return None;
        }
        let mut end = rest.len();
        for (at, _) in rest[start..].match_indices("</") {
            if tag_name(&rest[start + at + 2..]).is_some_and(|(other, _)| other == name) {
                end = start + at;
                break;
            }
        }
        Some(start..end)
    }

    /// Where the value of a secret key is, after its `"`: a text without its quotes, or whatever
    /// else it is, as a whole.
    fn value(&self, rest: &str) -> Option<Range<usize>> {
        let name = self.elements.iter().find(|known| {
            rest.strip_prefix(known.as_str()).is_some_and(|after| after.starts_with('"'))
        })?;
        let after = rest[name.len() + 1..].trim_start().strip_prefix(':')?.trim_start();
        let start = rest.len() - after.len();
        let end = start + end_of_value(after);
        match after.starts_with('"') {
            true => Some(start + 1..end.max(start + 1)),
            false => Some(start..end),
        }
    }

    /// Where the object is that names a secret in one member and has it in another, such as
    /// `{"Key": "Name", "Value": "…"}`, if the text after a `"` is that name.
    fn pair(&self, text: &str, at: usize) -> Option<Range<usize>> {
        let rest = &text[at..];
        let after = self.elements.iter().find_map(|known| {
            rest.strip_prefix(known.as_str()).and_then(|after| after.strip_prefix('"'))
        })?;
        if text.as_bytes()[at - 1] != b'"' || !after.trim_start().starts_with([',', '}']) {
            return None;
        }
        let start = text[..at].rfind('{')?;
        let end = start + end_of_value(&text[start..]);
        (end > at).then_some(start..end)
    }

    /// Such an object with everything covered but its keys, and the name itself.
    fn pair_covered(&self, object: &str) -> String {
        let (mut shown, mut rest) = (String::new(), object);
        while let Some(colon) = rest.find("\":") {
            let value = rest[colon + 2..].trim_start();
            let start = rest.len() - value.len();
            let is_text = value.starts_with('"');
            let start = start + usize::from(is_text);
            let end = start.max(rest.len() - value.len() + end_of_value(value));
            shown.push_str(&rest[..start]);
            match self.elements.iter().any(|known| *known == rest[start..end]) {
                true => shown.push_str(&rest[start..end]),
                false => shown.push_str(&covered_whole(&rest[start..end])),
            }
            rest = &rest[end..];
        }
        shown + rest
    }

    /// The recipient with its sensitive fields masked.
    #[must_use]
    pub fn fields(&self, recipient: &RecipientFields) -> RecipientFields {
        let mut masked = recipient.clone();
        for name in &self.sensitive {
            if let Some(value) = masked.0.get_mut(name) {
                *value = mask(value);
            }
        }
        masked
    }
}

/// A plain value masked; anything with a structure of its own without its end.
fn covered(contents: &str) -> String {
    match contents.contains(['<', '"', '[', '{']) {
        true => "*".repeat(contents.chars().count()),
        false => mask(contents),
    }
}

/// A value of which nothing is shown: there may be several things in it.
fn covered_whole(contents: &str) -> String {
    "*".repeat(contents.chars().count())
}

/// The name that a tag begins with, without its prefix, and what follows it.
fn tag_name(text: &str) -> Option<(&str, &str)> {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let end = |text: &str| text.find(|c| !is_name(c));
    let (mut name, mut after) = text.split_at(end(text)?);
    if let Some(local) = after.strip_prefix(':') {
        (name, after) = local.split_at(end(local)?);
    }
    (!name.is_empty()).then_some((name, after))
}

/// How long the rest of an opening tag is, up to its `>`; one within an attribute is not that.
fn end_of_tag(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, '>') => return Some(at + 1),
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            _ => {}
        }
    }
    None
}

/// How long a value of JSON is, without the closing quote of a text: to its end, or to the end of
/// what there is.
fn end_of_value(text: &str) -> usize {
    let (mut depth, mut is_text, mut is_escaped) = (0_u32, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_text => is_escaped = true,
            '"' if is_text && depth == 0 => return at,
            '"' => is_text = !is_text,
            _ if is_text => {}
            '[' | '{' => depth += 1,
            ']' | '}' if depth == 1 => return at + 1,
            ']' | '}' if depth > 1 => depth -= 1,
            ',' | ']' | '}' | ' ' | '\n' | '\r' | '\t' if depth == 0 => return at,
            _ => {}
        }
    }
    text.len()
}

/// Stars for all but the last four characters; for all of a short value.
#[must_use]
pub fn mask(value: &str) -> String {
    let length = value.chars().count();
    let shown = if length > 6 { 4 } else { 0 };
    let tail: String = value.chars().skip(length - shown).collect();
    format!("{}{tail}", "*".repeat(length - shown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_and_values_are_masked() {
        let nip = Declaration::read(include_str!("../../../rails/nip/rail.toml")).expect("valid");
        let redactor = Redactor::new(&nip);
        let recipient = RecipientFields([("account_number".into(), "0123456785".into())].into());
        let text = "<a:BankVerificationNumber x='1'>22212345678</a:BankVerificationNumber>\
                    <Narration>to 0123456785</Narration><Amount>10.00</Amount>";
        let masked = redactor.text(text, &recipient);
        assert_eq!(
            masked,
            "<a:BankVerificationNumber x='1'>*******5678</a:BankVerificationNumber>\
             <Narration>to ******6785</Narration><Amount>10.00</Amount>"
        );
        assert_eq!(redactor.fields(&recipient).get("account_number"), "******6785");
        assert_eq!((mask("123456"), mask("é")), ("******".into(), "*".into()));
    }

    #[test]
    fn values_are_masked_in_capitals_too() {
        let redactor = Redactor { elements: Vec::new(), sensitive: vec!["name".into()] };
        let recipient = RecipientFields([("name".into(), "Jose Tremblay".into())].into());
        let masked = redactor.text("C JOSE TREMBLAY, Jose Tremblay.", &recipient);
        assert_eq!(masked, "C *********BLAY, *********blay.");
    }

    #[test]
    fn secrets_are_masked_whatever_surrounds_them() {
        let redactor = Redactor { elements: vec!["pin".into()], sensitive: Vec::new() };
        for (text, masked) in [
            ("<pin>12345678</pin>", "<pin>****5678</pin>"),
            ("<x:pin a='>'>1</x:pin><pin >2</pin>", "<x:pin a='>'>*</x:pin><pin >*</pin>"),
            (r#"<pin a="x/>">12345678</pin>"#, r#"<pin a="x/>">****5678</pin>"#),
            ("<pin><a>1</a><b>12345</b></pin><c>1</c>", "<pin>********************</pin><c>1</c>"),
            ("<pin><![CDATA[12]]>1</pin>", "<pin>***************</pin>"),
            ("<pin>1234", "<pin>****"),
            ("<pin/><pine>1</pine><Pin>2</Pin>", "<pin/><pine>1</pine><Pin>2</Pin>"),
            (r#"{"pin":"12345678","a":"b"}"#, r#"{"pin":"****5678","a":"b"}"#),
            (r#"{"pin" : 12345678 , "a":[{"pin":1}]}"#, r#"{"pin" : ****5678 , "a":[{"pin":*}]}"#),
            (r#"{"pin":"1\"2345678"}"#, r#"{"pin":"**********"}"#),
            (r#"{"pin":"12"#, r#"{"pin":"**"#),
            (r#"{"pin":["1]","22"],"a":1}"#, r#"{"pin":***********,"a":1}"#),
            (r#"{"pin":{"a":{"b":"2"}},"c":1}"#, r#"{"pin":***************,"c":1}"#),
            (r#""pin" "pins":"1" <"#, r#""pin" "pins":"1" <"#),
        ] {
            assert_eq!(redactor.text(text, &RecipientFields::default()), masked, "{text}");
        }
    }

    #[test]
    fn what_is_named_beside_it_is_masked() {
        let redactor = Redactor { elements: vec!["Name".into()], sensitive: Vec::new() };
        for (text, masked) in [
            (
                r#"[{"Key":"Name","Value":"0712345612 - JOHN"},{"Key":"Other","Value":"1"}]"#,
                r#"[{"Key":"Name","Value":"*****************"},{"Key":"Other","Value":"1"}]"#,
            ),
            (r#"{"Value": "0712 \"x", "Key": "Name"}"#, r#"{"Value": "********", "Key": "Name"}"#),
            (r#"{"Key":"Name","Value":12345678}"#, r#"{"Key":"Name","Value":********}"#),
            (r#"{"Key":"Name","Value":"07123"#, r#"{"Key":"Name","Value":"*****"#),
            (r#"{"Key":"Named","Value":"1"}"#, r#"{"Key":"Named","Value":"1"}"#),
            (r#"["Name","x"] Name "Name", é"#, r#"["Name","x"] Name "Name", é"#),
        ] {
            assert_eq!(redactor.text(text, &RecipientFields::default()), masked, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn whatever_it_is_it_is_read_to_its_end(text in "[{}\"\\\\:, aNé]{0,60}") {
            let redactor = Redactor { elements: vec!["N".into()], sensitive: Vec::new() };
            let masked = redactor.text(&text, &RecipientFields::default());
            proptest::prop_assert_eq!(masked.chars().count(), text.chars().count());
        }


        #[test]
        fn nothing_but_secrets_changes(before in "[^<\"]*", secret in "[0-9]{7,20}", after in "[^<]*") {
            let redactor = Redactor { elements: vec!["pin".into()], sensitive: Vec::new() };
            let text = format!("{before}<n:pin>{secret}</n:pin>{after}");
            let masked = format!("{before}<n:pin>{}</n:pin>{}", mask(&secret), redactor.contents(&after));
            proptest::prop_assert_eq!(redactor.text(&text, &RecipientFields::default()), masked);
        }
    }
}
