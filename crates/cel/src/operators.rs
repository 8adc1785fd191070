//! Operators over operands that are lowered already: their types are checked as far as they are known at compile time.

use cel::common::ast::operators as op;

use crate::cel_type::CelType;
use crate::node::{ExprNode, TypedNode};
use crate::operator_kinds::{ArithmeticOperator, ComparisonOperator};

/// An operator with two operands, both of which are always evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BinaryOperator {
    /// `==`, or `!=` with `false`.
    Equality(bool),
    Comparison(ComparisonOperator),
    Arithmetic(ArithmeticOperator),
    /// `in`
    Membership,
    /// `a[b]`
    Index,
    /// `a[?b]`
    OptionalIndex,
}

impl BinaryOperator {
    /// Returns the operator that the parser calls by this name.
    pub(crate) fn of_function(name: &str) -> Option<BinaryOperator> {
        use BinaryOperator as B;
        Some(match name {
            op::EQUALS => B::Equality(true),
            op::NOT_EQUALS => B::Equality(false),
            op::LESS => B::Comparison(ComparisonOperator::Less),
            op::LESS_EQUALS => B::Comparison(ComparisonOperator::LessEqual),
            op::GREATER => B::Comparison(ComparisonOperator::Greater),
            op::GREATER_EQUALS => B::Comparison(ComparisonOperator::GreaterEqual),
            op::ADD => B::Arithmetic(ArithmeticOperator::Add),
            op::SUBSTRACT => B::Arithmetic(ArithmeticOperator::Subtract),
            op::MULTIPLY => B::Arithmetic(ArithmeticOperator::Multiply),
            op::DIVIDE => B::Arithmetic(ArithmeticOperator::Divide),
            op::MODULO => B::Arithmetic(ArithmeticOperator::Modulo),
            op::IN => B::Membership,
            op::INDEX => B::Index,
            op::OPT_INDEX => B::OptionalIndex,
            _ => return None,
        })
    }

    /// Returns `true` if it looks something up in its first operand by its second.
    pub(crate) fn is_lookup(self) -> bool {
        matches!(self, BinaryOperator::Index | BinaryOperator::OptionalIndex)
    }

    const fn name(self) -> &'static str {
        match self {
            BinaryOperator::Equality(true) => "_==_",
            BinaryOperator::Equality(false) => "_!=_",
            BinaryOperator::Comparison(how) => how.name(),
            BinaryOperator::Arithmetic(how) => how.name(),
            BinaryOperator::Membership => "@in",
            BinaryOperator::Index | BinaryOperator::OptionalIndex => "_[_]",
        }
    }

    /// Returns the type of the result; `None` if the operator is not defined for operands of these types.
    fn result_type(self, a: CelType, b: CelType) -> Option<CelType> {
        match self {
            BinaryOperator::Equality(_) => can_be_equal(a, b).then_some(CelType::Bool),
            BinaryOperator::Comparison(_) => are_ordered(a, b).then_some(CelType::Bool),
            BinaryOperator::Arithmetic(how) => ARITHMETIC_SIGNATURES
                .iter()
                .filter(|row| row.0.contains(&how) && row.1.is_compatible(a) && row.2.is_compatible(b))
                .map(|row| row.3)
                .reduce(CelType::unify_with),
            BinaryOperator::Membership => {
                matches!(b, CelType::Dyn | CelType::List | CelType::Map).then_some(CelType::Bool)
            }
            BinaryOperator::Index | BinaryOperator::OptionalIndex => {
                let is_possible = match a {
                    CelType::Dyn | CelType::Optional | CelType::Map => true,
                    CelType::List => b == CelType::Dyn || b.is_numeric(),
                    _ => false,
                };
                is_possible.then(|| self.type_of_item(a))
            }
        }
    }

    /// Returns the type of what is looked up in a value of this type.
    fn type_of_item(self, container: CelType) -> CelType {
        let is_optional = self == BinaryOperator::OptionalIndex || container == CelType::Optional;
        if is_optional { CelType::Optional } else { CelType::Dyn }
    }

    fn into_node(self, nodes: Box<[ExprNode; 2]>) -> ExprNode {
        match self {
            BinaryOperator::Equality(same) => ExprNode::Equal(nodes, same),
            BinaryOperator::Comparison(how) => ExprNode::Compare(how, nodes),
            BinaryOperator::Arithmetic(how) => ExprNode::Arithmetic(how, nodes),
            BinaryOperator::Membership => ExprNode::In(nodes),
            BinaryOperator::Index => ExprNode::Index(nodes),
            BinaryOperator::OptionalIndex => ExprNode::OptIndex(nodes),
        }
    }

    /// Applies the operator; the error is a message about the first operand.
    pub(crate) fn apply(self, a: TypedNode, b: TypedNode) -> Result<TypedNode, String> {
        match self.result_type(a.1, b.1) {
            Some(result) => Ok((self.into_node(Box::new([a.0, b.0])), result)),
            None => Err(missing_overload(self.name(), &[a.1, b.1])),
        }
    }

    /// Applies a lookup to a field whose name is a literal.
    pub(crate) fn apply_to_field(self, container: TypedNode, field: &str) -> TypedNode {
        let nodes = Box::new([container.0, ExprNode::Text(field.into())]);
        (self.into_node(nodes), self.type_of_item(container.1))
    }
}

/// Applies `-`; the error is a message about the operand.
pub(crate) fn negate((node, ty): TypedNode) -> Result<TypedNode, String> {
    if !matches!(ty, CelType::Dyn | CelType::Int | CelType::Double) {
        return Err(missing_overload("-_", &[ty]));
    }
    Ok((ExprNode::Negate(Box::new(node)), ty))
}

fn missing_overload(name: &str, types: &[CelType]) -> String {
    let types: Vec<_> = types.iter().map(|ty| ty.name()).collect();
    format!("found no matching overload for '{name}' applied to '({})'", types.join(", "))
}

/// Returns `true` unless values of these types can never be equal. Only null may be compared with any type.
fn can_be_equal(a: CelType, b: CelType) -> bool {
    a.is_compatible(b) || (a.is_numeric() && b.is_numeric()) || a == CelType::Null || b == CelType::Null
}

fn are_ordered(a: CelType, b: CelType) -> bool {
    let is_ordered = |ty: CelType| {
        ty.is_numeric()
            || matches!(
                ty,
                CelType::Dyn
                    | CelType::Bool
                    | CelType::Text
                    | CelType::Bytes
                    | CelType::Timestamp
                    | CelType::Duration
            )
    };
    let are_together = a.is_compatible(b) || (a.is_numeric() && b.is_numeric());
    are_together && is_ordered(a) && is_ordered(b)
}

type ArithmeticRow = (&'static [ArithmeticOperator], CelType, CelType, CelType);

const ALL_ARITHMETIC: &[ArithmeticOperator] = &[
    ArithmeticOperator::Add,
    ArithmeticOperator::Subtract,
    ArithmeticOperator::Multiply,
    ArithmeticOperator::Divide,
    ArithmeticOperator::Modulo,
];

/// Operators with their operand and result types.
const ARITHMETIC_SIGNATURES: [ArithmeticRow; 12] = [
    (ALL_ARITHMETIC, CelType::Int, CelType::Int, CelType::Int),
    (ALL_ARITHMETIC, CelType::Uint, CelType::Uint, CelType::Uint),
    (ALL_ARITHMETIC.split_at(4).0, CelType::Double, CelType::Double, CelType::Double),
    (&[ArithmeticOperator::Add], CelType::Text, CelType::Text, CelType::Text),
    (&[ArithmeticOperator::Add], CelType::Bytes, CelType::Bytes, CelType::Bytes),
    (&[ArithmeticOperator::Add], CelType::List, CelType::List, CelType::List),
    (&[ArithmeticOperator::Add], CelType::Timestamp, CelType::Duration, CelType::Timestamp),
    (&[ArithmeticOperator::Add], CelType::Duration, CelType::Timestamp, CelType::Timestamp),
    (&[ArithmeticOperator::Add], CelType::Duration, CelType::Duration, CelType::Duration),
    (&[ArithmeticOperator::Subtract], CelType::Timestamp, CelType::Timestamp, CelType::Duration),
    (&[ArithmeticOperator::Subtract], CelType::Timestamp, CelType::Duration, CelType::Timestamp),
    (&[ArithmeticOperator::Subtract], CelType::Duration, CelType::Duration, CelType::Duration),
];
