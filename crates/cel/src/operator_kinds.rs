//! Operators that share one evaluation, by kind.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ComparisonOperator {
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

impl ComparisonOperator {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            ComparisonOperator::Less => "_<_",
            ComparisonOperator::LessEqual => "_<=_",
            ComparisonOperator::Greater => "_>_",
            ComparisonOperator::GreaterEqual => "_>=_",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArithmeticOperator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

impl ArithmeticOperator {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            ArithmeticOperator::Add => "_+_",
            ArithmeticOperator::Subtract => "_-_",
            ArithmeticOperator::Multiply => "_*_",
            ArithmeticOperator::Divide => "_/_",
            ArithmeticOperator::Modulo => "_%_",
        }
    }
}
