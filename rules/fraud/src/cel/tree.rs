//! Conditions that are ready to be worked out: every part has its type, every fact its place.
//!
//! Working one out allocates nothing, loops over nothing but strings and the sides of one
//! operator, and recurs no deeper than a condition may nest. All rules are worked out for every
//! payout, and most parts of them compare a fact with a constant and are joined by `&&`: so those
//! are worked out in place.

use std::fmt;
use std::sync::Arc;

use railhead_rule::Value;

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition(pub(super) BoolExpr);

/// Why a condition could not be worked out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A number left 64 bits.
    Overflow,
    /// A division by zero, or the rest of one.
    DivisionByZero,
    /// The fact at this place is not of its type: the host broke the contract.
    WrongType(usize),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Overflow => "a number does not fit 64 bits",
            Self::DivisionByZero => "it divides by zero",
            Self::WrongType(_) => "a fact is not of its type",
        })
    }
}

/// A value, or nothing where a fact is absent.
type Worked<T> = Result<Option<T>, Fault>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BoolExpr {
    Is(bool),
    Fact(usize),
    Not(Box<BoolExpr>),
    /// All that one operator joins, however it was put in parentheses: they change neither the
    /// answer nor the order of the sides.
    Joined(Box<[BoolExpr]>, Join),
    Choice(Box<[BoolExpr; 3]>),
    Absent(Box<Typed>),
    Same(Box<[BoolExpr; 2]>, Compare),
    /// The fact at a place against a constant.
    IntIs(usize, Compare, i64),
    StringIs(usize, Compare, Box<str>),
    Ints(Box<[IntExpr; 2]>, Compare),
    Strings(Box<[StringExpr; 2]>, Compare),
    IntIn(Box<IntExpr>, Arc<[i64]>),
    StringIn(Box<StringExpr>, Arc<[Box<str>]>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum IntExpr {
    Is(i64),
    Fact(usize),
    Negative(Box<IntExpr>),
    Arithmetic(Box<[IntExpr; 2]>, Arithmetic),
    Size(Box<StringExpr>),
    Choice(Box<BoolExpr>, Box<[IntExpr; 2]>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StringExpr {
    Is(Box<str>),
    Fact(usize),
    Choice(Box<BoolExpr>, Box<[StringExpr; 2]>),
}

/// A part of any type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Typed {
    Bool(BoolExpr),
    Int(IntExpr),
    String(StringExpr),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Join {
    And,
    Or,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compare {
    Equal,
    Unequal,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    StartsWith,
    EndsWith,
    Contains,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// The facts of one payout in the order in which they are declared.
type Known<'a> = [&'a Value];

impl Condition {
    /// Whether it holds for these facts, which stand in the order of [`super::Names::facts`].
    ///
    /// # Errors
    /// See [`Fault`].
    pub fn holds(&self, facts: &[&Value]) -> Result<bool, Fault> {
        self.0.holds(facts)
    }
}

impl BoolExpr {
    /// Both sides joined.
    pub(super) fn joined(sides: [Self; 2], join: Join) -> Self {
        let mut all = Vec::new();
        for side in sides {
            match side {
                Self::Joined(inner, same) if same == join => all.extend(inner),
                other => all.push(other),
            }
        }
        Self::Joined(all.into(), join)
    }

    /// Two ints compared.
    pub(super) fn ints(sides: [IntExpr; 2], compare: Compare) -> Self {
        match sides {
            [IntExpr::Fact(place), IntExpr::Is(number)] => Self::IntIs(place, compare, number),
            [IntExpr::Is(number), IntExpr::Fact(place)] => {
                Self::IntIs(place, compare.turned(), number)
            }
            sides => Self::Ints(Box::new(sides), compare),
        }
    }

    /// Two strings compared.
    pub(super) fn strings(sides: [StringExpr; 2], compare: Compare) -> Self {
        match sides {
            [StringExpr::Fact(place), StringExpr::Is(text)] => Self::StringIs(place, compare, text),
            sides => Self::Strings(Box::new(sides), compare),
        }
    }

    #[inline]
    fn holds(&self, known: &Known<'_>) -> Result<bool, Fault> {
        match self.compared(known) {
            Some(holds) => Ok(holds),
            None => Ok(self.work(known)?.unwrap_or(false)),
        }
    }

    /// Whether a fact compares so with a constant; nothing where this is another part, or the fact
    /// is of another type.
    #[inline(always)]
    fn compared(&self, known: &Known<'_>) -> Option<bool> {
        match self {
            Self::IntIs(place, compare, number) => match known.get(*place) {
                Some(Value::Int(fact)) => Some(compare.holds(*fact, *number)),
                Some(Value::Absent) | None => Some(false),
                Some(_) => None,
            },
            Self::StringIs(place, compare, text) => match known.get(*place) {
                Some(Value::String(fact)) => Some(compare.strings(fact, text)),
                Some(Value::Absent) | None => Some(false),
                Some(_) => None,
            },
            _ => None,
        }
    }

    fn work(&self, known: &Known<'_>) -> Worked<bool> {
        Ok(Some(match self {
            Self::Is(value) => *value,
            Self::IntIs(place, ..) | Self::StringIs(place, ..) => {
                return self.compared(known).map(Some).ok_or(Fault::WrongType(*place));
            }
            Self::Fact(place) => {
                return match known.get(*place) {
                    Some(Value::Bool(value)) => Ok(Some(*value)),
                    Some(Value::Absent) | None => Ok(None),
                    _ => Err(Fault::WrongType(*place)),
                };
            }
            Self::Not(inner) => return Ok(inner.work(known)?.map(|value| !value)),
            Self::Joined(sides, join) => join.holds(sides, known)?,
            Self::Choice(parts) => {
                let [condition, one, other] = &**parts;
                return match condition.work(known)? {
                    Some(true) => one.work(known),
                    Some(false) => other.work(known),
                    None => Ok(None),
                };
            }
            Self::Absent(inner) => inner.is_absent(known)?,
            Self::Same(sides, compare) => {
                let [left, right] = &**sides;
                both(left.work(known)?, right.work(known)?, |a, b| compare.holds(a, b))
            }
            Self::Ints(sides, compare) => {
                let [left, right] = &**sides;
                both(left.work(known)?, right.work(known)?, |a, b| compare.holds(a, b))
            }
            Self::Strings(sides, compare) => {
                let [left, right] = &**sides;
                both(left.work(known)?, right.work(known)?, |a, b| compare.strings(a, b))
            }
            Self::IntIn(item, list) => {
                item.work(known)?.is_some_and(|item| list.binary_search(&item).is_ok())
            }
            Self::StringIn(item, list) => {
                let is = |text| list.binary_search_by(|listed| (**listed).cmp(text)).is_ok();
                item.work(known)?.is_some_and(is)
            }
        }))
    }
}

fn both<T>(left: Option<T>, right: Option<T>, compare: impl Fn(T, T) -> bool) -> bool {
    left.zip(right).is_some_and(|(left, right)| compare(left, right))
}

impl IntExpr {
    fn work(&self, known: &Known<'_>) -> Worked<i64> {
        match self {
            Self::Is(number) => Ok(Some(*number)),
            Self::Fact(place) => match known.get(*place) {
                Some(Value::Int(number)) => Ok(Some(*number)),
                Some(Value::Absent) | None => Ok(None),
                _ => Err(Fault::WrongType(*place)),
            },
            Self::Negative(inner) => match inner.work(known)? {
                Some(number) => number.checked_neg().map(Some).ok_or(Fault::Overflow),
                None => Ok(None),
            },
            Self::Arithmetic(sides, arithmetic) => {
                let [left, right] = &**sides;
                match left.work(known)?.zip(right.work(known)?) {
                    Some((left, right)) => arithmetic.of(left, right).map(Some),
                    None => Ok(None),
                }
            }
            Self::Size(text) => match text.work(known)? {
                Some(text) => {
                    i64::try_from(text.chars().count()).map(Some).map_err(|_| Fault::Overflow)
                }
                None => Ok(None),
            },
            Self::Choice(condition, sides) => match (condition.work(known)?, &**sides) {
                (Some(true), [one, _]) => one.work(known),
                (Some(false), [_, other]) => other.work(known),
                (None, _) => Ok(None),
            },
        }
    }
}

impl StringExpr {
    fn work<'a>(&'a self, known: &Known<'a>) -> Worked<&'a str> {
        match self {
            Self::Is(text) => Ok(Some(text)),
            Self::Fact(place) => match known.get(*place) {
                Some(Value::String(text)) => Ok(Some(text)),
                Some(Value::Absent) | None => Ok(None),
                _ => Err(Fault::WrongType(*place)),
            },
            Self::Choice(condition, sides) => match (condition.work(known)?, &**sides) {
                (Some(true), [one, _]) => one.work(known),
                (Some(false), [_, other]) => other.work(known),
                (None, _) => Ok(None),
            },
        }
    }
}

impl Typed {
    fn is_absent(&self, known: &Known<'_>) -> Result<bool, Fault> {
        Ok(match self {
            Self::Bool(value) => value.work(known)?.is_none(),
            Self::Int(value) => value.work(known)?.is_none(),
            Self::String(value) => value.work(known)?.is_none(),
        })
    }
}

impl Join {
    /// One side can decide the whole, even if others cannot be worked out, as in CEL. Of those the
    /// first is told.
    fn holds(self, sides: &[BoolExpr], known: &Known<'_>) -> Result<bool, Fault> {
        let decisive = self == Self::Or;
        let mut failed = None;
        for side in sides {
            // Not by `holds`: making a result of each takes a sixth more for a whole decision.
            let value = match side.compared(known) {
                Some(value) => value,
                None => match side.work(known) {
                    Ok(value) => value.unwrap_or(false),
                    Err(fault) => {
                        failed = failed.or(Some(fault));
                        continue;
                    }
                },
            };
            if value == decisive {
                return Ok(decisive);
            }
        }
        failed.map_or(Ok(!decisive), Err)
    }
}

impl Compare {
    /// How the right side compares with the left one.
    const fn turned(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessEqual => Self::GreaterEqual,
            Self::Greater => Self::Less,
            Self::GreaterEqual => Self::LessEqual,
            Self::Equal | Self::Unequal | Self::StartsWith | Self::EndsWith | Self::Contains => {
                self
            }
        }
    }

    /// Whether two values compare so. They are compared as they are: to work out their order first
    /// Whether two values compare so.
    #[inline]
    fn holds<T: PartialOrd + Copy>(self, left: T, right: T) -> bool {
        match self {
            Self::Equal => left == right,
            Self::Unequal => left != right,
            Self::Less => left < right,
            Self::LessEqual => left <= right,
            Self::Greater => left > right,
            Self::GreaterEqual => left >= right,
            // Only strings are asked for these.
            Self::StartsWith | Self::EndsWith | Self::Contains => false,
        }
    }

    fn strings(self, left: &str, right: &str) -> bool {
        match self {
            Self::StartsWith => left.starts_with(right),
            Self::EndsWith => left.ends_with(right),
            Self::Contains => left.contains(right),
            // The order of UTF-8 is that of code points, which is CEL's.
            _ => self.holds(left, right),
        }
    }
}

impl Arithmetic {
    fn of(self, left: i64, right: i64) -> Result<i64, Fault> {
        if right == 0 && matches!(self, Self::Divide | Self::Remainder) {
            return Err(Fault::DivisionByZero);
        }
        let result = match self {
            Self::Add => left.checked_add(right),
            Self::Subtract => left.checked_sub(right),
            Self::Multiply => left.checked_mul(right),
            Self::Divide => left.checked_div(right),
            Self::Remainder => left.checked_rem(right),
        };
        result.ok_or(Fault::Overflow)
    }
}
