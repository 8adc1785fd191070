//! What a failing watch of the service's own is said to be, and when it counts as stale.

use tokio::time::advance;

use super::*;

type Event = FollowEvent<()>;

struct Observed {
    own: OwnWatches,
    metrics: Arc<Metrics>,
}

impl Observed {
    fn new(kind: OwnWatchKind, scope: &str) -> Observed {
        let metrics = Arc::new(Metrics::new(10).expect("metrics"));
        let own = OwnWatches::new(watch::channel(OwnWatchStates::default()).0, metrics.clone());
        drop(own.observed::<()>(kind, scope, futures::stream::empty().boxed()));
        Observed { own, metrics }
    }

    fn tell(&self, kind: OwnWatchKind, scope: &str, event: &Event) {
        self.own.note_event(&(kind, scope.to_owned()), event);
    }

    fn lines(&self) -> Vec<String> {
        self.own.states.borrow().trouble_lines()
    }

    fn is_stale(&self, label: &str) -> bool {
        let (text, series) =
            (self.metrics.encode_text(), format!("rollcall_watch_stale{{kind=\"{label}\"}} "));
        let value = text.lines().find_map(|line| line.strip_prefix(&series));
        value.expect("a series from the start") == "1"
    }
}

fn failure(cause: ApiFailureCause) -> Event {
    FollowEvent::Failure(FollowFailure { cause, detail: "the server's words".to_owned() })
}

const POLICIES: (OwnWatchKind, &str) = (OwnWatchKind::Policies, "");
const POLICY_LABEL: &str = "ReadinessPolicy.rollcall.dev";

#[tokio::test(start_paused = true)]
async fn policies_that_may_not_be_listed_are_stale_in_seconds_and_not_at_the_first_refusal() {
    let observed = Observed::new(POLICIES.0, POLICIES.1);
    assert!(!observed.is_stale(POLICY_LABEL) && observed.lines().is_empty());
    observed.tell(POLICIES.0, "", &failure(ApiFailureCause::Forbidden));
    assert!(!observed.is_stale(POLICY_LABEL));
    let lines = observed.lines();
    assert!(
        lines[0].starts_with("policies: not permitted to list and watch readinesspolicies.rollcall.dev; "),
        "{lines:?}"
    );
    assert!(lines[0].ends_with("nothing was read yet (the server's words)"), "{lines:?}");
    advance(FORBIDDEN_AFTER).await;
    observed.tell(POLICIES.0, "", &failure(ApiFailureCause::Forbidden));
    assert!(observed.is_stale(POLICY_LABEL));
    observed.tell(POLICIES.0, "", &FollowEvent::Init);
    observed.tell(POLICIES.0, "", &FollowEvent::Alive);
    assert!(observed.is_stale(POLICY_LABEL), "a page is no list");
    observed.tell(POLICIES.0, "", &FollowEvent::InitDone);
    assert!(!observed.is_stale(POLICY_LABEL) && observed.lines().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_fails_while_it_runs_is_told_at_once_and_stale_after_two_minutes() {
    let observed = Observed::new(POLICIES.0, POLICIES.1);
    observed.tell(POLICIES.0, "", &FollowEvent::Init);
    observed.tell(POLICIES.0, "", &FollowEvent::InitDone);
    for _ in 0..3 {
        observed.tell(POLICIES.0, "", &failure(ApiFailureCause::Forbidden));
        assert!(!observed.is_stale(POLICY_LABEL));
        assert!(observed.lines()[0].contains("what was last read stays in force"), "{:?}", observed.lines());
        advance(STALE_AFTER / 3).await;
    }
    observed.tell(POLICIES.0, "", &failure(ApiFailureCause::Connection));
    assert!(observed.is_stale(POLICY_LABEL), "it has failed all the time, whatever by");
    observed.tell(POLICIES.0, "", &FollowEvent::Alive);
    assert!(!observed.is_stale(POLICY_LABEL) && observed.lines().is_empty(), "its watch goes on");
}

#[tokio::test(start_paused = true)]
async fn a_configmap_that_no_policy_names_any_more_need_not_be_permitted() {
    let observed = Observed::new(OwnWatchKind::Scripts, "shop/scripts");
    observed.tell(OwnWatchKind::Scripts, "shop/scripts", &failure(ApiFailureCause::Forbidden));
    advance(STALE_AFTER).await;
    observed.tell(OwnWatchKind::Scripts, "shop/scripts", &failure(ApiFailureCause::Forbidden));
    assert!(observed.is_stale("ConfigMap"));
    assert!(observed.lines()[0].starts_with("ConfigMap of scripts shop/scripts: "), "{:?}", observed.lines());
    observed.own.set_needed(OwnWatchKind::Scripts, |_| false);
    assert!(!observed.is_stale("ConfigMap") && observed.lines().is_empty());
    observed.own.set_needed(OwnWatchKind::Scripts, |scope| scope == "shop/scripts");
    assert!(observed.is_stale("ConfigMap"), "it is needed again");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_breaks_and_is_opened_again_is_not_named() {
    let observed = Observed::new(POLICIES.0, POLICIES.1);
    observed.tell(POLICIES.0, "", &failure(ApiFailureCause::Connection));
    assert_eq!(observed.lines().len(), 1, "nothing was listed");
    observed.tell(POLICIES.0, "", &FollowEvent::InitDone);
    observed.tell(POLICIES.0, "", &failure(ApiFailureCause::Connection));
    assert!(observed.lines().is_empty());
    advance(UNNAMED_FOR).await;
    assert_eq!(observed.lines().len(), 1, "it is not");
}

#[tokio::test(start_paused = true)]
async fn groups_whose_definition_is_not_installed_are_no_trouble() {
    let observed = Observed::new(OwnWatchKind::Groups, "");
    observed.tell(OwnWatchKind::Groups, "", &failure(ApiFailureCause::NotInstalled));
    advance(STALE_AFTER).await;
    observed.tell(OwnWatchKind::Groups, "", &failure(ApiFailureCause::NotInstalled));
    assert!(!observed.is_stale("ReadinessGroup.rollcall.dev") && observed.lines().is_empty());
}
