//! Quantities such as `500m` and `1.5Gi`.

use std::cmp::Ordering;
use std::rc::Rc;

use super::super::value::Ty::{self, Bool, Double, Int, Text};
use super::super::value::{Fault, Val};
use super::{Function, global, member, unfit};

const QUANTITY: Ty = Ty::Quantity;

pub(super) const TABLE: &[Function] = &[
    global("quantity", &[Text], QUANTITY, |_, args| match args {
        [Val::Text(text)] => {
            let parsed = Quantity::parse(text).ok_or_else(|| Fault::words("no quantity"))?;
            Ok(Val::Quantity(Rc::new(parsed)))
        }
        _ => Err(unfit(args)),
    }),
    global("isQuantity", &[Text], Bool, |_, args| match args {
        [Val::Text(text)] => Ok(Val::Bool(Quantity::parse(text).is_some())),
        _ => Err(unfit(args)),
    }),
    member("isInteger", &[QUANTITY], Bool, |_, args| Ok(Val::Bool(one(args)?.integer().is_some()))),
    member("asInteger", &[QUANTITY], Int, |_, args| {
        let whole = one(args)?.integer();
        whole.map(Val::Int).ok_or_else(|| Fault::words("cannot convert value to integer"))
    }),
    member("asApproximateFloat", &[QUANTITY], Double, |_, args| Ok(Val::Double(one(args)?.approximate()))),
    member("sign", &[QUANTITY], Int, |_, args| Ok(Val::Int(one(args)?.amount.signum() as i64))),
    member("add", &[QUANTITY, QUANTITY], QUANTITY, |_, args| sum(args, 1)),
    member("add", &[QUANTITY, Int], QUANTITY, |_, args| sum(args, 1)),
    member("sub", &[QUANTITY, QUANTITY], QUANTITY, |_, args| sum(args, -1)),
    member("sub", &[QUANTITY, Int], QUANTITY, |_, args| sum(args, -1)),
    member("compareTo", &[QUANTITY, QUANTITY], Int, |_, args| Ok(Val::Int(order(args)? as i64))),
    member("isGreaterThan", &[QUANTITY, QUANTITY], Bool, |_, args| Ok(Val::Bool(order(args)?.is_gt()))),
    member("isLessThan", &[QUANTITY, QUANTITY], Bool, |_, args| Ok(Val::Bool(order(args)?.is_lt()))),
];

/// `amount × 10^-9`: as exact as Kubernetes keeps them.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Quantity {
    amount: i128,
    /// Written without parts of one: to Kubernetes `1000m` is no integer.
    whole: bool,
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.amount == other.amount
    }
}

const NANO: i128 = 1_000_000_000;

/// Far beyond what anybody has of anything.
const MOST: i128 = i128::MAX / 4;

impl Quantity {
    /// A number with a suffix of powers of 1024 or 1000, or an exponent. What is finer than 10^-9 is rounded up.
    fn parse(text: &str) -> Option<Quantity> {
        let (negative, rest) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, suffix) = rest.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.contains('.') || text.is_empty() {
            return None;
        }
        // No digits are zero. More than are kept saturate, and finer ones than a nano's hundredth do not count.
        let kept = &fraction[..fraction.len().min(11)];
        let digits: i128 = format!("0{whole}{kept}").parse().unwrap_or(MOST);
        // amount = digits × 10^(9 - places) × scale
        let (binary, exponent) = scale(suffix)?;
        let power = 9 - i32::try_from(kept.len()).ok()? + exponent;
        let scaled = digits.saturating_mul(binary);
        let factor = 10i128.checked_pow(power.unsigned_abs());
        let amount = match factor {
            _ if scaled == 0 => 0,
            Some(factor) if power >= 0 => scaled.saturating_mul(factor).min(MOST),
            None if power >= 0 => MOST,
            Some(factor) => (scaled / factor + i128::from(scaled % factor != 0)).min(MOST),
            None => 1,
        };
        let whole = if binary == 1 { power >= 9 } else { fraction.is_empty() };
        Some(Quantity { amount: if negative { -amount } else { amount }, whole })
    }

    fn integer(self) -> Option<i64> {
        if self.whole { i64::try_from(self.amount / NANO).ok() } else { None }
    }

    fn approximate(self) -> f64 {
        (self.amount / NANO) as f64 + (self.amount % NANO) as f64 / NANO as f64
    }
}

/// The factor of a suffix: a power of two, and the exponent of a power of ten.
fn scale(suffix: &str) -> Option<(i128, i32)> {
    Some(match suffix {
        "" => (1, 0),
        "n" => (1, -9),
        "u" => (1, -6),
        "m" => (1, -3),
        "k" => (1, 3),
        "M" => (1, 6),
        "G" => (1, 9),
        "T" => (1, 12),
        "P" => (1, 15),
        "E" => (1, 18),
        "Ki" => (1 << 10, 0),
        "Mi" => (1 << 20, 0),
        "Gi" => (1 << 30, 0),
        "Ti" => (1 << 40, 0),
        "Pi" => (1 << 50, 0),
        "Ei" => (1 << 60, 0),
        exponent => {
            let exponent: i32 = exponent.strip_prefix(['e', 'E'])?.parse().ok()?;
            (1, exponent.clamp(-1000, 1000))
        }
    })
}

fn one(args: &[Val<'_>]) -> Result<Quantity, Fault> {
    match args {
        [Val::Quantity(quantity)] => Ok(**quantity),
        _ => Err(unfit(args)),
    }
}

fn order(args: &[Val<'_>]) -> Result<Ordering, Fault> {
    match args {
        [Val::Quantity(a), Val::Quantity(b)] => Ok(a.amount.cmp(&b.amount)),
        _ => Err(unfit(args)),
    }
}

fn sum<'t>(args: &[Val<'t>], sign: i128) -> Result<Val<'t>, Fault> {
    let (a, b) = match args {
        [Val::Quantity(a), Val::Quantity(b)] => (**a, **b),
        [Val::Quantity(a), Val::Int(b)] => (**a, Quantity { amount: i128::from(*b) * NANO, whole: true }),
        _ => return Err(unfit(args)),
    };
    let amount = b.amount.checked_mul(sign).and_then(|b| a.amount.checked_add(b));
    let amount = amount.ok_or_else(|| Fault::words("quantity overflow"))?;
    let whole = match (a.amount, b.amount) {
        (_, 0) => a.whole,
        (0, _) => b.whole,
        _ => a.whole && b.whole,
    };
    Ok(Val::Quantity(Rc::new(Quantity { amount, whole })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_as_kubernetes_reads_them() {
        for (text, amount) in [
            ("1", Some(NANO)),
            ("500m", Some(NANO / 2)),
            ("1.5Gi", Some(1_610_612_736 * NANO)),
            ("-2k", Some(-2000 * NANO)),
            ("1e3", Some(1000 * NANO)),
            ("1E", Some(NANO * 1_000_000_000_000_000_000)),
            ("0.1n", Some(1)),
            (".5", Some(NANO / 2)),
            ("5.", Some(5 * NANO)),
            ("", None),
            ("Gi", Some(0)),
            ("1e-3000", Some(1)),
            ("1 Gi", None),
            ("1KI", None),
            ("1.2.3", None),
        ] {
            assert_eq!(Quantity::parse(text).map(|q| q.amount), amount, "{text}");
        }
    }
}
