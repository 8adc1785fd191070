//! The server without a socket and without a clock: requests, watches, and direct access for tests and for the
//! simulator.

use std::sync::Arc;

use serde_json::{Value, json};

use super::cluster_objects::ClusterObjects;
use super::content_deletion::ContentDeletion;
use super::controller_queue::ControllerWork;
use super::garbage_collect::GarbageCollector;
use super::kind::SandboxKind;
use super::managed_fields::ObjectWrite;
use super::message::{EpochMillis, StoreRequest, StoreResponse};
use super::refusal::StoreRefusal;
use super::registry::KindRegistry;
use super::resource_request::ResourceRequest;
use super::response_form::ResponseForm;
use super::route::{self, RequestRoute};
use super::watch::WatchCursor;
use super::watch_line::WatchLine;
use super::{decode, meta, review, table, validate};

/// Field manager of direct access.
const DEFAULT_MANAGER: &str = "sandbox";

/// All objects of a cluster and their history, behind the API.
#[derive(Debug)]
pub struct SandboxStore {
    objects: ClusterObjects,
    runs_controllers: bool,
}

impl SandboxStore {
    /// A cluster with the namespaces `default`, `kube-system`, `kube-public` and `kube-node-lease`.
    pub fn new(seed: u64) -> SandboxStore {
        SandboxStore::new_at(seed, 0)
    }

    /// Like [`SandboxStore::new`], with the namespaces created at this time.
    pub fn new_at(seed: u64, now: EpochMillis) -> SandboxStore {
        let mut store = SandboxStore { objects: ClusterObjects::new(seed), runs_controllers: true };
        for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            store
                .create_object(now, namespace)
                .expect("invariant: an empty store takes its first namespaces");
        }
        store
    }

    /// Sets the time at which garbage collection and namespace deletion run: within each call (the default), or only
    /// when [`SandboxStore::run_controllers`] is called.
    pub fn set_controllers(&mut self, at_once: bool) {
        self.runs_controllers = at_once;
    }

    /// Newest revision. It increases with every change of any object, and only then.
    pub fn revision(&self) -> u64 {
        self.objects.storage().revision()
    }

    /// Forgets all changes up to this revision: older watches and continued lists then answer 410.
    pub fn compact(&mut self, revision: u64) {
        self.objects.compact(revision);
    }

    /// Answers a request that is not a watch.
    pub fn handle_request(&mut self, now: EpochMillis, request: &StoreRequest) -> StoreResponse {
        let response = self.answer_request(now, request).unwrap_or_else(StoreResponse::from);
        let response = to_table_response(self.objects.registry(), now, request, response);
        self.settle_controllers(now);
        response
    }

    fn answer_request(
        &mut self,
        now: EpochMillis,
        request: &StoreRequest,
    ) -> Result<StoreResponse, StoreRefusal> {
        if request.method == "GET" && request.is_watch() {
            return Err(StoreRefusal::bad_request("a watch is a stream: open a cursor"));
        }
        let target = match route::route_request(self.objects.registry(), request)? {
            RequestRoute::Answer(response) => return Ok(response),
            RequestRoute::Resource(target) => target,
        };
        if target.kind.traits.review {
            return review::answer_review(&target, request);
        }
        ResponseForm::from_request(request)?;
        validate::check_field_manager(request)?;
        ResourceRequest { now, target: &target, request, objects: &mut self.objects }.answer()
    }

    /// Opens a watch, or returns the error response.
    pub fn open_watch(&self, now: EpochMillis, request: &StoreRequest) -> Result<WatchCursor, StoreRefusal> {
        let RequestRoute::Resource(target) = route::route_request(self.objects.registry(), request)? else {
            return Err(StoreRefusal::method_not_allowed());
        };
        WatchCursor::open(now, target, request, self.objects.storage())
    }

    /// Returns the next line, if there is one now. Otherwise poll again when [`SandboxStore::revision`] has changed or
    /// at [`WatchCursor::wake_at`], unless the cursor [has ended](WatchCursor::has_ended).
    pub fn next_line(&self, now: EpochMillis, cursor: &mut WatchCursor) -> Option<WatchLine> {
        self.next_line_until(now, cursor, u64::MAX)
    }

    /// Like [`SandboxStore::next_line`], without the changes after `limit`: a lagging replica.
    pub fn next_line_until(
        &self,
        now: EpochMillis,
        cursor: &mut WatchCursor,
        limit: u64,
    ) -> Option<WatchLine> {
        cursor.take_line(now, &self.objects, limit)
    }

    /// Runs the controllers of the control plane, in a fixed order, until no work is left.
    pub fn run_controllers(&mut self, now: EpochMillis) {
        while let Some(work) = self.objects.take_work() {
            let objects = &mut self.objects;
            match work {
                ControllerWork::Owned(at) => GarbageCollector { now, objects }.collect_orphaned(&at),
                ControllerWork::Foreground(at) => GarbageCollector { now, objects }.collect_foreground(&at),
                ControllerWork::Orphan(at) => GarbageCollector { now, objects }.orphan_dependents(&at),
                ControllerWork::Namespace(name) => ContentDeletion { now, objects }.empty_namespace(&name),
                ControllerWork::Definition(name) => ContentDeletion { now, objects }.empty_definition(&name),
            }
        }
    }

    /// Creates an object from its full manifest. A namespaced object without a namespace goes to `default`.
    pub fn create_object(&mut self, now: EpochMillis, object: Value) -> Result<Arc<Value>, StoreRefusal> {
        let kind = self.kind_of_object(&object)?;
        let namespace =
            if meta::namespace(&object).is_empty() { "default" } else { meta::namespace(&object) }.to_owned();
        let mut object = object;
        decode::check_type_meta(&kind, &mut object)?;
        let write = ObjectWrite::by_manager(now, &kind, DEFAULT_MANAGER);
        let created = self.objects.create_object(&write, &namespace, object)?;
        self.settle_controllers(now);
        Ok(created)
    }

    /// Creates an object together with its status, as if its controller had written the status at once.
    pub fn create_with_status(
        &mut self,
        now: EpochMillis,
        object: Value,
    ) -> Result<Arc<Value>, StoreRefusal> {
        let status = object["status"].clone();
        let created = self.create_object(now, object)?;
        if status.is_null() {
            return Ok(created);
        }
        let kind = self.kind_of_object(&created)?;
        self.patch_status(
            now,
            &kind.api_version(),
            &kind.kind,
            meta::namespace(&created),
            meta::name(&created),
            &json!({ "status": status }),
        )
    }

    /// Stores an object as another server has returned it: uid, generation, times, status and field managers stay as they
    /// are, only its resourceVersion is new. Nothing of it is defaulted or validated, and no controller is told.
    pub fn restore_object(&mut self, now: EpochMillis, object: Value) -> Result<Arc<Value>, StoreRefusal> {
        let kind = self.kind_of_object(&object)?;
        Ok(self.objects.commit_object(now, &kind, object))
    }

    /// Returns the current object.
    pub fn get(&self, api_version: &str, kind: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let kind = self.objects.registry().by_object(api_version, kind)?;
        let stored = self.objects.storage().object(kind.storage, &kind.storage_key(namespace, name));
        stored.map(|object| kind.render_version(object))
    }

    /// Returns all objects of a kind, of one namespace or (empty) of all, in key order.
    pub fn list_objects(&self, api_version: &str, kind: &str, namespace: &str) -> Vec<Arc<Value>> {
        let Some(kind) = self.objects.registry().by_object(api_version, kind) else { return Vec::new() };
        let Some(kind_store) = self.objects.storage().kind_store(kind.storage) else { return Vec::new() };
        let within = |object: &Value| namespace.is_empty() || meta::namespace(object) == namespace;
        kind_store
            .objects
            .values()
            .filter(|object| within(object))
            .map(|object| kind.render_version(object))
            .collect()
    }

    /// Applies a merge patch to the main resource.
    pub fn patch_object(
        &mut self,
        now: EpochMillis,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Arc<Value>, StoreRefusal> {
        self.send_merge_patch(now, api_version, kind, namespace, name, patch, "")
    }

    /// Applies a merge patch to the status; to the main resource if the kind has no status subresource.
    pub fn patch_status(
        &mut self,
        now: EpochMillis,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Arc<Value>, StoreRefusal> {
        let own = self.objects.registry().by_object(api_version, kind).is_some_and(|kind| kind.status);
        self.send_merge_patch(
            now,
            api_version,
            kind,
            namespace,
            name,
            patch,
            if own { "/status" } else { "" },
        )
    }

    /// Sets the number of replicas of a workload through its subresource `scale`, as an autoscaler does.
    pub fn scale_object(
        &mut self,
        now: EpochMillis,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
        replicas: i64,
    ) -> Result<Arc<Value>, StoreRefusal> {
        let patch = json!({ "spec": { "replicas": replicas } });
        self.send_merge_patch(now, api_version, kind, namespace, name, &patch, "/scale")
    }

    #[expect(clippy::too_many_arguments, reason = "the address of an object has four parts")]
    fn send_merge_patch(
        &mut self,
        now: EpochMillis,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
        patch: &Value,
        sub: &str,
    ) -> Result<Arc<Value>, StoreRefusal> {
        let path = self.object_path(api_version, kind, namespace, name)?;
        let request =
            StoreRequest::with_body("PATCH", &format!("{path}{sub}"), "application/merge-patch+json", patch)
                .with_user_agent(DEFAULT_MANAGER);
        let response = self.answer_request(now, &request)?;
        self.settle_controllers(now);
        Ok(Arc::new(response.body_value()))
    }

    /// Deletes an object as a plain DELETE does. Returns `true` if it is gone, `false` if it is only marked as being
    /// deleted.
    pub fn delete_object(
        &mut self,
        now: EpochMillis,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<bool, StoreRefusal> {
        let path = self.object_path(api_version, kind, namespace, name)?;
        self.send_deletion(now, &path)?;
        Ok(self.get(api_version, kind, namespace, name).is_none())
    }

    /// Deletes an object in the foreground: once everything is gone that it owns and that blocks its deletion.
    pub fn delete_in_foreground(
        &mut self,
        now: EpochMillis,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<(), StoreRefusal> {
        let path = self.object_path(api_version, kind, namespace, name)?;
        self.send_deletion(now, &format!("{path}?propagationPolicy=Foreground"))
    }

    fn send_deletion(&mut self, now: EpochMillis, path: &str) -> Result<(), StoreRefusal> {
        self.answer_request(now, &StoreRequest::new("DELETE", path).with_user_agent(DEFAULT_MANAGER))?;
        self.settle_controllers(now);
        Ok(())
    }

    /// Returns the path at which an object is served.
    pub fn object_path(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<String, StoreRefusal> {
        let kind =
            self.objects.registry().by_object(api_version, kind).ok_or_else(StoreRefusal::no_such_path)?;
        let root = if kind.group.is_empty() { "/api" } else { "/apis" };
        let within = if kind.namespaced { format!("/namespaces/{namespace}") } else { String::new() };
        Ok(format!("{root}/{api_version}{within}/{}/{name}", kind.plural))
    }

    fn kind_of_object(&self, object: &Value) -> Result<Arc<SandboxKind>, StoreRefusal> {
        let text = |field: &str| object[field].as_str().unwrap_or_default();
        self.objects
            .registry()
            .by_object(text("apiVersion"), text("kind"))
            .cloned()
            .ok_or_else(StoreRefusal::no_such_path)
    }

    fn settle_controllers(&mut self, now: EpochMillis) {
        if self.runs_controllers {
            self.run_controllers(now);
        }
        self.objects.forget_aged_changes(now);
    }
}

/// Converts a response to a table, if the client asks for one and the response shows objects.
fn to_table_response(
    registry: &KindRegistry,
    now: EpochMillis,
    request: &StoreRequest,
    response: StoreResponse,
) -> StoreResponse {
    if !response.is_success() || ResponseForm::from_request(request).ok() != Some(ResponseForm::Table) {
        return response;
    }
    match (route::route_request(registry, request), response.body_value()) {
        (Ok(RequestRoute::Resource(target)), answer)
            if !target.kind.traits.review && answer["kind"] != "Status" =>
        {
            StoreResponse::json(response.status, &table::to_table(&target.kind, now, request, &answer))
        }
        _ => response,
    }
}
