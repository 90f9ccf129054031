//! The rules as people write them, and as they are decided by.

use railhead_facts::{Type, nearest, type_of};
use railhead_rule::{Action, Problem};
use serde::Deserialize;

use crate::cel::{self, Condition, List, Names, Param};

/// Every rule is looked at for every payout.
pub const RULES_MAX: usize = 1_000;
/// In bytes, also of what merchants read. Reasons are read by people who have many payouts to look at.
pub const REASON_BYTES_MAX: usize = 500;
/// Of one list. What is longer belongs into a fact.
pub const LIST_ITEMS_MAX: usize = 20_000;
const NAME_BYTES_MAX: usize = 64;

/// Rules that were read and checked.
#[derive(Clone, Debug)]
pub struct Rules {
    facts: Vec<(String, Type)>,
    rules: Vec<Rule>,
}

/// One rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Its name, in verdicts and statistics.
    pub label: String,
    /// Which payouts it matches.
    pub when: Condition,
    /// What it asks for.
    pub action: Action,
    /// Why, for the one who decides about a held payout.
    pub reason: String,
    /// What the merchant reads instead, if not the host's neutral words.
    pub public: Option<String>,
}

/// The file. What only the host reads is kept as it is.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "manifest")]
    _manifest: i64,
    pack: Head,
    #[serde(default)]
    params: toml::Table,
    #[serde(default)]
    lists: toml::Table,
    #[serde(default)]
    rule: Vec<Written>,
}

#[derive(Deserialize)]
struct Head {
    facts: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    label: String,
    when: String,
    action: String,
    reason: String,
    public: Option<String>,
}

impl Rules {
    /// Reads and checks the rules.
    ///
    /// # Errors
    /// Everything that is wrong, each with its place; in a condition its first mistake.
    pub fn read(text: &str) -> Result<Self, Vec<Problem>> {
        let file: File = toml::from_str(text)
            .map_err(|cause| vec![Problem::new("rules.toml", cause.to_string())])?;
        let mut problems = Vec::new();
        let names = names(&file, &mut problems);
        // Conditions that use a name with a problem of its own would only repeat it.
        if !problems.is_empty() {
            return Err(problems);
        }
        if file.rule.len() > RULES_MAX {
            let message = format!("has {} rules; at most {RULES_MAX} are read", file.rule.len());
            return Err(vec![Problem::new("rule", message)]);
        }
        let mut rules: Vec<Rule> = Vec::with_capacity(file.rule.len());
        let mut labels = std::collections::BTreeSet::new();
        for (index, written) in file.rule.into_iter().enumerate() {
            let at = format!("rule[{index}]");
            if !labels.insert(written.label.clone()) {
                let message = format!("`{}` is the label of an earlier rule", written.label);
                problems.push(Problem::new(format!("{at}.label"), message));
            }
            rules.extend(written.check(&at, &names, &mut problems));
        }
        match problems.is_empty() {
            true => Ok(Self { facts: names.facts, rules }),
            false => Err(problems),
        }
    }

    /// The facts that conditions know, in the order in which they are declared.
    #[must_use]
    pub fn facts(&self) -> &[(String, Type)] {
        &self.facts
    }

    /// The rules in their order.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }
}

impl Written {
    fn check(self, at: &str, names: &Names, problems: &mut Vec<Problem>) -> Option<Rule> {
        let before = problems.len();
        let mut wrong = |part: &str, message: String| {
            problems.push(Problem::new(format!("{at}.{part}"), message));
        };
        let is_plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
        if !(1..=NAME_BYTES_MAX).contains(&self.label.len()) || !self.label.bytes().all(is_plain) {
            wrong("label", "must be 1 to 64 of a-z, 0-9 and _".into());
        }
        let action = match self.action.as_str() {
            "allow" => Some(Action::Allow),
            "hold" => Some(Action::Hold),
            "block" => Some(Action::Block),
            _ => None,
        };
        if action.is_none() {
            wrong("action", format!("must be allow, hold or block, not `{}`", self.action));
        }
        let texts = [("reason", Some(&self.reason)), ("public", self.public.as_ref())];
        for (part, text) in texts {
            if text.is_some_and(|text| text.trim().is_empty() || text.len() > REASON_BYTES_MAX) {
                wrong(part, format!("must be a string of at most {REASON_BYTES_MAX} bytes"));
            }
        }
        let when = cel::compile(&self.when, names)
            .map_err(|mistake| wrong("when", format!("{}: {mistake}", self.label)));
        let is_right = problems.len() == before;
        let (when, action) = when.ok().zip(action).filter(|_| is_right)?;
        let Self { label, reason, public, .. } = self;
        Some(Rule { label, when, action, reason, public })
    }
}

/// What the file's names stand for.
fn names(file: &File, problems: &mut Vec<Problem>) -> Names {
    let mut names = Names::default();
    for (index, name) in file.pack.facts.iter().enumerate() {
        let at = format!("pack.facts[{index}]");
        match type_of(name) {
            _ if names.facts.iter().any(|(earlier, _)| earlier == name) => {
                problems.push(Problem::new(at, format!("`{name}` is listed twice")));
            }
            Some(kind) => names.facts.push((name.clone(), kind)),
            None => {
                let near = nearest(name).map(|near| format!("; is `{near}` meant?"));
                let message =
                    format!("the host offers no fact `{name}`{}", near.unwrap_or_default());
                problems.push(Problem::new(at, message));
            }
        }
    }
    for (name, value) in &file.params {
        let at = format!("params.{name}");
        problems.extend(unfit(name).map(|message| Problem::new(at.clone(), message)));
        match param(value) {
            Some(param) => drop(names.params.insert(name.clone(), param)),
            None => problems.push(Problem::new(at, "must be an int, a string or a bool")),
        }
    }
    for (name, value) in &file.lists {
        let at = format!("lists.{name}");
        problems.extend(unfit(name).map(|message| Problem::new(at.clone(), message)));
        if names.params.contains_key(name) {
            problems.push(Problem::new(at.clone(), "is the name of a param already"));
        }
        match list(value) {
            Ok(list) => drop(names.lists.insert(name.clone(), list)),
            Err(message) => problems.push(Problem::new(at, message)),
        }
    }
    names
}

/// Why conditions cannot use this name.
fn unfit(name: &str) -> Option<&'static str> {
    let is_plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
    let starts_well = !name.starts_with(|first: char| first.is_ascii_digit());
    if !(1..=NAME_BYTES_MAX).contains(&name.len()) || !name.bytes().all(is_plain) || !starts_well {
        return Some("names are 1 to 64 of a-z, 0-9 and _, and do not start with a digit");
    }
    if type_of(name).is_some() {
        return Some("is the name of a fact");
    }
    cel::RESERVED.contains(&name).then_some("is a word that CEL keeps for itself")
}

fn param(value: &toml::Value) -> Option<Param> {
    match value {
        toml::Value::Boolean(value) => Some(Param::Bool(*value)),
        toml::Value::Integer(number) => Some(Param::Int(*number)),
        toml::Value::String(text) => Some(Param::String(text.as_str().into())),
        _ => None,
    }
}

fn list(value: &toml::Value) -> Result<List, String> {
    let items = value.as_array().ok_or("must be a list of strings or of ints")?;
    if items.len() > LIST_ITEMS_MAX {
        return Err(format!("has {} items; at most {LIST_ITEMS_MAX} are read", items.len()));
    }
    let strings: Option<Vec<Box<str>>> =
        items.iter().map(|item| item.as_str().map(Into::into)).collect();
    let ints: Option<Vec<i64>> = items.iter().map(toml::Value::as_integer).collect();
    match (strings, ints) {
        (Some(strings), _) => Ok(List::of_strings(strings)),
        (None, Some(ints)) => Ok(List::of_ints(ints)),
        (None, None) => Err("must hold strings only or ints only".into()),
    }
}
