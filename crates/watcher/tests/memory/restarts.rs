//! What a record says after a restart.

use aggregator::Source;
use readiness::Level;
use watcher::plan::After;
use watcher::reflector::{End, Memories};

use crate::world::{FAILED, READY, UNSEEN, World, job};

#[test]
fn what_was_written_down_outlives_a_restart_in_whatever_order_things_are_read() {
    let world = World::new(After::Remember);
    world.see(&job(1, "migrate", 5, "Complete"));
    world.deleted(&job(1, "migrate", 7, "Complete"));
    world.see(&job(2, "seed", 8, ""));
    let Memories { whose, outcomes } = world.memories();
    for records_first in [true, false] {
        let next = World::blind(After::Remember);
        if records_first {
            // Not even known where Jobs are served.
            next.reflector.recall(whose.clone(), outcomes.clone());
        }
        next.reflector.recollect(&next.jobs);
        next.list(&[]);
        next.reflector.recall(whose.clone(), outcomes.clone());
        next.widget(1, 1);
        assert_eq!((next.counts(1), next.counts(2)), (READY, UNSEEN), "{records_first}");
        assert_eq!(next.reflector.take_unseen().len(), 1, "{records_first}");
    }
}

#[test]
fn a_job_that_is_still_there_after_a_restart_counts_as_it_is() {
    let world = World::new(After::Remember);
    world.see(&job(1, "migrate", 5, ""));
    let next = world.restarted();
    assert_eq!(next.counts(1), UNSEEN, "nothing is said before Jobs were listed");
    next.list(&[job(1, "migrate", 5, "")]);
    assert_eq!(next.counts(1), Some((Level::Progressing, Source::Owner)));
    next.deleted(&job(1, "migrate", 6, "Complete"));
    assert_eq!(next.counts(1), READY);
}

#[test]
fn a_record_is_believed_once_and_later_only_where_nobody_saw() {
    let world = World::new(After::Remember);
    world.see(&job(1, "migrate", 5, ""));
    world.see(&job(2, "seed", 5, "Failed"));
    let (known, next) = (world.memories(), world.restarted());
    next.list(&[]);
    assert_eq!((next.counts(1), next.counts(2)), (UNSEEN, FAILED));
    let mut changed = known.outcomes;
    for outcome in &mut changed {
        outcome.end = End::Complete;
    }
    next.reflector.recall(known.whose, changed);
    assert_eq!((next.counts(1), next.counts(2)), (READY, FAILED));
}
