//! `Retry-After`: the time for which a server asks not to be asked again.

use std::time::Duration;

use http::HeaderMap;
use http::header::RETRY_AFTER;

use super::date_header::{parse_date, parse_http_date};

/// Reads `Retry-After`: seconds, as Kubernetes sends them, or an HTTP date, as proxies may. A date is taken from the `Date` of the
/// same response, so that no other clock counts; one that is over is zero. `None` if there is neither, or a date of a server
/// that does not say what time it is. Whoever obeys it bounds it.
pub fn parse_retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than fit are more seconds than anyone waits.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let (at, now) = (parse_http_date(text)?, parse_date(headers)?);
    Some(if at > now { at - now } else { Duration::ZERO })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::DATE;

    use super::*;

    const NOW: &str = "Tue, 24 Nov 2026 04:00:00 GMT";

    #[test]
    fn seconds_and_dates_are_read_and_nothing_else() {
        for (date, text, seconds) in [
            (Some(NOW), "5", Some(5)),
            (None, " 120 ", Some(120)),
            (None, "0", Some(0)),
            (None, "18446744073709551615", Some(u64::MAX)),
            (None, "99999999999999999999", Some(u64::MAX)),
            (Some(NOW), "-5", None),
            (Some(NOW), "+5", None),
            (Some(NOW), "1.5", None),
            (Some(NOW), "soon", None),
            (Some(NOW), "", None),
            (Some(NOW), "Tue, 24 Nov 2026 04:00:30 GMT", Some(30)),
            (Some(NOW), "Tuesday, 24-Nov-26 04:01:00 GMT", Some(60)),
            (Some(NOW), "Tue Nov 24 05:00:00 2026", Some(3_600)),
            (Some(NOW), "Tue, 24 Nov 2026 04:00:00 GMT", Some(0)),
            (Some(NOW), "Tue, 24 Nov 2026 03:59:59 GMT", Some(0)),
            (Some(NOW), "Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            (Some(NOW), "Fri, 31 Dec 9999 23:59:59 GMT", Some(251_606_807_999)),
            (None, "Tue, 24 Nov 2026 04:00:30 GMT", None),
            (Some("today"), "Tue, 24 Nov 2026 04:00:30 GMT", None),
        ] {
            let mut headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(text))]);
            headers.extend(date.map(|date| (DATE, HeaderValue::from_static(date))));
            assert_eq!(parse_retry_after(&headers).map(|wait| wait.as_secs()), seconds, "{date:?} {text:?}");
        }
        assert_eq!(parse_retry_after(&HeaderMap::new()), None);
    }
}
