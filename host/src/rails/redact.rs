//! Masking what must not be read in records and logs.

use std::borrow::Cow;
use std::ops::Range;

use super::declaration::Declaration;
use super::fields::RecipientFields;

/// Bytes that are read beyond what is kept, to tell whether something secret lies across the cut.
const BEYOND: usize = 4 * 1024;

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
    /// keys of JSON, and the recipient's sensitive values wherever they stand. It takes as long as
    /// the text is, whatever is in it.
    #[must_use]
    pub fn text(&self, text: &str, recipient: &RecipientFields) -> String {
        self.values(self.contents(text).masked(), recipient)
    }

    /// What is kept of a message: its first bytes, with everything masked that is masked in all of
    /// it. One that is longer says at its end how long it was.
    #[must_use]
    pub fn beginning(&self, message: &[u8], most: usize, recipient: &RecipientFields) -> String {
        if message.len() <= most {
            return self.text(&String::from_utf8_lossy(message), recipient);
        }
        let longest = self.sensitive.iter().map(|name| recipient.get(name).len()).max();
        let read = message.len().min(most + BEYOND + longest.unwrap_or(0));
        let text = String::from_utf8_lossy(&message[..read]);
        // Half a character ends no name.
        let text = text.trim_end_matches(char::REPLACEMENT_CHARACTER);
        let mut pass = self.contents(text);
        if read < message.len() {
            self.cover_open_object(&mut pass, text.len());
        }
        let masked = self.values(pass.masked(), recipient);
        // Every character is masked by one star: as many are kept as stood in the first bytes.
        let kept = String::from_utf8_lossy(&message[..most]).chars().count();
        let kept: String = masked.chars().take(kept).collect();
        format!("{kept} [cut off: {} bytes in all]", message.len())
    }

    /// The recipient's sensitive values masked, wherever they stand.
    fn values(&self, mut masked: Cow<'_, str>, recipient: &RecipientFields) -> String {
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
    fn contents<'a>(&self, text: &'a str) -> Pass<'a> {
        let (mut pass, mut at) = (Pass::over(text), 0);
        while let Some(found) = memchr::memchr2(b'<', b'"', &text.as_bytes()[at..]) {
            at += found + 1;
            let rest = &text[at..];
            let secret = match text.as_bytes()[at - 1] {
                b'<' => self.element(rest),
                _ => self.value(rest),
            };
            if let Some(secret) = secret {
                let secret = at + secret.start..at + secret.end;
                if secret.end < text.len() {
                    pass.cover(secret, covered);
                } else {
                    // It may be cut off: what stands last in it is not its end.
                    self.cover_open_object(&mut pass, secret.start);
                    pass.cover(secret, covered_whole);
                }
                at = pass.copied;
            } else if let Some(pair) = self.pair(&mut pass, at) {
                let from = pair.start.max(pass.copied);
                pass.cover(from..pair.end, |object| self.pair_covered(object));
                at = pass.copied;
            }
        }
        pass
    }

    /// The text is unknown from `at` on. The object that is open there may name a secret behind
    /// `at` whose value stands before it: its values are covered.
    fn cover_open_object(&self, pass: &mut Pass<'_>, at: usize) {
        let object = pass.last_object(at).filter(|object| object.end >= at);
        if let Some(object) = object.filter(|_| !self.elements.is_empty()) {
            let from = object.start.max(pass.copied);
            pass.cover(from..at, |object| self.pair_covered(object));
        }
    }

    /// Where the contents of a secret element are, after its `<`: all that is between its tags,
    /// whatever that is. An element that is cut off reaches to the end of the text, and so does one
    /// whose opening tag has no end.
    fn element(&self, rest: &str) -> Option<Range<usize>> {
        let (name, after) = tag_name(rest)?;
        if !self.elements.iter().any(|known| known == name) {
            return None;
        }
        let from = rest.len() - after.len();
        let Some(length) = end_of_tag(after) else { return Some(from..rest.len()) };
        let start = from + length;
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
    fn pair(&self, pass: &mut Pass<'_>, at: usize) -> Option<Range<usize>> {
        let (text, rest) = (pass.text, &pass.text[at..]);
        let after = self.elements.iter().find_map(|known| {
            rest.strip_prefix(known.as_str()).and_then(|after| after.strip_prefix('"'))
        })?;
        if text.as_bytes()[at - 1] != b'"' || !after.trim_start().starts_with([',', '}']) {
            return None;
        }
        pass.last_object(at).filter(|object| object.end > at)
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
            // What is cut off may be longer than a name that it begins with.
            let is_whole = end < rest.len();
            match is_whole && self.elements.iter().any(|known| *known == rest[start..end]) {
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
            masked.change(name, mask);
        }
        masked
    }
}

/// How far a text has come on its way to being masked.
struct Pass<'a> {
    text: &'a str,
    masked: String,
    /// So much of the text stands in `masked`.
    copied: usize,
    /// So much of it was searched for the beginnings of objects.
    searched: usize,
    /// The last object that begins there.
    object: Option<Range<usize>>,
}

impl<'a> Pass<'a> {
    const fn over(text: &'a str) -> Self {
        Self { text, masked: String::new(), copied: 0, searched: 0, object: None }
    }

    /// Copies what stands before a part of the text, and the part as it is shown.
    fn cover(&mut self, part: Range<usize>, shown: impl Fn(&str) -> String) {
        let Range { start, end } = part;
        self.masked.push_str(&self.text[self.copied..start]);
        self.masked.push_str(&shown(&self.text[start..end]));
        self.copied = end;
    }

    /// The object of JSON that is the last one to begin before a place. Places are asked for in
    /// their order, so that no part of the text is searched twice, and no object read twice.
    fn last_object(&mut self, at: usize) -> Option<Range<usize>> {
        if let Some(found) = self.text[self.searched..at].rfind('{') {
            let start = self.searched + found;
            self.object = Some(start..start + end_of_value(&self.text[start..]));
        }
        self.searched = at;
        self.object.clone()
    }

    /// All of it: what was not covered as it is.
    fn masked(mut self) -> Cow<'a, str> {
        if self.copied == 0 {
            return self.text.into();
        }
        self.masked.push_str(&self.text[self.copied..]);
        self.masked.into()
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

/// How long the rest of an opening tag is, up to its `>`; one within an attribute is not that. XML
/// has no `<` in a tag, not even in an attribute: a tag with one in it has no end.
fn end_of_tag(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (_, '<') => return None,
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
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn elements_and_values_are_masked() {
        let nip = Declaration::read(include_str!("../../../rails/nip/rail.toml")).expect("valid");
        let redactor = Redactor::new(&nip);
        let recipient =
            RecipientFields::from(BTreeMap::from([("account_number".into(), "0123456785".into())]));
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
        let recipient =
            RecipientFields::from(BTreeMap::from([("name".into(), "Jose Tremblay".into())]));
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
            ("<a>1</a><pin>12345678", "<a>1</a><pin>********"),
            ("<pin 12345678", "<pin*********"),
            (r#"<pin a="1>12345678"#, "<pin**************"),
            ("<pin a='<b'/><c>1</c>", "<pin*****************"),
            (r#"{"a":"1","b":"2 <pin 3"}"#, r#"{"a":"*","b":"**********"#),
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

    #[test]
    fn a_long_text_shows_nothing_however_often_a_secret_begins_in_it() {
        let redactor = Redactor { elements: vec!["pin".into()], sensitive: Vec::new() };
        let masked = |text: &str| redactor.text(text, &RecipientFields::default());
        for tags in ["<pin ".repeat(200_000), "<pin \"".repeat(200_000), "<pin '\"".repeat(200_000)]
        {
            for tags in [format!("{tags}/>"), tags] {
                assert!(masked(&tags) == format!("<pin{}", "*".repeat(tags.len() - 4)));
            }
        }
        // Names alone are none.
        let names = r#""pin","#.repeat(200_000);
        assert!(masked(&names) == names);
        let closed = format!("{{{}}}{names}", "x".repeat(200_000));
        assert!(masked(&closed) == closed);
        let open = format!(r#"{{"a":"12345678",{names}"#);
        assert!(masked(&open) == format!(r#"{{"a":"********",{names}"#));
    }

    #[test]
    fn of_a_long_message_the_beginning_is_kept_and_nothing_of_a_secret_across_the_cut() {
        let elements = vec!["pin".into(), "Name".into()];
        let redactor = Redactor { elements, sensitive: vec!["account".into()] };
        let recipient =
            RecipientFields::from(BTreeMap::from([("account".into(), "0123456785".into())]));
        let long = "x".repeat(2 * BEYOND);
        for (message, most, kept) in [
            (format!("<a>1</a><pin>12345678</pin>{long}"), 15, "<a>1</a><pin>**"),
            (format!("<a>1</a><pin>12345678{long}"), 15, "<a>1</a><pin>**"),
            (format!("<pin>12345678</pin>{long}"), 11, "<pin>****56"),
            (format!("to 0123456785 {long}"), 10, "to ******6"),
            (format!("<pin a='{long}'>1</pin>"), 10, "<pin******"),
            (format!(r#"{{"pin":"12345678{long}"}}"#), 12, r#"{"pin":"****"#),
            // What it is may be said far behind it.
            (
                format!(r#"{{"a":"12345678","b":"{long}","c":"Name"}}"#),
                20,
                r#"{"a":"********","b":"#,
            ),
            (format!(r#"{{"a":"Names {long}","c":"Name"}}"#), 10, r#"{"a":"****"#),
            (format!(r#"{{"a":{{"b":"12345678"}}}}{long}"#), 12, r#"{"a":{"b":"1"#),
            (format!("éé{long}"), 3, "éé"),
        ] {
            let shown = redactor.beginning(message.as_bytes(), most, &recipient);
            let length = message.len();
            assert_eq!(shown, format!("{kept} [cut off: {length} bytes in all]"), "{message:.40}");
            assert_eq!(
                redactor.beginning(message.as_bytes(), length, &recipient),
                redactor.text(&message, &recipient)
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_kept_of_it_is_how_all_of_it_begins(
            text in "[{}\"\\\\:, <>/aNé]{1,60}",
            most in 0_usize..60,
        ) {
            let redactor = Redactor { elements: vec!["N".into()], sensitive: Vec::new() };
            let all = redactor.text(&text, &RecipientFields::default());
            let kept = redactor.beginning(text.as_bytes(), most, &RecipientFields::default());
            proptest::prop_assert!(all.starts_with(kept.split(" [").next().unwrap_or_default()));
        }

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
            let after = redactor.contents(&after).masked();
            let masked = format!("{before}<n:pin>{}</n:pin>{after}", mask(&secret));
            proptest::prop_assert_eq!(redactor.text(&text, &RecipientFields::default()), masked);
        }
    }
}
