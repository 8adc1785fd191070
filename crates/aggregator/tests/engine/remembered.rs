//! A remembered child counts by its outcome.

use readiness::Level::{Failed, Progressing, Ready, Unknown};

use crate::answers::well;
use crate::ask::HarnessQueries as _;
use crate::driver::EngineDriver as _;

#[test]
fn to_be_remembered_instead_of_there_moves_nothing() {
    let mut w = well();
    let before = w.server.log.len();
    w.change("web", |web| web.remembered = true);
    w.run(60_000);
    assert_eq!((w.says("db").as_str(), w.server.log.len()), ("AllChildrenReady", before));
    w.respecify("db", aggregator::HandledEvidence::Handled);
    w.run(60_000);
    assert_eq!(w.says("db"), "AllChildrenReady", "it counts for the next generation too");
}

#[test]
fn what_is_remembered_holds_its_parent_back_as_what_is_there_does() {
    for (level, says) in [(Failed, "ChildrenFailed"), (Unknown, "ChildrenUnknown")] {
        let mut w = well();
        w.change("web", |web| web.remembered = true);
        w.turn("web", level);
        w.run(60_000);
        assert_eq!(w.says("db"), says);
        w.restart(&["web", "db"]);
        w.run(60_000);
        assert_eq!(w.says("db"), says, "after a restart");
    }
}

#[test]
fn what_takes_the_place_of_what_was_remembered_starts_afresh() {
    let mut w = well();
    w.change("web", |web| web.remembered = true);
    w.run(1_000);
    w.child("web-again", "db", Progressing);
    w.remove("web");
    w.run(60_000);
    assert_eq!(w.says("db"), "ChildrenProgressing");
    w.turn("web-again", Ready);
    w.run(60_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
}

#[test]
fn what_is_remembered_no_more_is_missing() {
    let mut w = well();
    w.change("web", |web| web.remembered = true);
    w.change("web", |web| web.owners.clear());
    w.run(60_000);
    assert_eq!(w.says("db"), "ChildrenMissing");
}
