//! Percent-encoding of values in the query or the path of a request.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Everything but the unreserved characters of RFC 3986.
const RESERVED_CHARACTERS: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Percent-encodes a value in a query, or a segment of a path.
pub fn percent_encode(value: &str) -> String {
    utf8_percent_encode(value, RESERVED_CHARACTERS).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unreserved_characters_stay() {
        assert_eq!(percent_encode("app in (a, b),!c"), "app%20in%20%28a%2C%20b%29%2C%21c");
        assert_eq!(percent_encode("Az0-._~/ü"), "Az0-._~%2F%C3%BC");
    }
}
