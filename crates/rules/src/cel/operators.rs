//! Operators, checked: which types they take, as far as types are known before the object is there.

use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, operators as op};

use super::CompileError;
use super::lower::{Lower, Lowered};
use super::node::{Comparison, Node, Operator};
use super::value::Ty;

impl Lower<'_> {
    /// The operator that a call stands for, if it stands for one.
    pub(super) fn operator(&mut self, e: &IdedExpr, call: &CallExpr) -> Option<Lowered> {
        if call.target.is_some() {
            return None;
        }
        let [a, rest @ ..] = call.args.as_slice() else { return None };
        Some(match (call.func_name.as_str(), rest) {
            (op::LOGICAL_NOT, []) => {
                self.of_type(a, Ty::Bool, "!_").map(|node| (Node::Not(Box::new(node)), Ty::Bool))
            }
            (op::NEGATE, []) => self.negate(a),
            (op::LOGICAL_AND, [_]) => {
                self.chain(e, op::LOGICAL_AND).map(|all| (Node::And(all.into()), Ty::Bool))
            }
            (op::LOGICAL_OR, [_]) => {
                self.chain(e, op::LOGICAL_OR).map(|all| (Node::Or(all.into()), Ty::Bool))
            }
            (op::CONDITIONAL, [then, otherwise]) => self.conditional(a, then, otherwise),
            (op::EQUALS, [b]) => self.equal(a, b, true),
            (op::NOT_EQUALS, [b]) => self.equal(a, b, false),
            (op::LESS, [b]) => self.compare(a, b, Comparison::Less),
            (op::LESS_EQUALS, [b]) => self.compare(a, b, Comparison::LessEqual),
            (op::GREATER, [b]) => self.compare(a, b, Comparison::Greater),
            (op::GREATER_EQUALS, [b]) => self.compare(a, b, Comparison::GreaterEqual),
            (op::ADD, [b]) => self.arithmetic(a, b, Operator::Add),
            (op::SUBSTRACT, [b]) => self.arithmetic(a, b, Operator::Subtract),
            (op::MULTIPLY, [b]) => self.arithmetic(a, b, Operator::Multiply),
            (op::DIVIDE, [b]) => self.arithmetic(a, b, Operator::Divide),
            (op::MODULO, [b]) => self.arithmetic(a, b, Operator::Modulo),
            (op::IN, [b]) => self.contained(a, b),
            (op::INDEX, [b]) => self.index(a, b, false),
            (op::OPT_INDEX, [b]) => self.index(a, b, true),
            (op::OPT_SELECT, [b]) => self.optional_select(a, b),
            _ => return None,
        })
    }

    /// All terms of a chain of one connective, however the parser has nested them.
    fn chain(&mut self, e: &IdedExpr, connective: &'static str) -> Result<Vec<Node>, CompileError> {
        let (mut terms, mut open) = (Vec::new(), vec![e]);
        while let Some(next) = open.pop() {
            match &next.expr {
                Expr::Call(CallExpr { func_name, target: None, args }) if func_name == connective => {
                    open.extend(args.iter().rev());
                }
                _ => terms.push(self.of_type(next, Ty::Bool, connective)?),
            }
        }
        Ok(terms)
    }

    fn negate(&mut self, a: &IdedExpr) -> Lowered {
        let (node, ty) = self.expression(a)?;
        if !matches!(ty, Ty::Dyn | Ty::Int | Ty::Double) {
            return self.none_for(a, "-_", &[ty]);
        }
        Ok((Node::Negate(Box::new(node)), ty))
    }

    fn none_for<T>(&self, at: &IdedExpr, name: &str, types: &[Ty]) -> Result<T, CompileError> {
        let types: Vec<_> = types.iter().map(|ty| ty.name()).collect();
        self.error(at, format!("found no matching overload for '{name}' applied to '({})'", types.join(", ")))
    }

    fn pair(&mut self, a: &IdedExpr, b: &IdedExpr) -> Result<(Box<[Node; 2]>, Ty, Ty), CompileError> {
        let ((a, of_a), (b, of_b)) = (self.expression(a)?, self.expression(b)?);
        Ok((Box::new([a, b]), of_a, of_b))
    }

    fn conditional(&mut self, test: &IdedExpr, then: &IdedExpr, otherwise: &IdedExpr) -> Lowered {
        let test = self.of_type(test, Ty::Bool, "_?_:_")?;
        let (nodes, a, b) = self.pair(then, otherwise)?;
        let [then, otherwise] = *nodes;
        Ok((Node::If(Box::new([test, then, otherwise])), a.or(b)))
    }

    /// What can never be equal is a mistake; only null may be compared with anything.
    fn equal(&mut self, a: &IdedExpr, b: &IdedExpr, same: bool) -> Lowered {
        let (nodes, of_a, of_b) = self.pair(a, b)?;
        let possible =
            of_a.fits(of_b) || (of_a.number() && of_b.number()) || of_a == Ty::Null || of_b == Ty::Null;
        if !possible {
            return self.none_for(a, if same { "_==_" } else { "_!=_" }, &[of_a, of_b]);
        }
        Ok((Node::Equal(nodes, same), Ty::Bool))
    }

    fn compare(&mut self, a: &IdedExpr, b: &IdedExpr, how: Comparison) -> Lowered {
        let (nodes, of_a, of_b) = self.pair(a, b)?;
        let ordered = |ty: Ty| {
            ty.number() || matches!(ty, Ty::Dyn | Ty::Bool | Ty::Text | Ty::Bytes | Ty::Moment | Ty::Span)
        };
        let together = of_a.fits(of_b) || (of_a.number() && of_b.number());
        if !together || !ordered(of_a) || !ordered(of_b) {
            return self.none_for(a, how.name(), &[of_a, of_b]);
        }
        Ok((Node::Compare(how, nodes), Ty::Bool))
    }

    fn arithmetic(&mut self, a: &IdedExpr, b: &IdedExpr, op: Operator) -> Lowered {
        let (nodes, of_a, of_b) = self.pair(a, b)?;
        let mut results = ARITHMETIC
            .iter()
            .filter(|row| row.0.contains(&op) && row.1.fits(of_a) && row.2.fits(of_b))
            .map(|row| row.3);
        let Some(first) = results.next() else { return self.none_for(a, op.name(), &[of_a, of_b]) };
        Ok((Node::Arithmetic(op, nodes), results.fold(first, Ty::or)))
    }

    fn contained(&mut self, a: &IdedExpr, b: &IdedExpr) -> Lowered {
        let (nodes, of_a, of_b) = self.pair(a, b)?;
        if !matches!(of_b, Ty::Dyn | Ty::List | Ty::Map) {
            return self.none_for(a, "@in", &[of_a, of_b]);
        }
        Ok((Node::In(nodes), Ty::Bool))
    }

    fn index(&mut self, a: &IdedExpr, b: &IdedExpr, optional: bool) -> Lowered {
        // A literal key is a field: no more is read than that.
        if let Expr::Literal(LiteralValue::String(field)) = &b.expr {
            let field = field.inner();
            let (node, ty) = self.operand(a, field)?;
            let nodes = Box::new([node, Node::Text(field.into())]);
            return Ok(if optional {
                (Node::OptIndex(nodes), Ty::Optional)
            } else {
                (Node::Index(nodes), if ty == Ty::Optional { ty } else { Ty::Dyn })
            });
        }
        let (nodes, of_a, of_b) = self.pair(a, b)?;
        let possible = match of_a {
            Ty::Dyn | Ty::Optional | Ty::Map => true,
            Ty::List => of_b == Ty::Dyn || of_b.number(),
            _ => false,
        };
        if !possible {
            return self.none_for(a, "_[_]", &[of_a, of_b]);
        }
        Ok(match (optional, of_a) {
            (true, _) => (Node::OptIndex(nodes), Ty::Optional),
            (false, Ty::Optional) => (Node::Index(nodes), Ty::Optional),
            (false, _) => (Node::Index(nodes), Ty::Dyn),
        })
    }

    fn optional_select(&mut self, a: &IdedExpr, b: &IdedExpr) -> Lowered {
        let Expr::Literal(LiteralValue::String(field)) = &b.expr else {
            return self.error(b, "not a field");
        };
        let (node, _) = self.operand(a, field.inner())?;
        Ok((Node::OptSelect(Box::new(node), field.inner().into()), Ty::Optional))
    }
}

type Row = (&'static [Operator], Ty, Ty, Ty);

const ALL: &[Operator] =
    &[Operator::Add, Operator::Subtract, Operator::Multiply, Operator::Divide, Operator::Modulo];

/// Operators, what they take, and what they make of it.
const ARITHMETIC: [Row; 12] = [
    (ALL, Ty::Int, Ty::Int, Ty::Int),
    (ALL, Ty::Uint, Ty::Uint, Ty::Uint),
    (ALL.split_at(4).0, Ty::Double, Ty::Double, Ty::Double),
    (&[Operator::Add], Ty::Text, Ty::Text, Ty::Text),
    (&[Operator::Add], Ty::Bytes, Ty::Bytes, Ty::Bytes),
    (&[Operator::Add], Ty::List, Ty::List, Ty::List),
    (&[Operator::Add], Ty::Moment, Ty::Span, Ty::Moment),
    (&[Operator::Add], Ty::Span, Ty::Moment, Ty::Moment),
    (&[Operator::Add], Ty::Span, Ty::Span, Ty::Span),
    (&[Operator::Subtract], Ty::Moment, Ty::Moment, Ty::Span),
    (&[Operator::Subtract], Ty::Moment, Ty::Span, Ty::Moment),
    (&[Operator::Subtract], Ty::Span, Ty::Span, Ty::Span),
];
