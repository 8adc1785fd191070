//! What an Event reports, and which transitions are reported.

use crate::transitions::{ObjectRef, Transition};

/// Occurrence that is reported by an Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventNotice {
    /// Object that the Event is about.
    pub(crate) about: ObjectRef,
    /// API version of its kind.
    pub(crate) version: String,
    /// Its uid.
    pub(crate) uid: String,
    /// Reason in CamelCase, from a closed set.
    pub(crate) reason: &'static str,
    /// Human-readable note; truncated to the size that the API accepts.
    pub(crate) note: String,
    /// The Event has type Warning.
    pub(crate) warning: bool,
}

impl EventNotice {
    /// Notice of a transition: `None` in shadow mode, for a new parent that is ready, and while a parent settles.
    pub(super) fn from_transition(transition: &Transition) -> Option<EventNotice> {
        use readiness::rollup::ParentReason::{
            AllChildrenReady, ChildrenFailed, ChildrenMissing, ChildrenSettling, ChildrenStuck,
            ChildrenUnknown, DeadlineExceeded, DeletionStuck, KindNotVisible, OperatorFailed, OperatorSilent,
            PolicyRefused, RuleChanged, TemplateFailed, TooManyChildren, WatchStale,
        };
        let from = transition.from?;
        if transition.shadow || transition.to == ChildrenSettling {
            return None;
        }
        let warning = match transition.to {
            // During a rollout children are missing because they are yet to be created.
            ChildrenMissing => from == AllChildrenReady,
            ChildrenFailed | ChildrenStuck | ChildrenUnknown | DeadlineExceeded | DeletionStuck
            | KindNotVisible | RuleChanged | OperatorFailed | OperatorSilent | PolicyRefused
            | TemplateFailed | TooManyChildren | WatchStale => true,
            _ => false,
        };
        Some(EventNotice {
            about: transition.parent.clone(),
            version: transition.version.clone(),
            uid: transition.uid.clone(),
            reason: transition.to.as_str(),
            note: transition.message.clone(),
            warning,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use readiness::Time;
    use readiness::rollup::ParentReason::{
        self, AllChildrenReady, ChildrenFailed, ChildrenMissing, ChildrenPending,
    };

    fn worth(from: Option<ParentReason>, to: ParentReason, shadow: bool) -> Option<bool> {
        let transition = Transition {
            at: Time(0),
            policy: String::new(),
            parent: ObjectRef::default(),
            version: String::new(),
            uid: String::new(),
            generation: None,
            from,
            to,
            message: String::new(),
            causes: Vec::new(),
            shadow,
            kind: aggregator::KindId(0),
        };
        EventNotice::from_transition(&transition).map(|notice| notice.warning)
    }

    #[test]
    fn a_warning_is_what_somebody_should_look_at() {
        assert_eq!(worth(Some(AllChildrenReady), ChildrenFailed, false), Some(true));
        assert_eq!(worth(Some(ChildrenFailed), AllChildrenReady, false), Some(false));
        assert_eq!(worth(Some(AllChildrenReady), ChildrenMissing, false), Some(true));
        assert_eq!(worth(Some(ChildrenPending), ChildrenMissing, false), Some(false));
    }

    #[test]
    fn there_is_none_in_shadow_nor_at_first_sight_nor_while_it_settles() {
        assert_eq!(worth(Some(AllChildrenReady), ChildrenFailed, true), None);
        assert_eq!(worth(None, ChildrenPending, false), None);
        assert_eq!(worth(Some(ChildrenPending), ParentReason::ChildrenSettling, false), None);
    }
}
