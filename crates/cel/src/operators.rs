//! Lowers operators and checks their operand types, as far as they are known at compile time.

use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, operators as op};

use crate::CompileError;
use crate::cel_type::CelType;
use crate::lower::{LoweredNode, LoweringContext};
use crate::node::ExprNode;
use crate::operator_kinds::{ArithmeticOperator, ComparisonOperator};

impl LoweringContext<'_> {
    /// Lowers a call that is an operator; `None` if it is none.
    pub(crate) fn lower_operator(&mut self, e: &IdedExpr, call: &CallExpr) -> Option<LoweredNode> {
        if call.target.is_some() {
            return None;
        }
        let [a, rest @ ..] = call.args.as_slice() else { return None };
        Some(match (call.func_name.as_str(), rest) {
            (op::LOGICAL_NOT, []) => self
                .lower_typed(a, CelType::Bool, "!_")
                .map(|node| (ExprNode::Not(Box::new(node)), CelType::Bool)),
            (op::NEGATE, []) => self.lower_negate(a),
            (op::LOGICAL_AND, [_]) => self
                .flatten_connective(e, op::LOGICAL_AND)
                .map(|all| (ExprNode::And(all.into()), CelType::Bool)),
            (op::LOGICAL_OR, [_]) => self
                .flatten_connective(e, op::LOGICAL_OR)
                .map(|all| (ExprNode::Or(all.into()), CelType::Bool)),
            (op::CONDITIONAL, [then, otherwise]) => self.lower_conditional(a, then, otherwise),
            (op::EQUALS, [b]) => self.lower_equality(a, b, true),
            (op::NOT_EQUALS, [b]) => self.lower_equality(a, b, false),
            (op::LESS, [b]) => self.lower_comparison(a, b, ComparisonOperator::Less),
            (op::LESS_EQUALS, [b]) => self.lower_comparison(a, b, ComparisonOperator::LessEqual),
            (op::GREATER, [b]) => self.lower_comparison(a, b, ComparisonOperator::Greater),
            (op::GREATER_EQUALS, [b]) => self.lower_comparison(a, b, ComparisonOperator::GreaterEqual),
            (op::ADD, [b]) => self.lower_arithmetic(a, b, ArithmeticOperator::Add),
            (op::SUBSTRACT, [b]) => self.lower_arithmetic(a, b, ArithmeticOperator::Subtract),
            (op::MULTIPLY, [b]) => self.lower_arithmetic(a, b, ArithmeticOperator::Multiply),
            (op::DIVIDE, [b]) => self.lower_arithmetic(a, b, ArithmeticOperator::Divide),
            (op::MODULO, [b]) => self.lower_arithmetic(a, b, ArithmeticOperator::Modulo),
            (op::IN, [b]) => self.lower_membership(a, b),
            (op::INDEX, [b]) => self.lower_index(a, b, false),
            (op::OPT_INDEX, [b]) => self.lower_index(a, b, true),
            (op::OPT_SELECT, [b]) => self.lower_optional_select(a, b),
            _ => return None,
        })
    }

    /// Returns all terms of a chain of one connective, in whatever way the parser has nested them.
    fn flatten_connective(
        &mut self,
        e: &IdedExpr,
        connective: &'static str,
    ) -> Result<Vec<ExprNode>, CompileError> {
        let (mut terms, mut open) = (Vec::new(), vec![e]);
        while let Some(next) = open.pop() {
            match &next.expr {
                Expr::Call(CallExpr { func_name, target: None, args }) if func_name == connective => {
                    open.extend(args.iter().rev());
                }
                _ => terms.push(self.lower_typed(next, CelType::Bool, connective)?),
            }
        }
        Ok(terms)
    }

    fn lower_negate(&mut self, a: &IdedExpr) -> LoweredNode {
        let (node, ty) = self.lower_expression(a)?;
        if !matches!(ty, CelType::Dyn | CelType::Int | CelType::Double) {
            return self.no_overload(a, "-_", &[ty]);
        }
        Ok((ExprNode::Negate(Box::new(node)), ty))
    }

    fn no_overload<T>(&self, at: &IdedExpr, name: &str, types: &[CelType]) -> Result<T, CompileError> {
        let types: Vec<_> = types.iter().map(|ty| ty.name()).collect();
        self.error_at(
            at,
            format!("found no matching overload for '{name}' applied to '({})'", types.join(", ")),
        )
    }

    fn lower_pair(
        &mut self,
        a: &IdedExpr,
        b: &IdedExpr,
    ) -> Result<(Box<[ExprNode; 2]>, CelType, CelType), CompileError> {
        let ((a, of_a), (b, of_b)) = (self.lower_expression(a)?, self.lower_expression(b)?);
        Ok((Box::new([a, b]), of_a, of_b))
    }

    fn lower_conditional(&mut self, test: &IdedExpr, then: &IdedExpr, otherwise: &IdedExpr) -> LoweredNode {
        let test = self.lower_typed(test, CelType::Bool, "_?_:_")?;
        let (nodes, a, b) = self.lower_pair(then, otherwise)?;
        let [then, otherwise] = *nodes;
        Ok((ExprNode::If(Box::new([test, then, otherwise])), a.unify_with(b)))
    }

    /// Lowers `==` or `!=`. Types that can never be equal are a compile error; only null may be compared with any type.
    fn lower_equality(&mut self, a: &IdedExpr, b: &IdedExpr, same: bool) -> LoweredNode {
        let (nodes, of_a, of_b) = self.lower_pair(a, b)?;
        let possible = of_a.is_compatible(of_b)
            || (of_a.is_numeric() && of_b.is_numeric())
            || of_a == CelType::Null
            || of_b == CelType::Null;
        if !possible {
            return self.no_overload(a, if same { "_==_" } else { "_!=_" }, &[of_a, of_b]);
        }
        Ok((ExprNode::Equal(nodes, same), CelType::Bool))
    }

    fn lower_comparison(&mut self, a: &IdedExpr, b: &IdedExpr, how: ComparisonOperator) -> LoweredNode {
        let (nodes, of_a, of_b) = self.lower_pair(a, b)?;
        let ordered = |ty: CelType| {
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
        let together = of_a.is_compatible(of_b) || (of_a.is_numeric() && of_b.is_numeric());
        if !together || !ordered(of_a) || !ordered(of_b) {
            return self.no_overload(a, how.name(), &[of_a, of_b]);
        }
        Ok((ExprNode::Compare(how, nodes), CelType::Bool))
    }

    fn lower_arithmetic(&mut self, a: &IdedExpr, b: &IdedExpr, op: ArithmeticOperator) -> LoweredNode {
        let (nodes, of_a, of_b) = self.lower_pair(a, b)?;
        let mut results = ARITHMETIC_SIGNATURES
            .iter()
            .filter(|row| row.0.contains(&op) && row.1.is_compatible(of_a) && row.2.is_compatible(of_b))
            .map(|row| row.3);
        let Some(first) = results.next() else { return self.no_overload(a, op.name(), &[of_a, of_b]) };
        Ok((ExprNode::Arithmetic(op, nodes), results.fold(first, CelType::unify_with)))
    }

    fn lower_membership(&mut self, a: &IdedExpr, b: &IdedExpr) -> LoweredNode {
        let (nodes, of_a, of_b) = self.lower_pair(a, b)?;
        if !matches!(of_b, CelType::Dyn | CelType::List | CelType::Map) {
            return self.no_overload(a, "@in", &[of_a, of_b]);
        }
        Ok((ExprNode::In(nodes), CelType::Bool))
    }

    fn lower_index(&mut self, a: &IdedExpr, b: &IdedExpr, optional: bool) -> LoweredNode {
        // A literal key is a field: only that field is read.
        if let Expr::Literal(LiteralValue::String(field)) = &b.expr {
            let field = field.inner();
            let (node, ty) = self.lower_operand(a, field)?;
            let nodes = Box::new([node, ExprNode::Text(field.into())]);
            return Ok(if optional {
                (ExprNode::OptIndex(nodes), CelType::Optional)
            } else {
                (ExprNode::Index(nodes), if ty == CelType::Optional { ty } else { CelType::Dyn })
            });
        }
        let (nodes, of_a, of_b) = self.lower_pair(a, b)?;
        let possible = match of_a {
            CelType::Dyn | CelType::Optional | CelType::Map => true,
            CelType::List => of_b == CelType::Dyn || of_b.is_numeric(),
            _ => false,
        };
        if !possible {
            return self.no_overload(a, "_[_]", &[of_a, of_b]);
        }
        Ok(match (optional, of_a) {
            (true, _) => (ExprNode::OptIndex(nodes), CelType::Optional),
            (false, CelType::Optional) => (ExprNode::Index(nodes), CelType::Optional),
            (false, _) => (ExprNode::Index(nodes), CelType::Dyn),
        })
    }

    fn lower_optional_select(&mut self, a: &IdedExpr, b: &IdedExpr) -> LoweredNode {
        let Expr::Literal(LiteralValue::String(field)) = &b.expr else {
            return self.error_at(b, "not a field");
        };
        let (node, _) = self.lower_operand(a, field.inner())?;
        Ok((ExprNode::OptSelect(Box::new(node), field.inner().into()), CelType::Optional))
    }
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
