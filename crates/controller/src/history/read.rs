//! Queries of the history.

use std::io::{BufRead, BufReader, Read};
use std::time::Duration;

use flate2::read::MultiGzDecoder;
use futures::StreamExt;
use readiness::Time;
use watcher::status::time;

use super::HistoryStore;
use super::batch::date_of;
use super::store::DAY_FOLDER;
pub use super::stored_line::{
    HistoryAnswer, HistoryEntry, HistoryLineKind, HistoryRollout, HistoryRolloutPart,
};

/// Maximum number of batches read concurrently.
const MAX_CONCURRENT_BATCH_READS: usize = 8;
/// Maximum size of an uncompressed batch, in bytes. Rollcall writes none that is larger.
const MAX_BATCH_BYTES: u64 = 64 << 20;
const ONE_DAY: Duration = Duration::from_secs(24 * 3_600);

/// Result of a query.
#[derive(Debug, Default)]
pub struct HistoryEntries {
    /// Lines, oldest first.
    pub entries: Vec<HistoryEntry>,
    /// Keys of batches that could not be read completely, with the error.
    pub unreadable: Vec<(String, String)>,
}

impl HistoryEntries {
    /// Reads every line of this kind from `since` to `until` that matches `wanted`.
    pub async fn read_range(
        store: &HistoryStore,
        kind: HistoryLineKind,
        (since, until): (Time, Time),
        wanted: impl Fn(&HistoryEntry) -> bool,
    ) -> anyhow::Result<HistoryEntries> {
        // Nothing was told before the epoch, and years of another length compare differently.
        let since = since.max(Time(0));
        // The store lists keys after the first one, exclusively. Day and time are both of that second, which may be of the day
        // before.
        let before = Time((since.0 - 1_000).max(0));
        let first = format!("{DAY_FOLDER}{}/{}", date_of(before), key_time(before));
        // One more day: the server's clock may be ahead, so that the last transitions have a later date.
        let days = date_of(before)..=date_of(until + ONE_DAY);
        let mut keys = Vec::new();
        for day in store.list_days().await?.iter().filter(|day| days.contains(*day)) {
            keys.extend(store.list_batches(&format!("{DAY_FOLDER}{day}"), &first).await?);
        }
        let mut found = HistoryEntries::default();
        let mut batches = futures::stream::iter(keys)
            .map(|key| async move { (store.get_batch(&key).await, key) })
            .buffer_unordered(MAX_CONCURRENT_BATCH_READS);
        let from = time::format_millis(since);
        while let Some((batch, key)) = batches.next().await {
            let unread = match batch {
                Ok(bytes) => decode_lines(&bytes, |line| {
                    let is_kind = line.rollout.is_some() == (kind == HistoryLineKind::Rollouts);
                    if is_kind && line.at >= from && wanted(&line) {
                        found.entries.push(line);
                    }
                }),
                Err(error) => Some(format!("{error:#}")),
            };
            found.unreadable.extend(unread.map(|why| (key.to_string(), why)));
        }
        found.entries.sort_by(|a, b| a.at.cmp(&b.at));
        found.unreadable.sort();
        Ok(found)
    }
}

/// `134502`.
fn key_time(at: Time) -> String {
    time::format_seconds(at).get(11..19).unwrap_or_default().replace(':', "")
}

/// Passes on every line of a batch. Returns the error if the batch could not be read completely.
fn decode_lines(bytes: &[u8], mut take: impl FnMut(HistoryEntry)) -> Option<String> {
    let mut broken = None;
    for line in BufReader::new(MultiGzDecoder::new(bytes).take(MAX_BATCH_BYTES)).split(b'\n') {
        let read = line.map_err(|error| error.to_string());
        match read.and_then(|line| serde_json::from_slice(&line).map_err(|error| error.to_string())) {
            Ok(line) => take(line),
            Err(error) => broken = Some(error),
        }
        if broken.is_some() {
            break;
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::super::batch::tests::{NOW, transition};
    use super::super::batch::{HistoryBatch, HistoryLine, LineBuffer};
    use super::super::rollout_line::RolloutLine;
    use super::HistoryLineKind::{Rollouts, Transitions};
    use super::*;
    use object_store::ObjectStoreExt;
    use object_store::memory::InMemory;
    use object_store::path::Path;
    use std::sync::Arc;

    fn store() -> HistoryStore {
        HistoryStore {
            objects: Arc::new(InMemory::new()),
            prefix: Path::from("a/b"),
            url: "memory".to_owned(),
        }
    }

    async fn put(store: &HistoryStore, batch: &HistoryBatch) {
        let body = batch.encode_gzip().unwrap();
        store.objects.put(&store.object_path(&batch.key), body.into()).await.unwrap();
    }

    async fn keep(store: &HistoryStore, messages: &[(u64, &str)]) {
        let mut buffer = LineBuffer::default();
        for (seconds, message) in messages {
            buffer
                .push(HistoryLine::Transition(transition(NOW + Duration::from_secs(*seconds), message)), NOW);
        }
        let mut number = 0;
        while let Some(batch) = buffer.take_batch("pod", number) {
            put(store, &batch).await;
            number += 1;
        }
    }

    async fn messages(store: &HistoryStore, since: u64) -> Vec<String> {
        let since = NOW + Duration::from_secs(since);
        let found = HistoryEntries::read_range(
            store,
            Transitions,
            (since, NOW + Duration::from_secs(90_000)),
            |_| true,
        )
        .await
        .unwrap();
        assert!(found.unreadable.is_empty(), "{:?}", found.unreadable);
        found.entries.into_iter().map(|line| line.message).collect()
    }

    #[tokio::test]
    async fn what_was_put_away_is_found_again_in_its_order_over_midnight() {
        let store = store();
        keep(&store, &[(0, "one"), (30, "two"), (90, "three"), (86_400, "four")]).await;
        assert_eq!(messages(&store, 0).await, ["one", "two", "three", "four"]);
        assert_eq!(messages(&store, 10).await, ["two", "three", "four"]);
        assert_eq!(messages(&store, 60).await, ["three", "four"], "in the first second of a day");
        assert_eq!(messages(&store, 90).await, ["three", "four"]);
        assert_eq!(messages(&store, 91).await, ["four"]);
        let none = HistoryEntries::read_range(&store, Transitions, (NOW, NOW), |line| line.name == "other")
            .await
            .unwrap();
        assert!(none.entries.is_empty());
    }

    #[tokio::test]
    async fn a_line_is_read_as_it_was_written() {
        let store = store();
        keep(&store, &[(0, "1 of 3 not ready")]).await;
        let found =
            HistoryEntries::read_range(&store, Transitions, (NOW, NOW), |line| line.kind == "Database")
                .await
                .unwrap();
        let [line] = &found.entries[..] else { panic!("{found:?}") };
        let again = serde_json::to_value(line).unwrap();
        assert_eq!(again, serde_json::to_value(&*transition(NOW, "1 of 3 not ready")).unwrap());
    }

    #[tokio::test]
    async fn a_rollout_is_read_as_it_was_written_and_is_no_transition() {
        let store = store();
        let rollout = HistoryEntry {
            at: time::format_millis(NOW),
            kind: "Database".to_owned(),
            generation: Some(7),
            rollout: Some(HistoryRollout { from: "then".to_owned(), ..HistoryRollout::default() }),
            ..HistoryEntry::default()
        };
        let mut buffer = LineBuffer::default();
        // It was read after the transition was made, and waited in another queue.
        buffer.push(HistoryLine::Transition(transition(NOW + Duration::from_secs(9), "ready")), NOW);
        buffer.push(HistoryLine::Rollout(Arc::new(RolloutLine { at: NOW, entry: rollout.clone() })), NOW);
        put(&store, &buffer.take_batch("pod", 0).unwrap()).await;
        assert_eq!(messages(&store, 9).await, ["ready"], "the batch is named by its latest line");
        let found = HistoryEntries::read_range(&store, Rollouts, (NOW, NOW), |_| true).await.unwrap();
        assert_eq!(found.entries, [rollout]);
    }

    #[tokio::test]
    async fn what_is_broken_is_named_and_the_rest_is_read() {
        let store = store();
        keep(&store, &[(0, "one")]).await;
        let mut cut =
            HistoryBatch { key: String::new(), lines: vec![HistoryLine::Transition(transition(NOW, "cut"))] }
                .encode_gzip()
                .unwrap();
        cut.truncate(cut.len() / 2);
        for (key, bytes) in [("235901-x-1", cut), ("235902-x-1", b"no gzip".to_vec())] {
            let at = store.object_path(&format!("date=2026-11-21/{key}.ndjson.gz"));
            store.objects.put(&at, bytes.into()).await.unwrap();
        }
        let found = HistoryEntries::read_range(&store, Transitions, (NOW, NOW), |_| true).await.unwrap();
        assert_eq!(found.entries.iter().map(|l| &*l.message).collect::<Vec<_>>(), ["one"]);
        assert_eq!(found.unreadable.len(), 2, "{:?}", found.unreadable);
    }

    #[test]
    fn what_unpacks_to_more_than_ever_was_packed_is_not_unpacked() {
        use std::io::Write;
        let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        let zeros = vec![b' '; 1 << 20];
        for _ in 0..80 {
            bomb.write_all(&zeros).unwrap();
        }
        let bomb = bomb.finish().unwrap();
        assert!(decode_lines(&bomb, |_| panic!("there is no line in it")).is_some());
    }
}
