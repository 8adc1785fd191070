//! The streams of randomness of a seed.

use super::dice::Dice;

/// A stream of randomness: one for each concern.
///
/// **Invariant:** no two concerns share one, but those that [`StreamLayout::Shared`] keeps together. What is new takes a new
/// number: then the histories of all seeds stay as they were, but for what is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum DiceStream {
    /// Kinds and policies of the scenario.
    Scenario = 1,
    /// Outages; all faults and delays where streams are shared.
    Faults = 2,
    /// Remembered Jobs, and what happens to them.
    Jobs = 3,
    /// Room of the writer.
    WriterRoom = 4,
    /// Objects whose existence a server denies.
    Denials = 5,
    /// The way of policies to the service.
    PolicyWire = 6,
    /// Authors of policies.
    Authors = 7,
    /// Namespaces whose children count for cluster-scoped parents.
    Namespaces = 8,
    /// What authors change of these.
    NamespaceEdits = 9,
    /// When kinds that are not followed any more are forgotten.
    Forgetting = 10,
    /// Relists of Jobs.
    JobRelists = 11,
    /// People, controllers and operators.
    Actors = 12,
    /// When the loop runs.
    FaultTurns = 13,
    /// Lists and watches of objects.
    FaultLists = 14,
    /// Live reads.
    FaultReads = 15,
    /// Status writes and their answers.
    FaultWrites = 16,
    /// Evaluations of custom rules.
    FaultRules = 17,
    /// Whether rules are evaluated beside the ingest of objects.
    RuleThreads = 18,
    /// Labels of namespaces.
    NamespaceLabels = 19,
    /// The way of these to the service.
    NamespaceWire = 20,
    /// Authors of scripts in a ConfigMap.
    ScriptAuthors = 21,
    /// The way of these to the service.
    ScriptWire = 22,
    /// Policies in shadow mode.
    ShadowPolicies = 23,
    /// Authors who turn shadow mode on and off.
    ModeEdits = 24,
    /// The way of plans to the loop.
    PlanWire = 25,
    /// How long lists wait before they are answered.
    ListAnswers = 26,
    /// Policies that keep True for a while.
    Grace = 27,
    /// Processes that stand by while another remembers Jobs.
    JobStandbys = 28,
    /// Policies that keep True while workloads are scaled or disrupted.
    Availability = 29,
    /// Autoscalers and drains.
    Churn = 30,
    /// Processes that go on writing for a while beside the one that took over from them.
    Overlap = 31,
    /// Those who delete the definitions of custom kinds.
    Definitions = 32,
    /// How soon kinds that are not served are looked for again.
    KindSearch = 33,
    /// Rights to read the parents of a policy that go while it is edited.
    BlindEdits = 34,
    /// Edits of the type of conditions that a policy writes.
    TypeEdits = 35,
    /// How lists of records go on and break off.
    RecordLists = 36,
    /// Authors of ReadinessGroups.
    GroupAuthors = 37,
    /// The way of these to the service.
    GroupWire = 38,
    /// Authors of PodDisruptionBudgets.
    BudgetAuthors = 39,
    /// The way of these to the service.
    BudgetWire = 40,
    /// Drains, which take pods away.
    Drains = 41,
    /// Authors of the policies of another release, and those who move policies between the two.
    OtherAuthors = 42,
    /// The way of these to that release, and of its claims and words from there.
    OtherRelease = 43,
    /// The way of what the release under test says in the status of policies.
    ClaimWire = 44,
    /// Parents whose status says that they have failed.
    Failures = 45,
    /// Those who delete parents in the foreground.
    ForegroundDeletions = 46,
    /// Hours in which nobody changes anything.
    Nights = 47,
}

impl DiceStream {
    /// Returns this stream of a seed, from its beginning.
    pub(crate) fn dice(self, seed: u64) -> Dice {
        Dice::new(seed, self as u64)
    }
}

/// A seed, and how its history draws from it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeedStreams {
    pub(crate) seed: u64,
    pub(crate) layout: StreamLayout,
}

impl SeedStreams {
    /// Returns the stream of a concern that histories of some remembered seeds do not have at all.
    pub(crate) fn widened_by(self, own: DiceStream) -> Option<Dice> {
        self.layout.draws(own).then(|| own.dice(self.seed))
    }

    /// Returns the stream of a concern that had no stream of its own in shared histories, but the rest of `shared`.
    pub(crate) fn split_from(self, shared: &Dice, own: DiceStream) -> Dice {
        match self.layout {
            StreamLayout::Split { .. } => own.dice(self.seed),
            StreamLayout::Shared => shared.clone(),
        }
    }
}

/// How concerns share the streams of a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamLayout {
    /// Each concern has its own, and nothing is drawn of the streams after this one: as in the histories of seeds that are
    /// remembered from before there were more.
    Split {
        /// Number of the last stream.
        last: u64,
    },
    /// As in the histories of seeds that are remembered from before: all faults and delays share one, and actors that of the
    /// scenario.
    Shared,
}

impl StreamLayout {
    /// Each concern has its own.
    pub const ALL: StreamLayout = StreamLayout::Split { last: DiceStream::Nights as u64 };

    /// Returns `true` if histories with this layout draw from the stream of a concern that shared histories do not have.
    fn draws(self, own: DiceStream) -> bool {
        matches!(self, StreamLayout::Split { last } if own as u64 <= last)
    }
}
