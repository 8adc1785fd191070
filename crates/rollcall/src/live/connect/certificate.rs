//! Expiry of a client certificate: the one field of it that tells a person why the cluster rejects it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use readiness::Time;

const DER_SEQUENCE_TAG: u8 = 0x30;
/// `version`, present unless it is the first.
const DER_VERSION_TAG: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// Returns `notAfter` of the first certificate of a PEM text; `None` if it has no certificate.
pub(super) fn certificate_expiry(pem: &[u8]) -> Option<Time> {
    let text = std::str::from_utf8(pem).ok()?;
    let (_, rest) = text.split_once("-----BEGIN CERTIFICATE-----")?;
    let (body, _) = rest.split_once("-----END CERTIFICATE-----")?;
    let der = STANDARD.decode(body.split_ascii_whitespace().collect::<String>()).ok()?;
    not_after(&der)
}

/// RFC 5280, 4.1: Certificate contains tbsCertificate, which contains validity, which contains notBefore and notAfter.
fn not_after(der: &[u8]) -> Option<Time> {
    let (_, certificate, _) = der_element(der)?;
    let (_, mut rest, _) = der_element(certificate)?;
    if *rest.first()? == DER_VERSION_TAG {
        rest = der_element(rest)?.2;
    }
    // Serial number, algorithm, issuer.
    for _ in 0..3 {
        rest = der_element(rest)?.2;
    }
    let (tag, validity, _) = der_element(rest)?;
    let (_, _, after) = der_element(validity).filter(|_| tag == DER_SEQUENCE_TAG)?;
    let (tag, text, _) = der_element(after)?;
    let digits = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let (year, digits) = match tag {
        // Two-digit years stand for 1950 to 2049.
        UTC_TIME => {
            let year: u16 = digits.get(..2)?.parse().ok()?;
            (if year < 50 { 2000 + year } else { 1900 + year }, digits.get(2..)?)
        }
        GENERALIZED_TIME => (digits.get(..4)?.parse().ok()?, digits.get(4..)?),
        _ => return None,
    };
    let two = |at: usize| digits.get(at..at + 2);
    Time::from_rfc3339(&format!("{year:04}-{}-{}T{}:{}:{}Z", two(0)?, two(2)?, two(4)?, two(6)?, two(8)?))
}

/// Splits off the first DER element: returns its tag, its content and the rest.
fn der_element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x83 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    let (inside, after) = rest.split_at_checked(length)?;
    Some((tag, inside, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made by `openssl ca -selfsign -startdate 20260101000000Z -enddate 20260102030405Z`.
    const PEM: &str = "-----BEGIN CERTIFICATE-----\n\
        MIG+MHICAQEwBQYDK2VwMAwxCjAIBgNVBAMMAWEwHhcNMjYwMTAxMDAwMDAwWhcN\n\
        MjYwMTAyMDMwNDA1WjAMMQowCAYDVQQDDAFhMCowBQYDK2VwAyEAwrO8Zvs8MzVr\n\
        3ELXkvCgLc71lq62/pmsl5KwFd4tNo4wBQYDK2VwA0EAXqRH7dzjXg7RE4z6lPw6\n\
        G52b9M//b/VOu/zlBkJl1uV9tudzqTdGRtYQ+3IBEewsaoIdrKHb8W6eSVuB68Ve\n\
        BA==\n\
        -----END CERTIFICATE-----";

    #[test]
    fn a_certificate_says_when_it_ends() {
        let at = certificate_expiry(PEM.as_bytes()).unwrap();
        assert_eq!(at.to_string(), "2026-01-02T03:04:05Z");
        let bundle = format!("Bag Attributes\n    localKeyID: 01\n{PEM}{PEM}");
        assert_eq!(certificate_expiry(bundle.as_bytes()), Some(at));
    }

    #[test]
    fn what_is_none_says_nothing_wherever_it_breaks_off() {
        let body: String = PEM.lines().filter(|line| !line.starts_with("---")).collect();
        let der = STANDARD.decode(body).unwrap();
        for end in 0..der.len() {
            assert_eq!(not_after(&der[..end]), None, "{end}");
        }
        for at in 0..der.len() {
            let mut broken = der.clone();
            broken[at] ^= 0xff;
            // Any input must terminate.
            not_after(&broken);
        }
        for text in
            ["", "-----BEGIN CERTIFICATE-----", "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----"]
        {
            assert_eq!(certificate_expiry(text.as_bytes()), None);
        }
        assert_eq!(certificate_expiry(&[0xff, 0xfe]), None);
    }
}
