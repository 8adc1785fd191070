//! An independent client that records every state of a parent and its children, and checks them afterwards by its own
//! rules. One etcd counts resourceVersions over all kinds, so the recording has one order, whatever order the watches
//! delivered.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result, anyhow, bail};
use futures::StreamExt;
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::{Duration, sleep, timeout};

use crate::TEST_TIMEOUT;
use crate::caller::{ApiCaller, WatchedChange, version_of};
use crate::judge;
use crate::kind::{ManifestKind, ObjectAddress};
use crate::objects::{condition, uid};
use crate::tenant::TestTenant;

/// One state of one object; `None` means that it was deleted.
#[derive(Clone, Debug)]
pub struct RecordedState {
    /// resourceVersion: the order over all kinds.
    pub version: u64,
    /// UID of the object.
    pub uid: String,
    /// The object as written; `None` once it is deleted.
    pub state: Option<Value>,
}

/// One write of a parent's condition.
#[derive(Clone, Debug)]
pub struct ConditionWrite {
    /// resourceVersion: the order over all kinds.
    pub version: u64,
    /// UID of the parent.
    pub uid: String,
    /// Generation of the parent at that moment.
    pub generation: i64,
    /// The whole condition; null if it was removed.
    pub entry: Value,
}

type Tape = Arc<Mutex<Vec<RecordedState>>>;

/// A running recording.
pub struct StateRecorder {
    admin: ApiCaller,
    namespace: String,
    kinds: Vec<ManifestKind>,
    tape: Tape,
    tasks: Vec<JoinHandle<Result<()>>>,
}

/// A finished recording, in order.
pub struct StateRecording {
    entries: Vec<RecordedState>,
}

impl StateRecorder {
    /// Starts to record these kinds in a tenant's namespace.
    pub async fn start(tenant: &TestTenant, kinds: &[&str]) -> Result<Self> {
        let tape = Tape::default();
        let admin = tenant.plane.admin().await?;
        let kinds: Vec<ManifestKind> = kinds.iter().map(|word| tenant.kind(word)).collect();
        let mut tasks = Vec::new();
        for kind in &kinds {
            let (there, from) = admin.list(kind, &tenant.name, "").await?;
            for object in there {
                note(&tape, &object, Some(object.clone()))?;
            }
            let (admin, kind, namespace, tape) =
                (admin.clone(), kind.clone(), tenant.name.clone(), tape.clone());
            tasks.push(tokio::spawn(async move { record(&admin, &kind, &namespace, from, &tape).await }));
        }
        Ok(Self { admin, namespace: tenant.name.clone(), kinds, tape, tasks })
    }

    /// Ends the recording once it contains the server's current state.
    pub async fn stop(self) -> Result<StateRecording> {
        for kind in &self.kinds {
            let (now, version) = self.admin.list(kind, &self.namespace, "").await?;
            let caught_up = async {
                while !self.has_all(kind, &now, version)? {
                    if let Some(task) = self.tasks.iter().position(JoinHandle::is_finished) {
                        bail!("the recorder of {} ended", self.kinds[task].kind);
                    }
                    sleep(Duration::from_millis(10)).await;
                }
                Ok(())
            };
            timeout(TEST_TIMEOUT, caught_up).await.map_err(|_| anyhow!("the recorder lags"))??;
        }
        let mut entries = self.tape.lock().map_err(|_| anyhow!("poisoned"))?.clone();
        entries.sort_by_key(|entry| entry.version);
        Ok(StateRecording { entries })
    }

    fn has_all(&self, kind: &ManifestKind, now: &[Value], version: u64) -> Result<bool> {
        let tape = self.tape.lock().map_err(|_| anyhow!("poisoned"))?;
        let mut last: BTreeMap<&str, &RecordedState> = BTreeMap::new();
        for entry in tape.iter() {
            let newest = last.entry(&entry.uid).or_insert(entry);
            if entry.version >= newest.version {
                *newest = entry;
            }
        }
        let recorded =
            |object: &&Value| last.get(uid(object)).is_some_and(|entry| entry.version >= version_of(object));
        let living = last.values().filter_map(|entry| entry.state.as_ref());
        let still_there = living
            .filter(|state| state["kind"] == kind.kind)
            .all(|state| now.iter().any(|object| uid(object) == uid(state)) || version_of(state) > version);
        Ok(now.iter().all(|object| recorded(&object)) && still_there)
    }
}

impl Drop for StateRecorder {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl StateRecording {
    /// Returns all entries in order.
    pub fn entries(&self) -> &[RecordedState] {
        &self.entries
    }

    /// Returns the changes of the condition `kind` of the parent with this name, over all its UIDs.
    pub fn said(&self, parent: &ObjectAddress, kind: &str) -> Vec<ConditionWrite> {
        let mut last: BTreeMap<&str, Value> = BTreeMap::new();
        let mut said = Vec::new();
        for entry in &self.entries {
            let Some(state) = entry.state.as_ref().filter(|state| is(state, parent)) else { continue };
            let now = condition(state, kind).cloned().unwrap_or_default();
            if last.insert(&entry.uid, now.clone()).unwrap_or_default() != now {
                let generation = state["metadata"]["generation"].as_i64().unwrap_or_default();
                let uid = entry.uid.clone();
                said.push(ConditionWrite { version: entry.version, uid, generation, entry: now });
            }
        }
        said
    }

    /// Fails if `kind=True` was ever written while a child was not ready, while fewer than `expected` children of a
    /// kind existed, or for another generation than the parent's own.
    pub fn no_false_ready(
        &self,
        parent: &ObjectAddress,
        kind: &str,
        expected: &[(&str, usize)],
    ) -> Result<()> {
        for said in self.said(parent, kind).iter().filter(|said| said.entry["status"] == "True") {
            if let Some(fault) = self.fault_of(said, expected)? {
                bail!("false ready at {}: {fault}\n{}", said.version, self.transcript(parent, kind));
            }
        }
        Ok(())
    }

    /// Fails unless the first condition of every UID and every generation is `Unknown`. A deletion also begins a
    /// generation if a finalizer holds the object; its `Terminating` answer is accepted, because it is certain.
    pub fn first_word_is_unknown(&self, parent: &ObjectAddress, kind: &str) -> Result<()> {
        let mut met: BTreeMap<(String, i64), &ConditionWrite> = BTreeMap::new();
        let all = self.said(parent, kind);
        for said in all.iter().filter(|said| !said.entry.is_null()) {
            let first = *met.entry((said.uid.clone(), said.generation)).or_insert(said);
            if first.entry["status"] != "Unknown" && first.entry["reason"] != "Terminating" {
                bail!("first word for generation {}: {}", said.generation, self.transcript(parent, kind));
            }
        }
        Ok(())
    }

    /// Returns the sequence of the condition's statuses, without repetitions.
    pub fn statuses(&self, parent: &ObjectAddress, kind: &str) -> Vec<String> {
        let word = |said: ConditionWrite| said.entry["status"].as_str().unwrap_or("gone").to_owned();
        let mut all: Vec<String> = self.said(parent, kind).into_iter().map(word).collect();
        all.dedup();
        all
    }

    /// Returns the condition's history, one line per change.
    pub fn transcript(&self, parent: &ObjectAddress, kind: &str) -> String {
        let mut lines = String::new();
        for ConditionWrite { version, generation, entry, .. } in self.said(parent, kind) {
            let word = |key: &str| entry[key].as_str().unwrap_or("-").to_owned();
            let (status, reason, message) = (word("status"), word("reason"), word("message"));
            let of = entry["observedGeneration"].as_i64().unwrap_or_default();
            let at = format!("{version} generation {generation}");
            let _ = writeln!(lines, "{at}: {kind}={status} {reason} of generation {of}: {message}");
        }
        lines
    }

    fn fault_of(&self, said: &ConditionWrite, expected: &[(&str, usize)]) -> Result<Option<String>> {
        if said.entry["observedGeneration"].as_i64() != Some(said.generation) {
            return Ok(Some(format!("written for another generation than {}", said.generation)));
        }
        self.unready_at(said.version, &said.uid, expected)
    }

    /// Returns the children of a parent that were missing or not ready at that moment.
    pub fn unready_at(
        &self,
        version: u64,
        parent: &str,
        expected: &[(&str, usize)],
    ) -> Result<Option<String>> {
        let children = self.children_at(version, parent);
        for (kind, least) in expected {
            let there = children.iter().filter(|child| child["kind"] == **kind).count();
            if there < *least {
                return Ok(Some(format!("{there} of {least} {kind} exist")));
            }
        }
        for child in children {
            let awaited = expected.iter().any(|(kind, _)| child["kind"] == **kind);
            if awaited && !self.is_ready(child, version)? {
                return Ok(Some(format!("not ready: {:#}", child["status"])));
            }
        }
        Ok(None)
    }

    /// Returns `true` if a child is ready. A child that is itself a parent counts with its own children at that moment:
    /// its own condition follows one write later.
    fn is_ready(&self, child: &Value, version: u64) -> Result<bool> {
        if judge::ready(child)? {
            return Ok(true);
        }
        let below = self.children_at(version, uid(child));
        let nested = condition(child, "Ready").is_some() && child["metadata"]["deletionTimestamp"].is_null();
        let mut ready = nested && !below.is_empty();
        for leaf in below {
            ready &= judge::ready(leaf)?;
        }
        Ok(ready)
    }

    fn children_at(&self, version: u64, parent: &str) -> Vec<&Value> {
        let mut alive: BTreeMap<&str, Option<&Value>> = BTreeMap::new();
        for entry in self.entries.iter().take_while(|entry| entry.version <= version) {
            alive.insert(&entry.uid, entry.state.as_ref());
        }
        let owned = |child: &&Value| {
            let owners = child["metadata"]["ownerReferences"].as_array();
            owners.is_some_and(|owners| owners.iter().any(|owner| owner["uid"] == *parent))
        };
        alive.into_values().flatten().filter(owned).collect()
    }
}

fn is(state: &Value, address: &ObjectAddress) -> bool {
    state["kind"] == address.kind.kind && state["metadata"]["name"] == address.name
}

async fn record(
    admin: &ApiCaller,
    kind: &ManifestKind,
    namespace: &str,
    from: u64,
    tape: &Tape,
) -> Result<()> {
    let mut from = from;
    loop {
        let events = admin.watch(kind, namespace, "", from).await.context("the recorder lost its place")?;
        let mut events = std::pin::pin!(events);
        // An error inside the stream is a cut line: its content is delivered again.
        while let Some(Ok(event)) = events.next().await {
            from = match event {
                WatchedChange::There(object) => note(tape, &object, Some(object.clone()))?,
                WatchedChange::Gone(object) => note(tape, &object, None)?,
                WatchedChange::Bookmark(version) => version,
            };
        }
    }
}

fn note(tape: &Tape, object: &Value, state: Option<Value>) -> Result<u64> {
    let version = version_of(object);
    let entry = RecordedState { version, uid: uid(object).to_owned(), state };
    tape.lock().map_err(|_| anyhow!("poisoned"))?.push(entry);
    Ok(version)
}
