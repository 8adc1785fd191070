//! What a request of kube's watcher asks for, and what it should have asked for.

use std::ops::Range;
use std::time::Duration;

use http::Uri;
use timer::Seed;

use super::BoxError;

/// Stands for the resourceVersion of an object that has none we can read. kube wants one of every object to resume from;
/// the guard puts in the last one that is known, so that nothing is skipped, at the price of hearing a few events again.
pub(crate) const UNKNOWN_VERSION: &str = "unknown";

/// Whether this opens a watch.
pub(super) fn is_watch(uri: &Uri) -> bool {
    uri.query().is_some_and(|query| query.split('&').any(|pair| pair == "watch=true" || pair == "watch=1"))
}

/// From where a follow's next watch goes on.
#[derive(Debug, Default)]
pub(super) struct Place {
    opens: u64,
    version: String,
}

impl Place {
    /// The watch that should be asked for, and how long the server is asked to let it stand.
    pub(super) fn watch(
        &mut self,
        uri: &Uri,
        lengths: &Range<Duration>,
        seed: Seed,
    ) -> Result<(Uri, Duration), BoxError> {
        self.opens += 1;
        let length = lengths.start + seed.below(lengths.end.saturating_sub(lengths.start), self.opens);
        // In whole seconds, as the API wants it; never 0, which the server takes for "as long as you like".
        let length = Duration::from_secs(length.as_secs().max(1));
        let query = uri.query().unwrap_or_default();
        let pairs: Vec<_> = query.split('&').map(|pair| self.pair(pair, length)).collect();
        let target = format!("{}?{}", uri.path(), pairs.join("&"));
        let mut parts = uri.clone().into_parts();
        parts.path_and_query = Some(target.parse()?);
        Ok((Uri::from_parts(parts)?, length))
    }

    fn pair(&mut self, pair: &str, length: Duration) -> String {
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

    const LENGTHS: Range<Duration> = Duration::from_secs(60)..Duration::from_secs(90);

    fn watch(place: &mut Place, version: &str) -> (String, u64) {
        let uri =
            format!("/api/v1/pods?watch=true&timeoutSeconds=290&resourceVersion={version}").parse().unwrap();
        let (uri, length) = place.watch(&uri, &LENGTHS, Seed(5)).unwrap();
        (uri.to_string(), length.as_secs())
    }

    #[test]
    fn watches_stand_for_60_to_90_seconds_each_its_own() {
        let mut place = Place::default();
        let lengths: Vec<u64> = (0..50).map(|_| watch(&mut place, "7").1).collect();
        assert!(lengths.iter().all(|length| (60..90).contains(length)), "{lengths:?}");
        assert!(lengths.iter().collect::<std::collections::BTreeSet<_>>().len() > 10, "{lengths:?}");
        let again: Vec<u64> = {
            let mut place = Place::default();
            (0..50).map(|_| watch(&mut place, "7").1).collect()
        };
        assert_eq!(lengths, again, "the same seed gives the same lengths");
    }

    #[test]
    fn an_unknown_version_goes_on_from_the_last_known_one() {
        let mut place = Place::default();
        let (first, length) = watch(&mut place, "41");
        assert_eq!(first, format!("/api/v1/pods?watch=true&timeoutSeconds={length}&resourceVersion=41"));
        let (second, length) = watch(&mut place, UNKNOWN_VERSION);
        assert_eq!(second, format!("/api/v1/pods?watch=true&timeoutSeconds={length}&resourceVersion=41"));
    }
}
