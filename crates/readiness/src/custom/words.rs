//! The words of the [`lexicon`](super::lexicon), by what they mean.

pub(super) const GOOD_WORDS: &str = "accepted accepting active activated admitted adopted alive allocated allowed applied approved assigned associated \
    attached authenticated authorized available bound built certified claimed compatible complete completed configured conformant \
    compliant connected contactable converged created current delivered discovered deployed done effective elected enabled enforced ensured established executed exists exported \
    fine finished found fulfilled functional functioning good granted green healthy idle imported initialised initialized injected installed insync issued joined \
    launched leased linked listening live loaded merged met mirrored mounted normal ok okay online operational optimal pass passed passing \
    peered permitted processed programmed promoted propagated protected provided provisioned published reachable ready realized reconciled registered \
    replicated reserved resolved responding restored running satisfied saved secured serving settled signed stable started steady succeeded succeeding \
    succeed success successful successfully supported synced synchronised synchronized unlocked unsealed updated upgraded uploaded \
    uptodate valid validated verified working";

pub(super) const BUSY_WORDS: &str = "acquiring activating adding allocating applying assigning attaching awaited awaiting backingoff binding \
    bootstrap bootstrapping building canary claiming cloning configuring connecting converging cooldown copying creating deploying desynced detaching \
    downloading draining drifted election enabling executing expanding exporting failover importing incomplete init initialising \
    initialization initializing inprogress installing issuing joining launching loading merging \
    migrating mounting moving needed needs new notready outdated outofdate outofsync partial partially patching pausing pending \
    planned prepared preparing processing progress progressing promoting propagating provisioning pulling pushing queued queueing \
    queuing rebalancing rebooting rebuilding reconciling recovering recreating registering released reloading \
    replacing replicating requested required requires resizing resolving restarting restoring resuming retry retrying rolling rollout \
    scaling scheduled scheduling setting shifting shrinking staging stale starting stopping submitted submitting \
    suspending switching switchover syncing synchronising synchronizing transferring transitioning unready updating upgrade upgrading \
    uploading validating verifying wait waiting warming yellow";

pub(super) const BAD_WORDS: &str = "abnormal abort aborted alert backoff bad blocked broken cancelled canceled cannot cant conflict conflicted \
    conflicting conflicts corrupt corrupted crash crashed crashing crashloop crashloopbackoff critical dead deadlocked \
    degraded denied disallowed disconnected diverged duplicate duplicated err error errored errors evicted exceeded exception exceptions exhausted expired fail failed failing \
    fails failure failures fallback fatal fault faulted faulty forbidden impaired inaccessible incompatible inconsistent incorrect infeasible inoperable \
    insufficient interrupted invalid irreconcilable killed lost malformed mismatch mismatched misconfigured missing notfound offline \
    oomkilled orphan orphaned overcommitted overloaded panic panicked preempted pressure recoverable red refused rejected revoked rollback rolledback sick splitbrain stalled stuck tainted \
    terminal throttled timedout timeout unable unauthenticated unauthorized unavailable unimplemented unhealthy unreachable unrecoverable unresolved unresponsive unsatisfiable unusable unschedulable unstable unsupported \
    violated violation violations warn warning wrong";

pub(super) const PAUSED_WORDS: &str = "asleep cordoned deactivated deallocated disabled dormant frozen halted hibernated hibernating idled inactive \
    maintenance onhold parked paused scaleddown scaledtozero shelved shutdown shutoff sleeping standby stopped suspended";

pub(super) const LEAVING_WORDS: &str = "decommissioned decommissioning deleted deleting deprovisioned deprovisioning destroyed destroying \
    finalizing gone removed removing retired retiring tearing terminated terminating undeploying uninstalled uninstalling";

pub(super) const UNKNOWN_WORDS: &str = "indeterminate undefined undetermined unknown";

/// Words ending in -ing that do not name a state.
pub(super) const NOT_STATE_WORDS: &str = "autoscaling billing during engineering everything existing king logging monitoring \
    networking nothing ping remaining ring routing something spring string thing tracing";

/// Condition words that mean an error, and not merely a delay, if the condition is false.
pub(super) const WRONG_IF_FALSE_WORDS: &str = "accepted allowed authenticated authorized compatible compliant connected contactable found healthy ok pass passed \
    permitted reachable resolved succeeded success successful supported valid verified";

/// Words that say something completed successfully.
pub(super) const END_WORDS: &str = "available complete completed done exported finished imported ok pass passed ready restored succeeded \
    succeed success successful successfully uploaded";
