//! An expression, resolved: names are places, macros are loops, functions are pointers.

use std::sync::Arc;

use super::functions::Function;
use super::functions::pattern::Pattern;

#[derive(Debug)]
pub(super) enum Node {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Box<str>),
    Bytes(Arc<[u8]>),
    Type(&'static str),
    /// A top-level field of the object.
    Root(Box<str>),
    /// The object.
    Whole,
    /// A variable of a macro, by its place on the stack.
    Local(usize),
    Select(Box<Node>, Box<str>),
    Has(Box<Node>, Box<str>),
    /// `a.?b`
    OptSelect(Box<Node>, Box<str>),
    Index(Box<[Node; 2]>),
    /// `a[?b]`
    OptIndex(Box<[Node; 2]>),
    Not(Box<Node>),
    Negate(Box<Node>),
    /// A chain of `&&`, flat.
    And(Box<[Node]>),
    /// A chain of `||`, flat.
    Or(Box<[Node]>),
    If(Box<[Node; 3]>),
    Equal(Box<[Node; 2]>, bool),
    Compare(Comparison, Box<[Node; 2]>),
    Arithmetic(Operator, Box<[Node; 2]>),
    In(Box<[Node; 2]>),
    /// Elements, and whether each is left out where it is an optional without value.
    List(Box<[(Node, bool)]>),
    Map(Box<[(Node, Node, bool)]>),
    Call(Box<Call>),
    Loop(Box<Loop>),
    /// A value under a name, and where the name means it.
    Bind(Box<[Node; 2]>),
    /// `optMap`, or `optFlatMap`, which does not wrap the result anew.
    OptMap(Box<[Node; 2]>, bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

impl Comparison {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Comparison::Less => "_<_",
            Comparison::LessEqual => "_<=_",
            Comparison::Greater => "_>_",
            Comparison::GreaterEqual => "_>=_",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

impl Operator {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Operator::Add => "_+_",
            Operator::Subtract => "_-_",
            Operator::Multiply => "_*_",
            Operator::Divide => "_/_",
            Operator::Modulo => "_%_",
        }
    }
}

/// A call of a function. Which of its overloads it is may be known only when the arguments are there.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) name: &'static str,
    pub(super) overloads: Box<[&'static Function]>,
    pub(super) args: Box<[Node]>,
    /// A pattern that is a literal, compiled.
    pub(super) pattern: Option<Pattern>,
    /// An optional with a value is the answer, whatever the other argument is.
    pub(super) lazy: bool,
}

/// A macro that walks a list, or the keys of a map.
#[derive(Debug)]
pub(super) struct Loop {
    pub(super) kind: LoopKind,
    /// Two variables: place and element, or key and value.
    pub(super) pairs: bool,
    pub(super) range: Node,
    pub(super) filter: Option<Node>,
    pub(super) body: Node,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoopKind {
    All,
    Exists,
    ExistsOne,
    Filter,
    /// Also `transformList`.
    Map,
    SortBy,
    TransformMap,
    TransformMapEntry,
}
