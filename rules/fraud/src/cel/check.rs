//! A syntax tree to a condition: names to places, every part to its type.

use std::sync::Arc;

use railhead_facts::{Type, nearest_of};

use super::syntax::{Form, Node, Operator};
use super::tree::{Arithmetic, BoolExpr, Compare, Condition, IntExpr, Join, StringExpr, Typed};
use super::{List, Mistake, Names, Param};

/// What a part of a condition can be. Lists and null are no values: they stand at one side of
/// certain operators only.
enum Part {
    Value(Typed),
    List(List),
    Null,
}

type Checked<T> = Result<T, Mistake>;

/// A whole condition, which must be a bool.
pub(super) fn condition(names: &Names, node: &Node) -> Checked<Condition> {
    match names.part(node)? {
        Part::Value(Typed::Bool(condition)) => Ok(Condition(condition)),
        other => {
            let message = format!(
                "the condition is {}; it must be a bool, such as a comparison",
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
            Self::Value(Typed::Bool(_)) => "a bool",
            Self::Value(Typed::Int(_)) => "an int",
            Self::Value(Typed::String(_)) => "a string",
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
            Form::Bool(value) => Typed::Bool(BoolExpr::Is(*value)),
            Form::Int(number) => Typed::Int(IntExpr::Is(*number)),
            Form::String(text) => Typed::String(StringExpr::Is(text.as_str().into())),
            Form::Not(inner) => Typed::Bool(BoolExpr::Not(Box::new(self.bool(inner, "!")?))),
            Form::Negative(inner) => Typed::Int(IntExpr::Negative(Box::new(self.int(inner, "-")?))),
            Form::Operation(operator, sides) => self.operation(*operator, sides, node.at)?,
            Form::Choice(parts) => self.choice(parts)?,
            Form::Call(name, given) => self.call(name, given, node.at)?,
        }))
    }

    fn name(&self, name: &str, at: usize) -> Checked<Part> {
        if let Some(place) = self.facts.iter().position(|(fact, _)| fact == name) {
            return Ok(Part::Value(match self.facts.get(place).map(|(_, kind)| *kind) {
                Some(Type::Bool) => Typed::Bool(BoolExpr::Fact(place)),
                Some(Type::String) => Typed::String(StringExpr::Fact(place)),
                Some(Type::Int) | None => Typed::Int(IntExpr::Fact(place)),
            }));
        }
        if let Some(param) = self.params.get(name) {
            return Ok(Part::Value(match param {
                Param::Bool(value) => Typed::Bool(BoolExpr::Is(*value)),
                Param::Int(number) => Typed::Int(IntExpr::Is(*number)),
                Param::String(text) => Typed::String(StringExpr::Is(text.clone())),
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
                let sides = [self.bool(left, sign)?, self.bool(right, sign)?];
                let join = if operator == Operator::And { Join::And } else { Join::Or };
                return Ok(Typed::Bool(BoolExpr::joined(sides, join)));
            }
            Operator::In => return self.looked_in(left, right).map(Typed::Bool),
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
        let sides = Box::new([self.int(left, sign)?, self.int(right, sign)?]);
        Ok(Typed::Int(IntExpr::Arithmetic(sides, arithmetic)))
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
        let comparison = match (self.part(left)?, self.part(right)?) {
            (Part::Value(value), Part::Null) | (Part::Null, Part::Value(value)) if equality => {
                let absent = BoolExpr::Absent(Box::new(value));
                match compare {
                    Compare::Equal => absent,
                    _ => BoolExpr::Not(Box::new(absent)),
                }
            }
            (Part::Value(Typed::Bool(left)), Part::Value(Typed::Bool(right))) if equality => {
                BoolExpr::Same(Box::new([left, right]), compare)
            }
            (Part::Value(Typed::Int(left)), Part::Value(Typed::Int(right))) => {
                BoolExpr::ints([left, right], compare)
            }
            (Part::Value(Typed::String(left)), Part::Value(Typed::String(right))) => {
                BoolExpr::strings([left, right], compare)
            }
            (Part::Value(Typed::Bool(_)), Part::Value(Typed::Int(_) | Typed::String(_)))
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
        Ok(Typed::Bool(comparison))
    }

    fn looked_in(&self, item: &Node, list: &Node) -> Checked<BoolExpr> {
        let found = self.part(list)?;
        let Part::List(listed) = found else {
            let message = format!(
                "`in` looks in a list, and this is {}; for a part of a string write \
                 `string.contains(part)`",
                found.kind()
            );
            return Err(Mistake::new(list.at, message));
        };
        match (self.part(item)?, listed) {
            (Part::Value(Typed::Int(item)), List::Int(list)) => {
                Ok(BoolExpr::IntIn(Box::new(item), list))
            }
            (Part::Value(Typed::String(item)), List::String(list)) => {
                Ok(BoolExpr::StringIn(Box::new(item), list))
            }
            // The item is worked out all the same: emptying a list must not hide a fault.
            (Part::Value(Typed::Int(item)), List::Empty) => {
                Ok(BoolExpr::IntIn(Box::new(item), Arc::new([])))
            }
            (Part::Value(Typed::String(item)), List::Empty) => {
                Ok(BoolExpr::StringIn(Box::new(item), Arc::new([])))
            }
            (item_part, list) => {
                let of = match list {
                    List::Int(_) => "a list of ints",
                    List::String(_) => "a list of strings",
                    List::Empty => "a list",
                };
                let message = format!("{} cannot be in {of}", item_part.kind());
                Err(Mistake::new(item.at, message))
            }
        }
    }

    /// A list as it is written in a condition.
    fn list(&self, items: &[Node]) -> Checked<List> {
        let (mut ints, mut strings) = (Vec::new(), Vec::new());
        for item in items {
            match self.part(item)? {
                Part::Value(Typed::Int(IntExpr::Is(number))) => ints.push(number),
                Part::Value(Typed::String(StringExpr::Is(text))) => strings.push(text),
                _ => {
                    let message = "a list holds ints or strings that are known beforehand; \
                                   use || for anything else";
                    return Err(Mistake::new(item.at, message));
                }
            }
            if !ints.is_empty() && !strings.is_empty() {
                let message = "a list holds either ints or strings";
                return Err(Mistake::new(item.at, message));
            }
        }
        Ok(if strings.is_empty() { List::of_ints(ints) } else { List::of_strings(strings) })
    }

    fn choice(&self, parts: &[Node; 3]) -> Checked<Typed> {
        let [condition, one, other] = parts;
        let condition = self.bool(condition, "?")?;
        match (self.part(one)?, self.part(other)?) {
            (Part::Value(Typed::Bool(one)), Part::Value(Typed::Bool(other))) => {
                Ok(Typed::Bool(BoolExpr::Choice(Box::new([condition, one, other]))))
            }
            (Part::Value(Typed::Int(one)), Part::Value(Typed::Int(other))) => {
                Ok(Typed::Int(IntExpr::Choice(Box::new(condition), Box::new([one, other]))))
            }
            (Part::Value(Typed::String(one)), Part::Value(Typed::String(other))) => {
                Ok(Typed::String(StringExpr::Choice(Box::new(condition), Box::new([one, other]))))
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
            "size" => return self.size(given, at).map(Typed::Int),
            "startsWith" => Compare::StartsWith,
            "endsWith" => Compare::EndsWith,
            "contains" => Compare::Contains,
            _ => return Err(Mistake::new(at, not_offered(name))),
        };
        let [text, part] = given else {
            let message =
                format!("write `string.{name}(part)`, with one string in the parentheses");
            return Err(Mistake::new(at, message));
        };
        let sides = [self.string(text, name)?, self.string(part, name)?];
        Ok(Typed::Bool(BoolExpr::strings(sides, compare)))
    }

    fn size(&self, given: &[Node], at: usize) -> Checked<IntExpr> {
        let [node] = given else {
            return Err(Mistake::new(at, "write `size(x)` or `x.size()`"));
        };
        match self.part(node)? {
            Part::Value(Typed::String(text)) => Ok(IntExpr::Size(Box::new(text))),
            Part::List(list) => Ok(IntExpr::Is(i64::try_from(list.len()).unwrap_or(i64::MAX))),
            other => {
                let message =
                    format!("only strings and lists have a size; this is {}", other.kind());
                Err(Mistake::new(node.at, message))
            }
        }
    }

    fn bool(&self, node: &Node, operator: &str) -> Checked<BoolExpr> {
        match self.part(node)? {
            Part::Value(Typed::Bool(value)) => Ok(value),
            other => Err(wrong("bools", operator, &other, node.at)),
        }
    }

    fn int(&self, node: &Node, operator: &str) -> Checked<IntExpr> {
        match self.part(node)? {
            Part::Value(Typed::Int(value)) => Ok(value),
            other => Err(wrong("ints", operator, &other, node.at)),
        }
    }

    fn string(&self, node: &Node, operator: &str) -> Checked<StringExpr> {
        match self.part(node)? {
            Part::Value(Typed::String(value)) => Ok(value),
            other => Err(wrong("strings", operator, &other, node.at)),
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
