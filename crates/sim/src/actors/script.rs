//! The scripts of the reference workloads: who does what, and when.

use ScriptedStep as S;

use crate::scenario::ReferenceWorkload;
use crate::scenario::{DATABASE, DEPLOYMENT, FLEET, JOB, PLATFORM, STATEFUL_SET, WIDGET};

/// Kind and name of an object in the namespace of all scripts.
pub(crate) type ScriptedObject = (usize, &'static str);

/// A step of a script.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ScriptedStep {
    /// An object is created, of a parent or of none.
    Create(ScriptedObject, Option<ScriptedObject>),
    /// Its controller says that it is ready.
    Ready(ScriptedObject),
    /// Its controller says that it is under way.
    Unready(ScriptedObject),
    /// Its controller says that it has failed.
    Fail(ScriptedObject),
    /// Its phase says that it has failed.
    SayFailed(ScriptedObject),
    /// Its phase says nothing any more.
    SayNothing(ScriptedObject),
    /// Its spec changes to this size.
    Resize(ScriptedObject, i64),
    /// Its operator has handled the current generation.
    Handle(ScriptedObject),
    /// It moves to another parent, or to none.
    Adopt(ScriptedObject, Option<ScriptedObject>),
    /// A finalizer is added.
    Hold(ScriptedObject),
    /// All finalizers are removed.
    Release(ScriptedObject),
    Delete(ScriptedObject),
    /// Those who own it wait for its end where they are deleted in the foreground.
    BlockOwners(ScriptedObject),
    DeleteInForeground(ScriptedObject),
    /// Another client writes a condition of its own.
    WriteForeign(ScriptedObject, &'static str),
    /// Another client changes our condition.
    Tamper(ScriptedObject),
    /// The process ends, and another one begins.
    Restart,
    /// The rule of the first group of the first policy changes.
    EditRule,
    /// The first policy gets a spec that does not compile.
    BreakPolicy,
    /// The first policy gets its first spec again, or is created.
    MendPolicy,
    DeletePolicy,
    /// The first policy turns to shadow mode.
    EnterShadow,
    /// Nothing happens.
    Rest,
}

const PARENT: ScriptedObject = (DATABASE, "p");
const OTHER_PARENT: ScriptedObject = (DATABASE, "q");
const WEB: ScriptedObject = (DEPLOYMENT, "a");
const STORE: ScriptedObject = (STATEFUL_SET, "b");
const RUN: ScriptedObject = (JOB, "j");
const PART: ScriptedObject = (WIDGET, "w");
const MIDDLE: ScriptedObject = (PLATFORM, "m");
const TOP: ScriptedObject = (FLEET, "t");
const BESIDE: ScriptedObject = (DEPLOYMENT, "c");

/// A parent with two children that become ready.
const FIRST_ROLLOUT: [(i64, ScriptedStep); 6] = [
    (0, ScriptedStep::Create(PARENT, None)),
    (300, ScriptedStep::Create(WEB, Some(PARENT))),
    (100, ScriptedStep::Create(STORE, Some(PARENT))),
    (200, ScriptedStep::Handle(PARENT)),
    (900, ScriptedStep::Ready(WEB)),
    (400, ScriptedStep::Ready(STORE)),
];

const NEXT_ROLLOUT: &[(i64, ScriptedStep)] = &[
    (5_000, S::Resize(PARENT, 7)),
    (300, S::Resize(WEB, 3)),
    (100, S::Handle(PARENT)),
    (1_500, S::Ready(WEB)),
    (5_000, S::Fail(STORE)),
    (4_000, S::Ready(STORE)),
];

const CASCADE: &[(i64, ScriptedStep)] = &[
    (0, S::Create(TOP, None)),
    (100, S::Create(MIDDLE, Some(TOP))),
    (100, S::Handle(TOP)),
    (100, S::Create(PARENT, Some(MIDDLE))),
    (100, S::Create(BESIDE, Some(MIDDLE))),
    (100, S::Handle(MIDDLE)),
    (100, S::Create(WEB, Some(PARENT))),
    (100, S::Handle(PARENT)),
    (500, S::Ready(BESIDE)),
    (500, S::Ready(WEB)),
    (6_000, S::Fail(WEB)),
    (4_000, S::Ready(WEB)),
    (4_000, S::Delete(PARENT)),
    (50, S::Delete(WEB)),
    (50, S::Create(PARENT, Some(MIDDLE))),
    (200, S::Create(WEB, Some(PARENT))),
    (300, S::Handle(PARENT)),
    (900, S::Ready(WEB)),
];

const RECREATION: &[(i64, ScriptedStep)] = &[
    (4_000, S::Delete(WEB)),
    (10, S::Create(WEB, Some(PARENT))),
    (2_000, S::Ready(WEB)),
    (4_000, S::Delete(PARENT)),
    (10, S::Create(PARENT, None)),
    (200, S::Delete(WEB)),
    (10, S::Delete(STORE)),
    (500, S::Create(WEB, Some(PARENT))),
    (500, S::Handle(PARENT)),
    (900, S::Ready(WEB)),
    (4_000, S::Delete(PARENT)),
];

const FINISHED_JOB: &[(i64, ScriptedStep)] = &[
    (0, S::Create(PARENT, None)),
    (100, S::Create(RUN, Some(PARENT))),
    (100, S::Create(WEB, Some(PARENT))),
    (100, S::Handle(PARENT)),
    (600, S::Ready(WEB)),
    (800, S::Ready(RUN)),
    (5_000, S::Delete(RUN)),
    (3_000, S::Create(RUN, Some(PARENT))),
    (2_000, S::Fail(RUN)),
    (3_000, S::Delete(RUN)),
    (20, S::Create(RUN, Some(PARENT))),
    (1_000, S::Ready(RUN)),
];

const MOVED_CHILD: &[(i64, ScriptedStep)] = &[
    (0, S::Create(PARENT, None)),
    (0, S::Create(OTHER_PARENT, None)),
    (200, S::Create(WEB, Some(PARENT))),
    (200, S::Create(BESIDE, Some(OTHER_PARENT))),
    (100, S::Handle(PARENT)),
    (100, S::Handle(OTHER_PARENT)),
    (600, S::Ready(WEB)),
    (300, S::Ready(BESIDE)),
    (4_000, S::Adopt(WEB, Some(OTHER_PARENT))),
    (2_000, S::Unready(WEB)),
    (3_000, S::Adopt(WEB, Some(PARENT))),
    (1_000, S::Ready(WEB)),
    (3_000, S::Adopt(WEB, None)),
];

const SELECTED_CHILDREN: &[(i64, ScriptedStep)] = &[
    (0, S::Create(PARENT, None)),
    (200, S::Create(PART, Some(PARENT))),
    (100, S::Handle(PARENT)),
    (600, S::Ready(PART)),
    (4_000, S::Adopt(PART, None)),
    (3_000, S::Adopt(PART, Some(PARENT))),
    (3_000, S::Fail(PART)),
    (3_000, S::Delete(PART)),
    (500, S::Create(PART, Some(PARENT))),
    (1_000, S::Ready(PART)),
];

const SHARED_CONDITIONS: &[(i64, ScriptedStep)] = &[
    (2_000, S::WriteForeign(PARENT, "Degraded")),
    (2_000, S::Fail(WEB)),
    (50, S::WriteForeign(PARENT, "Available")),
    (4_000, S::Tamper(PARENT)),
    (4_000, S::Ready(WEB)),
    (30, S::WriteForeign(PARENT, "Degraded")),
];

const REPORTED_FAILURE: &[(i64, ScriptedStep)] = &[
    (3_000, S::SayFailed(PARENT)),
    (3_000, S::Restart),
    (3_000, S::SayNothing(PARENT)),
    (3_000, S::SayFailed(PARENT)),
    (2_000, S::Resize(PARENT, 9)),
    (300, S::Handle(PARENT)),
    (3_000, S::SayNothing(PARENT)),
];

const HELD_DELETION: &[(i64, ScriptedStep)] = &[
    (2_000, S::Hold(STORE)),
    (1_000, S::Delete(STORE)),
    (30_000, S::Release(STORE)),
    (2_000, S::Hold(PARENT)),
    (1_000, S::Delete(PARENT)),
    (500, S::Unready(WEB)),
    (30_000, S::Release(PARENT)),
];

const FOREGROUND_DELETION: &[(i64, ScriptedStep)] = &[
    (2_000, S::BlockOwners(WEB)),
    (0, S::BlockOwners(STORE)),
    (0, S::Hold(WEB)),
    (0, S::Hold(STORE)),
    (1_000, S::DeleteInForeground(PARENT)),
    (4_000, S::Release(STORE)),
    (3_000, S::Create(BESIDE, Some(PARENT))),
    (30_000, S::Release(WEB)),
];

const NEW_LEADERS: &[(i64, ScriptedStep)] = &[
    (4_000, S::Restart),
    (4_000, S::Resize(PARENT, 9)),
    (200, S::Handle(PARENT)),
    (300, S::Resize(WEB, 3)),
    (100, S::Restart),
    (1_500, S::Ready(WEB)),
    (150, S::Restart),
    (3_000, S::Unready(STORE)),
    (120, S::Restart),
];

const POLICY_EDITS: &[(i64, ScriptedStep)] = &[
    (4_000, S::EditRule),
    (3_000, S::Resize(WEB, 3)),
    (500, S::Ready(WEB)),
    (3_000, S::BreakPolicy),
    (2_000, S::Unready(STORE)),
    (3_000, S::MendPolicy),
    (3_000, S::Ready(STORE)),
    (4_000, S::DeletePolicy),
    (5_000, S::MendPolicy),
];

const MODE_EDITS: &[(i64, ScriptedStep)] = &[
    (0, S::Create(MIDDLE, None)),
    (100, S::Create(PARENT, Some(MIDDLE))),
    (100, S::Handle(MIDDLE)),
    (100, S::Create(WEB, Some(PARENT))),
    (100, S::Handle(PARENT)),
    (900, S::Ready(WEB)),
    (5_000, S::EnterShadow),
    (3_000, S::Unready(WEB)),
    (3_000, S::Ready(WEB)),
    (4_000, S::MendPolicy),
    (4_000, S::Fail(WEB)),
    (3_000, S::Ready(WEB)),
    (3_000, S::EnterShadow),
];

/// Returns the steps of a workload, each with the milliseconds since the one before.
pub(crate) fn steps_of(workload: ReferenceWorkload) -> Vec<(i64, ScriptedStep)> {
    let mut steps = match workload {
        ReferenceWorkload::FinishedJob
        | ReferenceWorkload::SelectedChildren
        | ReferenceWorkload::MovedChild
        | ReferenceWorkload::Cascade
        | ReferenceWorkload::ModeEdits => Vec::new(),
        _ => FIRST_ROLLOUT.to_vec(),
    };
    let more = match workload {
        ReferenceWorkload::Rollout | ReferenceWorkload::KopfRollout | ReferenceWorkload::SilentRollout => {
            NEXT_ROLLOUT
        }
        ReferenceWorkload::Cascade => CASCADE,
        ReferenceWorkload::Recreation => RECREATION,
        ReferenceWorkload::FinishedJob => FINISHED_JOB,
        ReferenceWorkload::MovedChild => MOVED_CHILD,
        ReferenceWorkload::SelectedChildren => SELECTED_CHILDREN,
        ReferenceWorkload::SharedConditions => SHARED_CONDITIONS,
        ReferenceWorkload::ReportedFailure => REPORTED_FAILURE,
        ReferenceWorkload::HeldDeletion => HELD_DELETION,
        ReferenceWorkload::ForegroundDeletion => FOREGROUND_DELETION,
        ReferenceWorkload::NewLeaders => NEW_LEADERS,
        ReferenceWorkload::PolicyEdits => POLICY_EDITS,
        ReferenceWorkload::ModeEdits => MODE_EDITS,
    };
    steps.extend_from_slice(more);
    // Longer than anything that one disturbance begins.
    steps.push((200_000, S::Rest));
    steps
}
