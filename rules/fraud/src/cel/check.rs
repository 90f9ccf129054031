//! A syntax tree to a condition: names to places, every part to its type.

use std::sync::Arc;

use railhead_facts::{Type, nearest_of};

use super::syntax::{Form, Node, Operator};
use super::tree::{Arithmetic, Compare, Condition, Join, Text, Truth, Typed, Whole};
use super::{List, Mistake, Names, Param};

/// What a part of a condition can be. Lists and null are no values: they stand at one side of
/// certain operators only.
enum Part {
    Value(Typed),
    List(List),
    Null,
}

type Checked<T> = Result<T, Mistake>;

/// The whole, which must be a truth.
pub(super) fn condition(names: &Names, node: &Node) -> Checked<Condition> {
    match names.part(node)? {
        Part::Value(Typed::Truth(truth)) => Ok(Condition(truth)),
        other => {
            let message = format!(
                "the condition is {}; it must be a truth, such as a comparison",
                other.kind()
            );
            Err(Mistake::new(node.at, message))
        }
    }
}

impl Part {
    /// What it is, for messages.
    const fn kind(&self) -> &'static str {
        match self {
            Self::Value(Typed::Truth(_)) => "a truth",
            Self::Value(Typed::Whole(_)) => "a whole number",
            Self::Value(Typed::Text(_)) => "a text",
            Self::List(_) => "a list",
            Self::Null => "null",
        }
    }
}

impl Names {
    fn part(&self, node: &Node) -> Checked<Part> {
        Ok(Part::Value(match &node.form {
            Form::Null => return Ok(Part::Null),
            Form::List(items) => return self.list(items).map(Part::List),
            Form::Name(name) => return self.name(name, node.at),
            Form::Truth(truth) => Typed::Truth(Truth::Is(*truth)),
            Form::Whole(number) => Typed::Whole(Whole::Is(*number)),
            Form::Text(text) => Typed::Text(Text::Is(text.as_str().into())),
            Form::Not(inner) => Typed::Truth(Truth::Not(Box::new(self.truth(inner, "!")?))),
            Form::Negative(inner) => {
                Typed::Whole(Whole::Negative(Box::new(self.whole(inner, "-")?)))
            }
            Form::Operation(operator, sides) => self.operation(*operator, sides, node.at)?,
            Form::Choice(parts) => self.choice(parts)?,
            Form::Call(name, given) => self.call(name, given, node.at)?,
        }))
    }

    fn name(&self, name: &str, at: usize) -> Checked<Part> {
        if let Some(place) = self.facts.iter().position(|(fact, _)| fact == name) {
            return Ok(Part::Value(match self.facts.get(place).map(|(_, kind)| *kind) {
                Some(Type::Truth) => Typed::Truth(Truth::Fact(place)),
                Some(Type::Text) => Typed::Text(Text::Fact(place)),
                Some(Type::Whole) | None => Typed::Whole(Whole::Fact(place)),
            }));
        }
        if let Some(param) = self.params.get(name) {
            return Ok(Part::Value(match param {
                Param::Truth(truth) => Typed::Truth(Truth::Is(*truth)),
                Param::Whole(number) => Typed::Whole(Whole::Is(*number)),
                Param::Text(text) => Typed::Text(Text::Is(text.clone())),
            }));
        }
        if let Some(list) = self.lists.get(name) {
            return Ok(Part::List(list.clone()));
        }
        Err(Mistake::new(at, self.unknown(name)))
    }

    fn unknown(&self, name: &str) -> String {
        if railhead_facts::type_of(name).is_some() {
            return format!("`{name}` is a fact that [pack].facts does not list; add it there");
        }
        let facts = self.facts.iter().map(|(name, _)| name.as_str());
        let known = facts.chain(self.params.keys().chain(self.lists.keys()).map(String::as_str));
        let known: Vec<&str> = known.collect();
        if let Some(near) = nearest_of(name, known.iter().copied()) {
            return format!("nothing is called `{name}`; is `{near}` meant?");
        }
        if let Some(near) = railhead_facts::nearest(name) {
            return format!(
                "nothing is called `{name}`; is the fact `{near}` meant? Then add it to [pack].facts"
            );
        }
        format!("nothing is called `{name}`; the names here are {}", known.join(", "))
    }

    fn operation(&self, operator: Operator, sides: &[Node; 2], at: usize) -> Checked<Typed> {
        let [left, right] = sides;
        let arithmetic = match operator {
            Operator::And | Operator::Or => {
                let sign = operator.sign();
                let sides = Box::new([self.truth(left, sign)?, self.truth(right, sign)?]);
                let join = if operator == Operator::And { Join::And } else { Join::Or };
                return Ok(Typed::Truth(Truth::Joined(sides, join)));
            }
            Operator::In => return self.looked_in(left, right).map(Typed::Truth),
            Operator::Equal => return self.compare(Compare::Equal, operator, sides, at),
            Operator::Unequal => return self.compare(Compare::Unequal, operator, sides, at),
            Operator::Less => return self.compare(Compare::Less, operator, sides, at),
            Operator::LessEqual => return self.compare(Compare::LessEqual, operator, sides, at),
            Operator::Greater => return self.compare(Compare::Greater, operator, sides, at),
            Operator::GreaterEqual => {
                return self.compare(Compare::GreaterEqual, operator, sides, at);
            }
            Operator::Add => Arithmetic::Add,
            Operator::Subtract => Arithmetic::Subtract,
            Operator::Multiply => Arithmetic::Multiply,
            Operator::Divide => Arithmetic::Divide,
            Operator::Remainder => Arithmetic::Remainder,
        };
        let sign = operator.sign();
        let sides = Box::new([self.whole(left, sign)?, self.whole(right, sign)?]);
        Ok(Typed::Whole(Whole::Arithmetic(sides, arithmetic)))
    }

    fn compare(
        &self,
        compare: Compare,
        operator: Operator,
        sides: &[Node; 2],
        at: usize,
    ) -> Checked<Typed> {
        let [left, right] = sides;
        let equality = matches!(compare, Compare::Equal | Compare::Unequal);
        let truth = match (self.part(left)?, self.part(right)?) {
            (Part::Value(value), Part::Null) | (Part::Null, Part::Value(value)) if equality => {
                let absent = Truth::Absent(Box::new(value));
                match compare {
                    Compare::Equal => absent,
                    _ => Truth::Not(Box::new(absent)),
                }
            }
            (Part::Value(Typed::Truth(left)), Part::Value(Typed::Truth(right))) if equality => {
                Truth::Same(Box::new([left, right]), compare)
            }
            (Part::Value(Typed::Whole(left)), Part::Value(Typed::Whole(right))) => {
                Truth::Wholes(Box::new([left, right]), compare)
            }
            (Part::Value(Typed::Text(left)), Part::Value(Typed::Text(right))) => {
                Truth::Texts(Box::new([left, right]), compare)
            }
            (Part::Value(Typed::Truth(_)), Part::Value(Typed::Whole(_) | Typed::Text(_)))
                if !equality =>
            {
                let message = "comparisons do not chain; write `low < x && x < high`";
                return Err(Mistake::new(at, message));
            }
            (left, right) => {
                let message = format!(
                    "`{}` cannot compare {} with {}",
                    operator.sign(),
                    left.kind(),
                    right.kind()
                );
                return Err(Mistake::new(at, message));
            }
        };
        Ok(Typed::Truth(truth))
    }

    fn looked_in(&self, item: &Node, list: &Node) -> Checked<Truth> {
        let found = self.part(list)?;
        let Part::List(listed) = found else {
            let message = format!(
                "`in` looks in a list, and this is {}; for a part of a text write \
                 `text.contains(part)`",
                found.kind()
            );
            return Err(Mistake::new(list.at, message));
        };
        match (self.part(item)?, listed) {
            (Part::Value(Typed::Whole(item)), List::Whole(list)) => {
                Ok(Truth::WholeIn(Box::new(item), list))
            }
            (Part::Value(Typed::Text(item)), List::Text(list)) => {
                Ok(Truth::TextIn(Box::new(item), list))
            }
            // The item is worked out all the same: emptying a list must not hide a fault.
            (Part::Value(Typed::Whole(item)), List::Empty) => {
                Ok(Truth::WholeIn(Box::new(item), Arc::new([])))
            }
            (Part::Value(Typed::Text(item)), List::Empty) => {
                Ok(Truth::TextIn(Box::new(item), Arc::new([])))
            }
            (item_part, list) => {
                let of = match list {
                    List::Whole(_) => "a list of whole numbers",
                    List::Text(_) => "a list of texts",
                    List::Empty => "a list",
                };
                let message = format!("{} cannot be in {of}", item_part.kind());
                Err(Mistake::new(item.at, message))
            }
        }
    }

    /// A list as it is written in a condition.
    fn list(&self, items: &[Node]) -> Checked<List> {
        let (mut wholes, mut texts) = (Vec::new(), Vec::new());
        for item in items {
            match self.part(item)? {
                Part::Value(Typed::Whole(Whole::Is(number))) => wholes.push(number),
                Part::Value(Typed::Text(Text::Is(text))) => texts.push(text),
                _ => {
                    let message = "a list holds whole numbers or texts that are known beforehand; \
                                   use || for anything else";
                    return Err(Mistake::new(item.at, message));
                }
            }
            if !wholes.is_empty() && !texts.is_empty() {
                let message = "a list holds either whole numbers or texts";
                return Err(Mistake::new(item.at, message));
            }
        }
        Ok(if texts.is_empty() { List::of_whole(wholes) } else { List::of_texts(texts) })
    }

    fn choice(&self, parts: &[Node; 3]) -> Checked<Typed> {
        let [condition, one, other] = parts;
        let condition = self.truth(condition, "?")?;
        match (self.part(one)?, self.part(other)?) {
            (Part::Value(Typed::Truth(one)), Part::Value(Typed::Truth(other))) => {
                Ok(Typed::Truth(Truth::Choice(Box::new([condition, one, other]))))
            }
            (Part::Value(Typed::Whole(one)), Part::Value(Typed::Whole(other))) => {
                Ok(Typed::Whole(Whole::Choice(Box::new(condition), Box::new([one, other]))))
            }
            (Part::Value(Typed::Text(one)), Part::Value(Typed::Text(other))) => {
                Ok(Typed::Text(Text::Choice(Box::new(condition), Box::new([one, other]))))
            }
            (one_part, other_part) => {
                let message = format!(
                    "both sides of `:` must be of one type, and neither a list nor null; these \
                     are {} and {}",
                    one_part.kind(),
                    other_part.kind()
                );
                Err(Mistake::new(other.at, message))
            }
        }
    }

    fn call(&self, name: &str, given: &[Node], at: usize) -> Checked<Typed> {
        let compare = match name {
            "size" => return self.size(given, at).map(Typed::Whole),
            "startsWith" => Compare::StartsWith,
            "endsWith" => Compare::EndsWith,
            "contains" => Compare::Contains,
            _ => return Err(Mistake::new(at, not_offered(name))),
        };
        let [text, part] = given else {
            let message = format!("write `text.{name}(part)`, with one text in the parentheses");
            return Err(Mistake::new(at, message));
        };
        let sides = Box::new([self.text(text, name)?, self.text(part, name)?]);
        Ok(Typed::Truth(Truth::Texts(sides, compare)))
    }

    fn size(&self, given: &[Node], at: usize) -> Checked<Whole> {
        let [node] = given else {
            return Err(Mistake::new(at, "write `size(x)` or `x.size()`"));
        };
        match self.part(node)? {
            Part::Value(Typed::Text(text)) => Ok(Whole::Size(Box::new(text))),
            Part::List(list) => Ok(Whole::Is(i64::try_from(list.len()).unwrap_or(i64::MAX))),
            other => {
                let message = format!("only texts and lists have a size; this is {}", other.kind());
                Err(Mistake::new(node.at, message))
            }
        }
    }

    fn truth(&self, node: &Node, operator: &str) -> Checked<Truth> {
        match self.part(node)? {
            Part::Value(Typed::Truth(truth)) => Ok(truth),
            other => Err(wrong("truths", operator, &other, node.at)),
        }
    }

    fn whole(&self, node: &Node, operator: &str) -> Checked<Whole> {
        match self.part(node)? {
            Part::Value(Typed::Whole(whole)) => Ok(whole),
            other => Err(wrong("whole numbers", operator, &other, node.at)),
        }
    }

    fn text(&self, node: &Node, operator: &str) -> Checked<Text> {
        match self.part(node)? {
            Part::Value(Typed::Text(text)) => Ok(text),
            other => Err(wrong("texts", operator, &other, node.at)),
        }
    }
}

fn wrong(needed: &str, operator: &str, found: &Part, at: usize) -> Mistake {
    Mistake::new(at, format!("`{operator}` works with {needed}; this is {}", found.kind()))
}

/// What to do instead of a function that CEL has and this part of it has not.
fn not_offered(name: &str) -> String {
    let instead = match name {
        "has" => "ask `fact != null`",
        "all" | "exists" | "exists_one" | "map" | "filter" => "look in lists with `x in list`",
        "matches" => "use startsWith, endsWith, contains or a list",
        "int" | "uint" | "double" | "string" | "bool" | "bytes" | "dyn" | "type" => {
            "facts, params and lists have their types already"
        }
        "timestamp" | "duration" | "getFullYear" | "getMonth" | "getDate" | "getDayOfMonth"
        | "getDayOfWeek" | "getDayOfYear" | "getHours" | "getMinutes" | "getSeconds"
        | "getMilliseconds" => "time comes as the facts hour, weekday and those that end in _age_s",
        _ => "the functions here are startsWith, endsWith, contains and size",
    };
    format!("the function `{name}` is not offered; {instead}")
}
