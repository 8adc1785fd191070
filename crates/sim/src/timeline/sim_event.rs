//! The events of a simulation.

use watcher::reflector::AwaitedVersion;

use super::policy_event::{ListStep, ListedSet, OtherReleaseStep, PolicyEvent};
use crate::actors::OperatorVisit;
use crate::wires::{AnsweredRead, LandedWrite, WriteInFlight};

/// A scheduled event.
#[derive(Debug)]
pub(crate) enum SimEvent {
    /// People and controllers take the next action.
    ActorStep,
    /// An autoscaler or a drain moves the number of some workload's pods.
    Churn,
    /// Somebody deletes the definition of a kind.
    DefinitionGoes,
    /// The definition of a kind is put back.
    DefinitionReturns(usize),
    /// Hours begin in which nobody changes anything.
    Night,
    /// They end.
    Morning,
    /// The wire gets the next fault.
    Fault,
    /// An operator handles a parent.
    Operator(OperatorVisit),
    /// All objects owned by this UID become ready.
    Heal(String),
    /// A list or watch of a kind begins.
    Open(usize),
    /// The server answers a list of a kind.
    AnswerList(usize),
    /// The next page of a list arrives.
    Page(usize),
    /// A watch delivers the available lines.
    Deliver(usize),
    /// The loop runs a turn.
    Turn,
    /// A thread has evaluated a custom rule.
    Judged(usize),
    /// A write arrives at the server.
    Send(Box<WriteInFlight>),
    /// The answer to a write arrives, or the write times out.
    Landed(Box<LandedWrite>),
    /// The live read after a failed precondition is answered.
    Reread(Box<LandedWrite>),
    /// The next live read is sent.
    NextRead,
    /// A live read is answered.
    Answered(Box<AnsweredRead>),
    /// Check for drift after the grace time.
    Drift(Vec<AwaitedVersion>),
    /// Audit of one kind.
    Audit(usize),
    /// Another process takes over while this one goes on.
    Takeover,
    /// The process from which another took over notices that its lease is lost.
    OverlapEnds,
    /// A drain takes pods of some workload away, or gives them back.
    Drain,
    /// The status of some parent says that it has failed, or takes that back.
    ReportFailure,
    /// Some parent is deleted in the foreground, or what holds such a deletion lets go.
    DeleteInForeground,
    /// A step of the list and watch of PodDisruptionBudgets.
    Budgets(ListStep),
    /// Another release, or those who write its policies, take a step.
    OtherRelease(OtherReleaseStep),
    /// An event of the policies' part.
    Policy(PolicyEvent),
}

impl SimEvent {
    /// Returns the event of a step of a list and watch.
    pub(crate) fn of_list(of: ListedSet, step: ListStep) -> SimEvent {
        match of {
            ListedSet::Budgets => SimEvent::Budgets(step),
            of => SimEvent::Policy(PolicyEvent::Resolve(of, step)),
        }
    }

    /// Returns `true` if the event ends with the process. Requests that were already sent may still arrive.
    pub(crate) fn is_of_the_process(&self) -> bool {
        !matches!(
            self,
            SimEvent::ActorStep
                | SimEvent::Churn
                | SimEvent::Drain
                | SimEvent::ReportFailure
                | SimEvent::DeleteInForeground
                | SimEvent::Budgets(ListStep::Edit)
                | SimEvent::DefinitionGoes
                | SimEvent::DefinitionReturns(_)
                | SimEvent::Night
                | SimEvent::Morning
                | SimEvent::Fault
                | SimEvent::Operator(..)
                | SimEvent::Heal(_)
                | SimEvent::Send(_)
                | SimEvent::Takeover
                | SimEvent::OverlapEnds
                | SimEvent::OtherRelease(_)
                | SimEvent::Policy(
                    PolicyEvent::Act | PolicyEvent::WriteClaim(_) | PolicyEvent::Resolve(_, ListStep::Edit)
                )
        )
    }

    /// Returns `true` if the event goes on for a process beside which another has begun: its loop runs, and its writes are
    /// answered.
    pub(crate) fn outlives_takeover(&self) -> bool {
        !self.is_of_the_process()
            || matches!(self, SimEvent::Turn | SimEvent::Landed(_) | SimEvent::Reread(_))
    }

    /// Returns `true` if the event belongs to the list or watch of this kind.
    pub(crate) fn is_of_wire(&self, kind: usize) -> bool {
        match self {
            SimEvent::Open(of)
            | SimEvent::AnswerList(of)
            | SimEvent::Page(of)
            | SimEvent::Deliver(of)
            | SimEvent::Policy(PolicyEvent::Follow(of)) => *of == kind,
            _ => false,
        }
    }

    /// Returns `true` if the event changes the world or breaks something: none is left once faults have stopped.
    pub(crate) fn is_unrest(&self) -> bool {
        matches!(
            self,
            SimEvent::ActorStep
                | SimEvent::Churn
                | SimEvent::Drain
                | SimEvent::ReportFailure
                | SimEvent::DeleteInForeground
                | SimEvent::Budgets(ListStep::Edit)
                | SimEvent::DefinitionGoes
                | SimEvent::Night
                | SimEvent::Morning
                | SimEvent::Fault
                | SimEvent::Takeover
                | SimEvent::OtherRelease(OtherReleaseStep::Act)
                | SimEvent::Policy(PolicyEvent::Act | PolicyEvent::Resolve(_, ListStep::Edit))
        )
    }
}
