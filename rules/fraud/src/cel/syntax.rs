//! Tokens to a syntax tree, by precedence climbing.

use super::token::{Kind, Token};
use super::{DEPTH_MAX, Mistake};

/// A part of a condition as it was written, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) at: usize,
    pub(super) form: Form,
    depth: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Null,
    Bool(bool),
    Int(i64),
    String(String),
    List(Vec<Node>),
    Name(String),
    Not(Box<Node>),
    Negative(Box<Node>),
    Operation(Operator, Box<[Node; 2]>),
    Choice(Box<[Node; 3]>),
    /// A function, or a method of the first of its arguments.
    Call(String, Vec<Node>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Or,
    And,
    Equal,
    Unequal,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    In,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Operator {
    const ALL: [Self; 14] = [
        Self::Or,
        Self::And,
        Self::Equal,
        Self::Unequal,
        Self::Less,
        Self::LessEqual,
        Self::Greater,
        Self::GreaterEqual,
        Self::In,
        Self::Add,
        Self::Subtract,
        Self::Multiply,
        Self::Divide,
        Self::Remainder,
    ];

    pub(super) const fn sign(self) -> &'static str {
        match self {
            Self::Or => "||",
            Self::And => "&&",
            Self::Equal => "==",
            Self::Unequal => "!=",
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
            Self::In => "in",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        }
    }

    /// The higher binds the tighter.
    const fn power(self) -> u8 {
        match self {
            Self::Or => 1,
            Self::And => 2,
            Self::Equal
            | Self::Unequal
            | Self::Less
            | Self::LessEqual
            | Self::Greater
            | Self::GreaterEqual
            | Self::In => 3,
            Self::Add | Self::Subtract => 4,
            Self::Multiply | Self::Divide | Self::Remainder => 5,
        }
    }
}

/// Reads a whole condition.
pub(super) fn parse(tokens: Vec<Token>) -> Result<Node, Mistake> {
    let mut parser = Parser { tokens: tokens.into_iter().peekable(), at: 0 };
    let node = parser.expression(1)?;
    match parser.tokens.next() {
        Some(Token { at, kind }) if kind != Kind::End => {
            let instead = match &kind {
                Kind::Name(name) if name == "and" => "; write `&&`",
                Kind::Name(name) if name == "or" => "; write `||`",
                _ => "",
            };
            let message = format!("{} was not expected here{instead}", shown(&kind));
            Err(Mistake::new(at, message))
        }
        _ => Ok(node),
    }
}

struct Parser {
    tokens: std::iter::Peekable<std::vec::IntoIter<Token>>,
    /// Where the last token that was taken starts.
    at: usize,
}

impl Parser {
    /// `condition ? one : other`, or anything that binds tighter.
    fn expression(&mut self, nest: u32) -> Result<Node, Mistake> {
        let condition = self.operation(0, nest + 1)?;
        if !self.takes("?") {
            return Ok(condition);
        }
        let at = self.at;
        let one = self.operation(0, nest + 1)?;
        self.expect(":", "a choice is written `condition ? one : other`")?;
        let other = self.expression(nest + 1)?;
        node(at, Form::Choice(Box::new([condition, one, other])))
    }

    /// Operators that bind tighter than `above`, from the left.
    fn operation(&mut self, above: u8, nest: u32) -> Result<Node, Mistake> {
        let mut left = self.unary(nest)?;
        while let Some(operator) = self.operator().filter(|operator| operator.power() > above) {
            self.next();
            let at = self.at;
            let right = self.operation(operator.power(), nest + 1)?;
            left = node(at, Form::Operation(operator, Box::new([left, right])))?;
        }
        Ok(left)
    }

    fn unary(&mut self, nest: u32) -> Result<Node, Mistake> {
        if nest > DEPTH_MAX {
            return Err(too_deep(self.at));
        }
        if self.takes("!") {
            let at = self.at;
            let inner = self.unary(nest + 1)?;
            return node(at, Form::Not(Box::new(inner)));
        }
        if self.takes("-") {
            let at = self.at;
            if let Some(Kind::Int(size)) = self.peek() {
                let value = 0_i64.checked_sub_unsigned(*size).ok_or_else(|| too_large(at))?;
                self.next();
                return self.members(node(at, Form::Int(value))?, nest);
            }
            let inner = self.unary(nest + 1)?;
            return node(at, Form::Negative(Box::new(inner)));
        }
        let first = self.primary(nest)?;
        self.members(first, nest)
    }

    /// Methods after a value.
    fn members(&mut self, mut value: Node, nest: u32) -> Result<Node, Mistake> {
        loop {
            if self.takes("[") {
                return Err(Mistake::new(
                    self.at,
                    "`[…]` after a value is not offered; look in a list with `x in list`",
                ));
            }
            if self.takes("{") {
                return Err(Mistake::new(self.at, "messages are not offered"));
            }
            if !self.takes(".") {
                return Ok(value);
            }
            let Token { at, kind } = self.next();
            let Kind::Name(name) = kind else {
                return Err(Mistake::new(at, "the name of a method must follow the dot"));
            };
            if !self.takes("(") {
                let message =
                    format!("fields such as `.{name}` are not offered; facts have plain names");
                return Err(Mistake::new(at, message));
            }
            let mut given = vec![value];
            self.items(")", &mut given, nest)?;
            value = node(at, Form::Call(name, given))?;
        }
    }

    fn primary(&mut self, nest: u32) -> Result<Node, Mistake> {
        let Token { at, kind } = self.next();
        let form = match kind {
            Kind::Int(size) => Form::Int(i64::try_from(size).map_err(|_| too_large(at))?),
            Kind::String(text) => Form::String(text),
            Kind::Name(name) => return self.named(name, at, nest),
            Kind::Mark("(") => {
                let inner = self.expression(nest + 1)?;
                self.expect(")", "a closing `)` is missing here")?;
                return Ok(inner);
            }
            Kind::Mark("[") => {
                let mut items = Vec::new();
                self.items("]", &mut items, nest)?;
                Form::List(items)
            }
            Kind::Mark("{") => return Err(Mistake::new(at, "maps are not offered; use [lists]")),
            Kind::Mark(".") => {
                return Err(Mistake::new(at, "names do not start with a dot here"));
            }
            other => {
                let message = format!("a value is expected here, not {}", shown(&other));
                return Err(Mistake::new(at, message));
            }
        };
        node(at, form)
    }

    fn named(&mut self, name: String, at: usize, nest: u32) -> Result<Node, Mistake> {
        let form = match name.as_str() {
            "null" => Form::Null,
            "true" => Form::Bool(true),
            "false" => Form::Bool(false),
            word if super::RESERVED.contains(&word) => {
                let message = format!("`{word}` is a word that CEL keeps for itself");
                return Err(Mistake::new(at, message));
            }
            _ if self.takes("(") => {
                let mut given = Vec::new();
                self.items(")", &mut given, nest)?;
                Form::Call(name, given)
            }
            _ => Form::Name(name),
        };
        node(at, form)
    }

    /// Expressions with commas between them, up to the closing mark.
    fn items(&mut self, close: &str, items: &mut Vec<Node>, nest: u32) -> Result<(), Mistake> {
        let mut is_first = true;
        while !self.takes(close) {
            if !is_first {
                self.expect(",", "a comma or the closing mark is missing here")?;
            }
            is_first = false;
            items.push(self.expression(nest + 1)?);
        }
        Ok(())
    }

    fn peek(&mut self) -> Option<&Kind> {
        self.tokens.peek().map(|token| &token.kind)
    }

    /// The next token; [`Kind::End`] again and again at the end.
    fn next(&mut self) -> Token {
        let is_last = self.peek().is_none_or(|kind| *kind == Kind::End);
        let token = if is_last { self.tokens.peek().cloned() } else { self.tokens.next() };
        let token = token.unwrap_or(Token { at: self.at, kind: Kind::End });
        self.at = token.at;
        token
    }

    fn takes(&mut self, mark: &str) -> bool {
        let is_next = matches!(self.peek(), Some(Kind::Mark(next)) if *next == mark);
        if is_next {
            self.next();
        }
        is_next
    }

    fn expect(&mut self, mark: &str, otherwise: &str) -> Result<(), Mistake> {
        match self.takes(mark) {
            true => Ok(()),
            false => Err(Mistake::new(self.next().at, otherwise)),
        }
    }

    fn operator(&mut self) -> Option<Operator> {
        let sign = match self.peek()? {
            Kind::Mark(sign) => *sign,
            Kind::Name(name) if name == "in" => "in",
            _ => return None,
        };
        Operator::ALL.into_iter().find(|operator| operator.sign() == sign)
    }
}

/// A node, unless it would nest too deeply: a chain of operators grows to the left without any
/// recursion of the parser, but working it out recurs.
fn node(at: usize, form: Form) -> Result<Node, Mistake> {
    let deepest = |parts: &[Node]| parts.iter().map(|part| part.depth).max().unwrap_or(0);
    let below = match &form {
        Form::Null | Form::Bool(_) | Form::Int(_) | Form::String(_) | Form::Name(_) => 0,
        Form::List(parts) | Form::Call(_, parts) => deepest(parts),
        Form::Not(part) | Form::Negative(part) => part.depth,
        Form::Operation(_, parts) => deepest(&**parts),
        Form::Choice(parts) => deepest(&**parts),
    };
    if below >= DEPTH_MAX {
        return Err(too_deep(at));
    }
    Ok(Node { at, form, depth: below + 1 })
}

fn too_deep(at: usize) -> Mistake {
    let message = format!(
        "this nests deeper than {DEPTH_MAX} levels; make several rules of it, or use `in` with a list"
    );
    Mistake::new(at, message)
}

fn too_large(at: usize) -> Mistake {
    Mistake::new(at, "the number does not fit 64 bits")
}

fn shown(kind: &Kind) -> String {
    match kind {
        Kind::Int(value) => format!("`{value}`"),
        Kind::String(_) => "a string".to_owned(),
        Kind::Name(name) => format!("`{name}`"),
        Kind::Mark(mark) => format!("`{mark}`"),
        Kind::End => "the end".to_owned(),
    }
}
