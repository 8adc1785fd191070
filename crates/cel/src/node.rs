//! A resolved expression: names are indices, macros are loops, functions are pointers.

use std::sync::Arc;

use crate::cel_type::CelType;
use crate::operator_kinds::{ArithmeticOperator, ComparisonOperator};
use crate::overload::CelOverload;
use crate::pattern::CelPattern;

#[derive(Debug)]
pub(crate) enum ExprNode {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Box<str>),
    Bytes(Arc<[u8]>),
    Type(&'static str),
    /// A top-level field of the object.
    TopLevelField(Box<str>),
    /// The whole object.
    WholeObject,
    /// A variable of a macro, by its index on the stack.
    Local(usize),
    Select(Box<ExprNode>, Box<str>),
    Has(Box<ExprNode>, Box<str>),
    /// `a.?b`
    OptSelect(Box<ExprNode>, Box<str>),
    Index(Box<[ExprNode; 2]>),
    /// `a[?b]`
    OptIndex(Box<[ExprNode; 2]>),
    Not(Box<ExprNode>),
    Negate(Box<ExprNode>),
    /// A flattened chain of `&&`.
    And(Box<[ExprNode]>),
    /// A flattened chain of `||`.
    Or(Box<[ExprNode]>),
    If(Box<[ExprNode; 3]>),
    Equal(Box<[ExprNode; 2]>, bool),
    Compare(ComparisonOperator, Box<[ExprNode; 2]>),
    Arithmetic(ArithmeticOperator, Box<[ExprNode; 2]>),
    In(Box<[ExprNode; 2]>),
    /// Elements, each with a flag: `true` if it is optional and left out when empty.
    List(Box<[(ExprNode, bool)]>),
    Map(Box<[(ExprNode, ExprNode, bool)]>),
    Call(Box<CelFunctionCall>),
    Loop(Box<CelMacroLoop>),
    /// A value bound to a name, and the expression in which it is bound.
    Bind(Box<[ExprNode; 2]>),
    /// `optMap`, or `optFlatMap`, which does not wrap the result again.
    OptMap(Box<[ExprNode; 2]>, bool),
}

impl ExprNode {
    /// Calls `visit` with each operand.
    pub(crate) fn for_each_operand(&self, visit: &mut dyn FnMut(&ExprNode)) {
        match self {
            ExprNode::Null
            | ExprNode::Bool(_)
            | ExprNode::Int(_)
            | ExprNode::Uint(_)
            | ExprNode::Double(_)
            | ExprNode::Text(_)
            | ExprNode::Bytes(_)
            | ExprNode::Type(_)
            | ExprNode::TopLevelField(_)
            | ExprNode::WholeObject
            | ExprNode::Local(_) => {}
            ExprNode::Select(of, _)
            | ExprNode::Has(of, _)
            | ExprNode::OptSelect(of, _)
            | ExprNode::Not(of)
            | ExprNode::Negate(of) => visit(of),
            ExprNode::Index(nodes)
            | ExprNode::OptIndex(nodes)
            | ExprNode::Equal(nodes, _)
            | ExprNode::Compare(_, nodes)
            | ExprNode::Arithmetic(_, nodes)
            | ExprNode::In(nodes)
            | ExprNode::Bind(nodes)
            | ExprNode::OptMap(nodes, _) => nodes.iter().for_each(visit),
            ExprNode::And(nodes) | ExprNode::Or(nodes) => nodes.iter().for_each(visit),
            ExprNode::If(nodes) => nodes.iter().for_each(visit),
            ExprNode::List(elements) => elements.iter().for_each(|(node, _)| visit(node)),
            ExprNode::Map(entries) => entries.iter().for_each(|(key, value, _)| {
                visit(key);
                visit(value);
            }),
            ExprNode::Call(call) => call.args.iter().for_each(visit),
            ExprNode::Loop(called) => {
                visit(&called.range);
                called.filter.iter().chain([&called.body]).for_each(visit);
            }
        }
    }
}

/// An expression with the type that is known of its value.
pub(crate) type TypedNode = (ExprNode, CelType);

/// A function call. Its overload may be determined only when the arguments are known.
#[derive(Debug)]
pub(crate) struct CelFunctionCall {
    pub(crate) name: &'static str,
    pub(crate) overloads: Box<[&'static CelOverload]>,
    pub(crate) args: Box<[ExprNode]>,
    /// The compiled pattern, if it is a literal.
    pub(crate) pattern: Option<CelPattern>,
    /// The other argument is evaluated only if the first is an empty optional.
    pub(crate) lazy: bool,
}

/// A macro that iterates over a list or the keys of a map.
#[derive(Debug)]
pub(crate) struct CelMacroLoop {
    pub(crate) kind: LoopKind,
    /// Two variables: index and element, or key and value.
    pub(crate) pairs: bool,
    pub(crate) range: ExprNode,
    pub(crate) filter: Option<ExprNode>,
    pub(crate) body: ExprNode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoopKind {
    All,
    Exists,
    ExistsOne,
    Filter,
    /// `map` and `transformList`.
    Map,
    SortBy,
    TransformMap,
    TransformMapEntry,
}
