//! Live reads of objects, one by one or a list of them, which the reflector takes in.

use std::sync::Arc;

use rollcall_core::{LiveRead, live_reads, pod_causes};
use watcher::reflector::Reflector;
use watcher::wire::ChildObject;
use watcher::{LiveReadError, ParentObject, ReflectorObject, get_live, list_live};

use super::order_intake::MAX_EXPLAINED_WORKLOADS;
use super::read_result::{Drift, LiveReadResult};
use crate::kind_tasks::{ResolvedKind, ResolvedKinds};
use crate::rule_threads::work_beside;

/// Maximum number of objects that one list lacks and that are read; the rest is left to the next pass.
pub(super) const MAX_UNLISTED_READS: usize = 500;

/// Reads objects.
pub(super) struct ObjectReader<'r> {
    pub(super) client: &'r kube::Client,
    pub(super) reflector: &'r Reflector,
    /// Resolved API endpoints of kinds.
    pub(super) resolved: &'r ResolvedKinds,
}

impl ObjectReader<'_> {
    /// Executes a live read. Of a kind that is not followed nothing is read.
    pub(super) async fn read(&self, read: &LiveRead) -> Result<LiveReadResult, LiveReadError> {
        let Some(followed) = self.resolved.get(&read.kind()).map(|k| Arc::clone(&k)) else {
            return Ok(LiveReadResult::default());
        };
        let Some(interest) = self.reflector.interest(read.kind()) else {
            return Ok(LiveReadResult::default());
        };
        let whole = interest.reads_whole() || interest.judge.owns_pods();
        if whole {
            self.read_as::<ParentObject>(&followed, read, MAX_EXPLAINED_WORKLOADS).await
        } else {
            self.read_as::<ChildObject>(&followed, read, MAX_EXPLAINED_WORKLOADS).await
        }
    }

    /// Reads objects, and returns at most so many workloads of a list: the first ones, which are those named in a message.
    pub(super) async fn read_as<K: ReflectorObject>(
        &self,
        followed: &Arc<ResolvedKind>,
        read: &LiveRead,
        most: usize,
    ) -> Result<LiveReadResult, LiveReadError> {
        let ResolvedKind { api, id: kind, .. } = &**followed;
        let reflector = self.reflector;
        let below =
            |live: &K| pod_causes::find_unready_workload(reflector, *kind, live.as_child(), live.raw_text()?);
        let drift_of = |lag| Drift { followed: followed.clone(), lag };
        let start = reflector.start_read();
        let evaluates = reflector.interest(*kind).is_some_and(|interest| interest.evaluates_on_ingest());
        match read {
            LiveRead::One { namespace, name, .. } => {
                let known = read.expected_object(reflector);
                let scope = Some(namespace.as_str()).filter(|n| !n.is_empty());
                let live = get_live::<K>(self.client, api, scope, name).await?;
                let apply = || live_reads::apply_live_read(reflector, *kind, start, known, live.as_ref());
                let drifts = work_beside(evaluates, apply).into_iter().map(drift_of).collect();
                let workloads = live.iter().filter_map(below).collect();
                Ok(LiveReadResult { drifts, workloads, ..LiveReadResult::default() })
            }
            LiveRead::All { namespace, .. } => {
                let scope = Some(namespace.as_str()).filter(|n| !n.is_empty() && api.namespaced);
                let held = live_reads::held_objects(reflector, *kind, scope);
                let live = list_live::<K>(self.client, api, scope, None).await?;
                let apply = |live| live_reads::apply_live_object(reflector, *kind, start, live);
                let ahead: Vec<_> = work_beside(evaluates, || live.iter().filter_map(apply).collect());
                let drifts = ahead.into_iter().map(drift_of).collect();
                let workloads = live.iter().filter_map(below).take(most).collect();
                let unlisted = live_reads::unlisted_reads(reflector, held, &live, MAX_UNLISTED_READS);
                Ok(LiveReadResult { drifts, workloads, unlisted })
            }
        }
    }
}
