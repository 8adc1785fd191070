//! Rewriting of the watch requests of kube's watcher.

use std::ops::Range;
use std::time::Duration;

use http::Uri;
use timer::Seed;

use super::errors::BoxError;

/// Placeholder for the resourceVersion of an object without a readable one. kube requires one of every object to resume
/// from; the guard inserts the last known one, so that no event is skipped, at the price of repeating a few.
pub(crate) const UNKNOWN_VERSION: &str = "unknown";

/// Returns `true` if the request opens a watch.
pub(super) fn is_watch(uri: &Uri) -> bool {
    uri.query().is_some_and(|query| query.split('&').any(|pair| pair == "watch=true" || pair == "watch=1"))
}

/// Position from which the next watch of a follow resumes.
#[derive(Debug, Default)]
pub(super) struct WatchPosition {
    opens: u64,
    version: String,
}

impl WatchPosition {
    /// Returns the rewritten watch request and the watch length requested from the server.
    pub(super) fn rewrite_watch(
        &mut self,
        uri: &Uri,
        lengths: &Range<Duration>,
        seed: Seed,
    ) -> Result<(Uri, Duration), BoxError> {
        self.opens += 1;
        let length =
            lengths.start + seed.duration_below(lengths.end.saturating_sub(lengths.start), self.opens);
        // Whole seconds, as the API requires; never 0, which the server treats as unlimited.
        let length = Duration::from_secs(length.as_secs().max(1));
        let query = uri.query().unwrap_or_default();
        let pairs: Vec<_> = query.split('&').map(|pair| self.rewrite_pair(pair, length)).collect();
        let target = format!("{}?{}", uri.path(), pairs.join("&"));
        let mut parts = uri.clone().into_parts();
        parts.path_and_query = Some(target.parse()?);
        Ok((Uri::from_parts(parts)?, length))
    }

    fn rewrite_pair(&mut self, pair: &str, length: Duration) -> String {
        match pair.split_once('=') {
            Some(("timeoutSeconds", _)) => format!("timeoutSeconds={}", length.as_secs()),
            Some(("resourceVersion", UNKNOWN_VERSION)) => format!("resourceVersion={}", self.version),
            Some(("resourceVersion", version)) => {
                version.clone_into(&mut self.version);
                pair.to_owned()
            }
            _ => pair.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WATCH_TIMEOUTS: Range<Duration> = Duration::from_secs(60)..Duration::from_secs(90);

    fn watch(place: &mut WatchPosition, version: &str) -> (String, u64) {
        let uri =
            format!("/api/v1/pods?watch=true&timeoutSeconds=290&resourceVersion={version}").parse().unwrap();
        let (uri, length) = place.rewrite_watch(&uri, &WATCH_TIMEOUTS, Seed(5)).unwrap();
        (uri.to_string(), length.as_secs())
    }

    #[test]
    fn watches_stand_for_60_to_90_seconds_each_its_own() {
        let mut place = WatchPosition::default();
        let lengths: Vec<u64> = (0..50).map(|_| watch(&mut place, "7").1).collect();
        assert!(lengths.iter().all(|length| (60..90).contains(length)), "{lengths:?}");
        assert!(lengths.iter().collect::<std::collections::BTreeSet<_>>().len() > 10, "{lengths:?}");
        let again: Vec<u64> = {
            let mut place = WatchPosition::default();
            (0..50).map(|_| watch(&mut place, "7").1).collect()
        };
        assert_eq!(lengths, again, "the same seed gives the same lengths");
    }

    #[test]
    fn an_unknown_version_goes_on_from_the_last_known_one() {
        let mut place = WatchPosition::default();
        let (first, length) = watch(&mut place, "41");
        assert_eq!(first, format!("/api/v1/pods?watch=true&timeoutSeconds={length}&resourceVersion=41"));
        let (second, length) = watch(&mut place, UNKNOWN_VERSION);
        assert_eq!(second, format!("/api/v1/pods?watch=true&timeoutSeconds={length}&resourceVersion=41"));
    }
}
