//! Kubernetes quantities such as `500m` and `1.5Gi`.

/// `amount × 10^-9`: the precision that Kubernetes keeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResourceQuantity {
    pub(crate) amount: i128,
    /// Written without fractional units: to Kubernetes `1000m` is no integer.
    pub(crate) whole: bool,
}

impl PartialEq for ResourceQuantity {
    fn eq(&self, other: &Self) -> bool {
        self.amount == other.amount
    }
}

pub(crate) const NANOS_PER_UNIT: i128 = 1_000_000_000;

/// Largest amount kept; far beyond any real quantity.
const MAX_QUANTITY_AMOUNT: i128 = i128::MAX / 4;

impl ResourceQuantity {
    /// Parses a number with a binary or decimal suffix or an exponent. Anything finer than 10^-9 is rounded up.
    pub(crate) fn parse_quantity(text: &str) -> Option<ResourceQuantity> {
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
        // Missing digits are zero. Excess integer digits saturate; fraction digits finer than a hundredth of a nano are
        // ignored.
        let kept = &fraction[..fraction.len().min(11)];
        let digits: i128 = format!("0{whole}{kept}").parse().unwrap_or(MAX_QUANTITY_AMOUNT);
        // amount = digits × 10^(9 - places) × scale
        let (binary, exponent) = suffix_scale(suffix)?;
        let power = 9 - i32::try_from(kept.len()).ok()? + exponent;
        let scaled = digits.saturating_mul(binary);
        let factor = 10i128.checked_pow(power.unsigned_abs());
        let amount = match factor {
            _ if scaled == 0 => 0,
            Some(factor) if power >= 0 => scaled.saturating_mul(factor).min(MAX_QUANTITY_AMOUNT),
            None if power >= 0 => MAX_QUANTITY_AMOUNT,
            Some(factor) => (scaled / factor + i128::from(scaled % factor != 0)).min(MAX_QUANTITY_AMOUNT),
            None => 1,
        };
        let whole = if binary == 1 { power >= 9 } else { fraction.is_empty() };
        Some(ResourceQuantity { amount: if negative { -amount } else { amount }, whole })
    }

    pub(crate) fn to_integer(self) -> Option<i64> {
        if self.whole { i64::try_from(self.amount / NANOS_PER_UNIT).ok() } else { None }
    }

    #[expect(clippy::cast_precision_loss, reason = "the result is approximate, as its name says")]
    pub(crate) fn to_approximate_f64(self) -> f64 {
        (self.amount / NANOS_PER_UNIT) as f64 + (self.amount % NANOS_PER_UNIT) as f64 / NANOS_PER_UNIT as f64
    }
}

/// Returns the factor of a suffix: a power of two, and the exponent of a power of ten.
fn suffix_scale(suffix: &str) -> Option<(i128, i32)> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_as_kubernetes_reads_them() {
        for (text, amount) in [
            ("1", Some(NANOS_PER_UNIT)),
            ("500m", Some(NANOS_PER_UNIT / 2)),
            ("1.5Gi", Some(1_610_612_736 * NANOS_PER_UNIT)),
            ("-2k", Some(-2000 * NANOS_PER_UNIT)),
            ("1e3", Some(1000 * NANOS_PER_UNIT)),
            ("1E", Some(NANOS_PER_UNIT * 1_000_000_000_000_000_000)),
            ("0.1n", Some(1)),
            (".5", Some(NANOS_PER_UNIT / 2)),
            ("5.", Some(5 * NANOS_PER_UNIT)),
            ("", None),
            ("Gi", Some(0)),
            ("1e-3000", Some(1)),
            ("1 Gi", None),
            ("1KI", None),
            ("1.2.3", None),
        ] {
            assert_eq!(ResourceQuantity::parse_quantity(text).map(|q| q.amount), amount, "{text}");
        }
    }
}
