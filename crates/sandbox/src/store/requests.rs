//! Requests that are not a watch: each goes by its path and its method to what answers it.

use super::list;
use super::message::{EpochMillis, StoreRequest, StoreResponse};
use super::refusal::StoreRefusal;
use super::review;
use super::route::{self, RequestRoute, RequestTarget};
use super::sandbox_store::SandboxStore;
use super::{response_form, table, validate};

impl SandboxStore {
    /// Answers a request that is not a watch.
    pub fn handle_request(&mut self, now: EpochMillis, request: &StoreRequest) -> StoreResponse {
        let response = self.answer_request(now, request).unwrap_or_else(StoreResponse::from);
        let response = self.to_table_response(now, request, response);
        if self.controllers {
            self.run_controllers(now);
        }
        self.forget_aged_changes(now);
        response
    }

    /// Converts a response to a table, if the client asks for one and the response shows objects.
    fn to_table_response(
        &self,
        now: EpochMillis,
        request: &StoreRequest,
        response: StoreResponse,
    ) -> StoreResponse {
        if !response.is_success()
            || response_form::ResponseForm::from_request(request).ok()
                != Some(response_form::ResponseForm::Table)
        {
            return response;
        }
        match (route::route_request(&self.registry, request), response.body_value()) {
            (Ok(RequestRoute::Resource(target)), answer)
                if !target.kind.traits.review && answer["kind"] != "Status" =>
            {
                StoreResponse::json(response.status, &table::to_table(&target.kind, now, request, &answer))
            }
            _ => response,
        }
    }

    pub(super) fn answer_request(
        &mut self,
        now: EpochMillis,
        request: &StoreRequest,
    ) -> Result<StoreResponse, StoreRefusal> {
        if request.method == "GET" && request.is_watch() {
            return Err(StoreRefusal::bad_request("a watch is a stream: open a cursor"));
        }
        let route = route::route_request(&self.registry, request)?;
        let target = match route {
            RequestRoute::Answer(response) => return Ok(response),
            RequestRoute::Resource(target) => target,
        };
        if target.kind.traits.review {
            return review::answer_review(&target, request);
        }
        response_form::ResponseForm::from_request(request)?;
        validate::check_field_manager(request)?;
        match (request.method.as_str(), &target.name) {
            ("GET", Some(_)) => self.get_request(&target, request),
            ("GET", None) => self.list_request(now, &target, request),
            ("POST", None) => self.create_request(now, &target, request),
            ("POST", Some(_)) if target.subresource.is_some() => {
                Err(StoreRefusal::not_implemented(&target.describe_request()))
            }
            ("PUT", Some(_)) => self.put_request(now, &target, request),
            ("PATCH", Some(_)) => self.patch_request(now, &target, request),
            ("DELETE", Some(_)) => self.delete_request(now, &target, request),
            ("DELETE", None) => self.delete_collection(now, &target, request),
            _ => Err(StoreRefusal::method_not_allowed()),
        }
    }

    fn get_request(
        &mut self,
        target: &RequestTarget,
        request: &StoreRequest,
    ) -> Result<StoreResponse, StoreRefusal> {
        self.check_not_ahead(request)?;
        let name = target.name.as_deref().unwrap_or_default();
        let key = target.kind.storage_key(target.namespace(), name);
        let shelf = self.kind_stores.get(&target.kind.storage);
        // Without a resourceVersion a read is consistent, whatever the state of the cache.
        let cached = request.query_param("resourceVersion").and(request.as_of);
        let found = shelf.and_then(|shelf| match cached {
            Some(revision) => shelf.object_at(revision, &key),
            None => shelf.objects.get(&key).cloned(),
        });
        let object = found.ok_or_else(|| target.not_found())?;
        Ok(StoreResponse::json(
            200,
            &response_form::render_one(request, &target.kind.render_version(&object)),
        ))
    }

    /// Refuses a read of a revision that does not exist yet.
    fn check_not_ahead(&self, request: &StoreRequest) -> Result<(), StoreRefusal> {
        let Some(asked) = request.query_param("resourceVersion") else { return Ok(()) };
        let asked: u64 = asked.parse().map_err(|_| list::invalid_revision(asked))?;
        let current = request.as_of.unwrap_or(self.revision);
        if asked > current { Err(StoreRefusal::too_large_revision(asked, current)) } else { Ok(()) }
    }
}
