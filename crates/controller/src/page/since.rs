//! Since when something below a parent has not been ready, as far as anybody was looking: rows keep no such moment, and
//! what is ready needs none.

use std::time::Duration;

use aggregator::{ChildOf, ObjectId};
use readiness::{Level, Time};
use rustc_hash::FxHashMap;
use watcher::reflector::Reflector;

use super::shown::hash;

/// Where nobody looked for longer than this, a change may be as old.
const GAP: Duration = Duration::from_secs(10);

/// What is not ready, and since when; `None` where nobody was looking.
#[derive(Debug, Default)]
pub(super) struct Since {
    held: FxHashMap<ObjectId, (Level, Option<Time>)>,
    looked: Option<Time>,
}

impl Since {
    /// Looks at every child, knowing what was seen `before`; returned are also fingerprints of those that are not ready.
    /// A place that is given to another object between two looks is seen by its creation.
    pub(super) fn look(
        before: &Since,
        edges: &[ChildOf],
        reflector: &Reflector,
        now: Time,
    ) -> (Since, FxHashMap<ObjectId, u64>) {
        let looking = before.looked.is_some_and(|before| now - before < GAP);
        let (mut held, mut digests) = (FxHashMap::default(), FxHashMap::default());
        for edge in edges {
            let read = reflector.read(edge.child, |row| {
                let verdict = row.through(edge.lens).at(now);
                let digest = hash((verdict, &row.name));
                (verdict.level, digest, row.created())
            });
            let Some((level, digest, created)) = read.filter(|(level, ..)| *level != Level::Ready) else {
                continue;
            };
            digests.insert(edge.child, digest);
            let since = match before.held.get(&edge.child) {
                Some((held, since)) if *held == level => *since,
                _ if looking => Some(now),
                _ => None,
            };
            held.insert(edge.child, (level, since.map(|since| since.max(created))));
        }
        (Since { held, looked: Some(now) }, digests)
    }

    /// Since when this one has had this verdict.
    pub(super) fn of(&self, id: ObjectId, level: Level) -> Option<Time> {
        self.held.get(&id).filter(|(held, _)| *held == level).and_then(|(_, since)| *since)
    }
}
