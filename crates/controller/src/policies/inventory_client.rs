//! Keeps the inventory of conditions in a ConfigMap of Rollcall's own namespace, and asks the server for the policies in it
//! that no list has shown.
//!
//! It is written ahead: what policies are to write is kept first, and a plan waits for one request to that end. Where that fails
//! all goes on without, and what it is for is said to be missing. Only the leader writes it, each time with the version that was
//! read as the precondition. A standby reads it once: it may have to answer for what policies wrote before it came.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::ConfigMap;
use policy::KeptState;
use readiness::Time;
use timer::{Backoff, Seed};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tracing::{debug, warn};

use super::inventory_map::{InventoryFailure, InventoryMap, StoredInventory};
use super::live_policy::{KnownPolicy, read_live_policy};
use crate::clock::ServerClock;
use crate::failure_reporter::FailureReporter;
use crate::kind_tasks::KindContext;
use crate::lease::Leadership;

/// Wait after a request that failed, or that met another writer.
const INVENTORY_BACKOFF: Backoff = Backoff { base: Duration::from_secs(1), cap: Duration::from_mins(1) };
/// Time after which it is read again: somebody may have deleted or emptied it. 10 min, as the audit of everything else.
const REREAD_INTERVAL: Duration = Duration::from_mins(10);

/// How the inventory is kept.
#[derive(Clone, Debug)]
pub(crate) struct InventorySettings {
    /// Name of its ConfigMap, in the namespace of the records.
    pub(crate) name: String,
    /// Why it cannot be kept, while it cannot.
    pub(crate) trouble: watch::Sender<Option<String>>,
}

/// Reads and writes the inventory, one request at a time.
pub(super) struct InventoryClient {
    client: kube::Client,
    map: InventoryMap,
    published: watch::Sender<Option<String>>,
    leadership: Leadership,
    failures: FailureReporter,
    seed: Seed,
    clock: ServerClock,
    /// This process leads, as was last seen.
    leads: bool,
    /// Policies were listed, as was last seen.
    listed: bool,
    /// As the server has it; `None` before it was read, by this leader. A standby's is as it was once.
    stored: Option<StoredInventory>,
    under_way: Option<BoxFuture<'static, EndedRequest>>,
    /// Why the last request failed.
    trouble: Option<String>,
    /// Requests in a row that failed.
    failed: u32,
    retry_at: Option<Instant>,
    /// When the server last said what it has.
    known_at: Instant,
}

/// What is to be asked of the server next.
#[derive(Debug, PartialEq, Eq)]
enum WantedRequest<'i> {
    Read,
    /// Only to know whether somebody has changed it: what it lacks is written.
    ReadAgain,
    Write(BTreeMap<String, String>),
    /// Whether this policy of this uid is gone.
    Ask(&'i str, &'i str),
}

/// A request that has ended.
enum EndedRequest {
    Read(Result<Option<ConfigMap>, InventoryFailure>),
    ReadAgain(Result<Option<ConfigMap>, InventoryFailure>),
    /// These values were written, and this is what the server has now.
    Written(BTreeMap<String, String>, Result<ConfigMap, InventoryFailure>),
    /// Whether the policy is gone, or why that is not known.
    Asked {
        uid: String,
        policy: String,
        gone: Result<bool, String>,
    },
}

/// What came of a request.
#[derive(Debug)]
pub(super) enum InventoryResult {
    /// The inventory was read.
    Read(KeptState),
    /// The server was asked for the policy of this uid.
    Asked { uid: String, gone: bool },
    /// Nothing that calls for a decision.
    Nothing,
}

impl InventoryClient {
    pub(super) fn new(
        context: &KindContext,
        settings: &InventorySettings,
        clock: &ServerClock,
        leadership: Leadership,
    ) -> Self {
        let map = InventoryMap::new(&context.client, &context.records.namespace, &settings.name);
        InventoryClient {
            published: settings.trouble.clone(),
            failures: context.failures.clone(),
            seed: context.seed,
            clock: clock.clone(),
            ..InventoryClient::of_map(context.client.clone(), map, leadership)
        }
    }

    /// Keeps it in this ConfigMap, and tells nobody what is wrong.
    fn of_map(client: kube::Client, map: InventoryMap, leadership: Leadership) -> Self {
        InventoryClient {
            client,
            map,
            published: watch::channel(None).0,
            leadership,
            failures: FailureReporter::default(),
            seed: Seed(0),
            clock: ServerClock::assume_local(),
            leads: false,
            listed: false,
            stored: None,
            under_way: None,
            trouble: None,
            failed: 0,
            retry_at: None,
            known_at: Instant::now(),
        }
    }

    /// Begins the request that is due, once policies were `listed`: `inventory` is what is to be kept, if it was read. A
    /// replica that does not lead keeps none: another one may change it.
    pub(super) fn begin_request(&mut self, listed: bool, inventory: &mut Option<KeptState>) {
        let leads = self.leadership.may_write();
        if std::mem::replace(&mut self.leads, leads) != leads && leads {
            self.stored = None;
        }
        self.listed = listed;
        if !leads {
            (self.trouble, *inventory) = (None, None);
        }
        let may_ask = self.under_way.is_none() && self.retry_at.is_none() && listed;
        if may_ask && (leads || self.stored.is_none()) {
            self.begin_wanted(inventory.as_ref());
        }
        self.publish_trouble(inventory.as_ref());
    }

    /// Once policies were listed, `true` while it is not known what they wrote before, or while what they are to write is not
    /// kept, unless a request has failed since: nobody waits for an answer that may not come.
    pub(super) fn is_awaited(&self, inventory: Option<&KeptState>) -> bool {
        if self.failed > 0 || !self.listed {
            return false;
        }
        let Some(stored) = &self.stored else { return true };
        // Where nothing is under way, nothing was to be written.
        let may_lack = self.leads && self.under_way.is_some();
        may_lack && inventory.is_none_or(|inventory| !inventory.is_kept_in(&stored.data))
    }

    /// Returns `true` if this process leads, as was last seen.
    pub(super) fn leads(&self) -> bool {
        self.leads
    }

    /// Begins the request that is due. Where none is, what failed before is made good.
    fn begin_wanted(&mut self, inventory: Option<&KeptState>) {
        let is_old = Instant::now() >= self.known_at + REREAD_INTERVAL;
        let Some(wanted) = wanted_request(self.stored.as_ref(), inventory, is_old) else {
            return self.succeed();
        };
        self.under_way = Some(match (wanted, &self.stored) {
            (WantedRequest::Write(data), Some(stored)) => {
                self.map.write(stored, &data).map(|has| EndedRequest::Written(data, has)).boxed()
            }
            (WantedRequest::Ask(uid, policy), _) => self.ask(uid, policy),
            (WantedRequest::ReadAgain, _) => self.map.read().map(EndedRequest::ReadAgain).boxed(),
            _ => self.map.read().map(EndedRequest::Read).boxed(),
        });
    }

    /// Waits for the end of a request, or until another one may be due.
    pub(super) async fn next_result(&mut self) -> InventoryResult {
        let is_at_rest =
            self.leads && self.under_way.is_none() && self.retry_at.is_none() && self.stored.is_some();
        tokio::select! {
            ended = next_ended(&mut self.under_way) => {
                self.under_way = None;
                self.settle(ended)
            }
            _ = self.leadership.wait_for_change() => InventoryResult::Nothing,
            () = sleep_until(self.known_at + REREAD_INTERVAL), if is_at_rest => InventoryResult::Nothing,
            () = sleep_until(self.retry_at.unwrap_or_else(Instant::now)), if self.retry_at.is_some() => {
                self.retry_at = None;
                InventoryResult::Nothing
            }
        }
    }

    fn ask(&self, uid: &str, policy: &str) -> BoxFuture<'static, EndedRequest> {
        let (client, uid, policy) = (self.client.clone(), uid.to_owned(), policy.to_owned());
        // Of when a policy was there nothing else tells, once this process has begun after it.
        let seen = self.stored.as_ref().and_then(|stored| stored.created);
        let known = KnownPolicy { seen, now: self.clock.now() };
        async move {
            let live = read_live_policy(&client, &policy, known).await;
            let gone = live.map(|live| live.is_none_or(|live| *live.child.meta.uid != *uid));
            EndedRequest::Asked { uid, policy, gone }
        }
        .boxed()
    }

    fn settle(&mut self, ended: EndedRequest) -> InventoryResult {
        match ended {
            // Before a write that failed it is read again: that this succeeds says nothing of the next one.
            EndedRequest::Read(Ok(map)) => InventoryResult::Read(self.note_stored(map)),
            EndedRequest::ReadAgain(Ok(map)) => {
                self.note_stored(map);
                InventoryResult::Nothing
            }
            EndedRequest::Written(data, Ok(map)) => self.settle_written(&data, map),
            EndedRequest::Read(Err(failure)) | EndedRequest::ReadAgain(Err(failure)) => {
                self.fail("get", &failure)
            }
            EndedRequest::Written(_, Err(failure)) => self.fail("write", &failure),
            EndedRequest::Asked { uid, gone: Ok(gone), .. } => {
                self.succeed();
                InventoryResult::Asked { uid, gone }
            }
            EndedRequest::Asked { policy, gone: Err(error), .. } => {
                self.failures.report("confirm deletion", policy.clone(), move |failures| {
                    warn!(
                        policy,
                        error, failures, "cannot confirm that the policy is deleted; what it wrote stays"
                    );
                });
                self.back_off();
                InventoryResult::Nothing
            }
        }
    }

    /// A write has landed. Where the server has something else for it, which an admission webhook made of it, the next one has
    /// time.
    fn settle_written(&mut self, data: &BTreeMap<String, String>, map: ConfigMap) -> InventoryResult {
        self.note_stored(Some(map));
        if self.stored.as_ref().is_some_and(|stored| stored.data == *data) {
            self.succeed();
            return InventoryResult::Nothing;
        }
        self.note_trouble("changed", self.map.explain_changed());
        self.back_off();
        InventoryResult::Nothing
    }

    /// Notes what the server has, and reads it.
    fn note_stored(&mut self, map: Option<ConfigMap>) -> KeptState {
        let version = map.as_ref().and_then(|map| map.metadata.resource_version.clone());
        let created = map.as_ref().and_then(|map| map.metadata.creation_timestamp.as_ref());
        let created = created.map(|created| Time(created.0.as_millisecond()));
        let mut data = map.and_then(|map| map.data).unwrap_or_default();
        let (inventory, unreadable) = KeptState::read(&data);
        if let Some(first) = unreadable.first().cloned() {
            let (config_map, values) = (self.map.to_string(), unreadable.len());
            self.failures.report("read inventory", "", move |failures| {
                warn!(config_map, first, values, failures, "ignoring invalid values of the ConfigMap");
            });
        }
        data.retain(|uid, _| !unreadable.contains(uid));
        (self.stored, self.known_at) = (Some(StoredInventory { version, created, data }), Instant::now());
        inventory
    }

    fn succeed(&mut self) {
        (self.failed, self.retry_at, self.trouble) = (0, None, None);
    }

    fn back_off(&mut self) {
        self.failed = self.failed.saturating_add(1);
        self.retry_at = Some(Instant::now() + INVENTORY_BACKOFF.delay_after(self.failed, self.seed, 0));
    }

    fn fail(&mut self, verb: &'static str, failure: &InventoryFailure) -> InventoryResult {
        // Another writer may have changed it, and the write may have landed: it is read before the next one.
        self.stored = None;
        self.back_off();
        if failure.is_conflict() {
            debug!(config_map = %self.map, "the ConfigMap has changed; re-reading it");
            return InventoryResult::Nothing;
        }
        self.note_trouble(failure.cause(), self.map.explain(verb, failure));
        InventoryResult::Nothing
    }

    fn note_trouble(&mut self, cause: impl Display, why: String) {
        self.trouble = Some(why.clone());
        self.failures.report("keep inventory", cause, move |failures| {
            warn!(why, failures, "cannot keep the list of what policies wrote; everything else goes on");
        });
    }

    /// Says what there is no room for.
    fn explain_left_out(&self, inventory: &KeptState) -> Option<String> {
        let (policies, scripts) = (inventory.conditions.left_out(), inventory.scripts.left_out());
        let of_policies = policies.first().map(|first| {
            format!(
                "conditions of {} policies, {first} among them, will stay if they are deleted while Rollcall does not run",
                policies.len()
            )
        });
        let of_scripts = scripts.first().map(|first| {
            format!(
                "policies that judge by the scripts of {} ConfigMaps, {first} among them, will be as if they had never been \
                 accepted if Rollcall starts while these are gone",
                scripts.len()
            )
        });
        let what = of_policies.or(of_scripts)?;
        Some(format!("{what}: ConfigMap {} has no room for them", self.map))
    }

    /// Tells `/readyz` what is wrong. Policies for which there is no room are as if nothing could be kept of them.
    fn publish_trouble(&self, inventory: Option<&KeptState>) {
        let room = inventory.and_then(|inventory| self.explain_left_out(inventory));
        let has_room = room.is_none();
        let trouble = self.trouble.clone().or(room);
        let is_news = self.published.send_if_modified(|known| {
            let changed = *known != trouble;
            known.clone_from(&trouble);
            changed
        });
        if is_news && !has_room && self.trouble.is_none() {
            warn!(why = trouble, "the list of what policies wrote is full; everything else goes on");
        }
    }
}

/// What is to be asked of the server, by what it has and what is to be kept, as far as these are known; `is_old` if what it has
/// was read long ago.
fn wanted_request<'i>(
    stored: Option<&StoredInventory>,
    inventory: Option<&'i KeptState>,
    is_old: bool,
) -> Option<WantedRequest<'i>> {
    let (Some(stored), Some(inventory)) = (stored, inventory) else { return Some(WantedRequest::Read) };
    if !inventory.is_kept_in(&stored.data) {
        return Some(WantedRequest::Write(inventory.to_data()));
    }
    let unconfirmed =
        inventory.conditions.next_unconfirmed().map(|(uid, policy)| WantedRequest::Ask(uid, policy));
    unconfirmed.or_else(|| is_old.then_some(WantedRequest::ReadAgain))
}

async fn next_ended(under_way: &mut Option<BoxFuture<'static, EndedRequest>>) -> EndedRequest {
    match under_way {
        Some(request) => request.await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
