//! The server without a socket and without a clock.
//!
//! Every request but a watch is one call of [`Store::handle`]; a watch is a [`Cursor`] that is asked for its next line.
//! One sequence of revisions runs over all kinds, as in etcd. Identities and tokens come from the seed.

mod builtin;
mod collect;
mod crd;
mod create;
mod decode;
mod defaults;
mod delete;
mod direct;
mod discovery;
mod events;
mod fieldset;
pub(crate) mod json;
mod json_patch;
mod kind;
mod limits;
mod list;
mod literal;
mod managed;
mod merge;
mod message;
mod meta;
mod namespace;
mod openapi;
mod patch;
mod prune;
mod refusal;
mod registry;
mod review;
mod route;
mod schema;
mod selector;
mod shelf;
mod table;
mod template;
mod update;
mod validate;
mod view;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

pub use message::{Millis, Request, Response};
pub use refusal::Refusal;
pub use watch::{Cursor, LineKind, WatchLine};

use collect::Work;
use kind::{Kind, StorageId};
use registry::Registry;
use route::{Route, Target};
use shelf::{Change, Shelf};

/// How many changes of one kind are remembered for watches that resume and for continued lists.
const KEEP: usize = 50_000;

/// How long changes are remembered: what the real server asks of etcd.
const REMEMBER: Millis = 300_000;

/// All objects of a cluster and their history.
#[derive(Debug)]
pub struct Store {
    seed: u64,
    drawn: u64,
    revision: u64,
    registry: Registry,
    shelves: BTreeMap<StorageId, Shelf>,
    /// Who says to be owned by which UID.
    dependents: BTreeMap<String, BTreeSet<(StorageId, String)>>,
    /// Where each living UID is.
    living: BTreeMap<String, (StorageId, String)>,
    work: BTreeSet<Work>,
    controllers: bool,
    /// The last revision of each second in which there was one, oldest first, for forgetting by age.
    ages: std::collections::VecDeque<(Millis, u64)>,
}

impl Store {
    /// A cluster with the namespaces `default`, `kube-system`, `kube-public` and `kube-node-lease`.
    pub fn new(seed: u64) -> Store {
        Store::begun(seed, 0)
    }

    /// The same, with its namespaces created at this time.
    pub fn begun(seed: u64, now: Millis) -> Store {
        let mut store = Store {
            seed,
            drawn: 0,
            revision: 1,
            registry: Registry::new(),
            shelves: BTreeMap::new(),
            dependents: BTreeMap::new(),
            living: BTreeMap::new(),
            work: BTreeSet::new(),
            controllers: true,
            ages: std::collections::VecDeque::new(),
        };
        for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            store.create(now, namespace).expect("invariant: an empty store takes its first namespaces");
        }
        store
    }

    /// Whether garbage collection and the deletion of namespaces happen within each call (the default), or only when
    /// [`Store::tick`] is called.
    pub fn set_controllers(&mut self, at_once: bool) {
        self.controllers = at_once;
    }

    /// The newest revision. It moves with every change of any object, and only then.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Answers one request that is no watch.
    pub fn handle(&mut self, now: Millis, request: &Request) -> Response {
        let response = self.answer(now, request).unwrap_or_else(Response::from);
        let response = self.tabled(now, request, response);
        if self.controllers {
            self.tick(now);
        }
        self.age(now);
        response
    }

    /// The answer as a table, where one is asked for and it shows objects.
    fn tabled(&self, now: Millis, request: &Request, response: Response) -> Response {
        if !response.is_success() || view::View::of(request).ok() != Some(view::View::Table) {
            return response;
        }
        match (route::route(&self.registry, request), response.value()) {
            (Ok(Route::Resource(target)), answer)
                if !target.kind.traits.review && answer["kind"] != "Status" =>
            {
                Response::json(response.status, &table::of(&target.kind, now, request, &answer))
            }
            _ => response,
        }
    }

    fn answer(&mut self, now: Millis, request: &Request) -> Result<Response, Refusal> {
        if request.method == "GET" && request.is_watch() {
            return Err(Refusal::bad_request("a watch is a stream: open a cursor"));
        }
        let route = route::route(&self.registry, request)?;
        let target = match route {
            Route::Answer(response) => return Ok(response),
            Route::Resource(target) => target,
        };
        if target.kind.traits.review {
            return review::answer(&target, request);
        }
        view::View::of(request)?;
        validate::field_manager(request)?;
        match (request.method.as_str(), &target.name) {
            ("GET", Some(_)) => self.read(&target, request),
            ("GET", None) => self.list_request(now, &target, request),
            ("POST", None) => self.create_request(now, &target, request),
            ("POST", Some(_)) if target.sub.is_some() => Err(Refusal::not_implemented(&target.described())),
            ("PUT", Some(_)) => self.put_request(now, &target, request),
            ("PATCH", Some(_)) => self.patch_request(now, &target, request),
            ("DELETE", Some(_)) => self.delete_request(now, &target, request),
            ("DELETE", None) => self.delete_collection(now, &target, request),
            _ => Err(Refusal::not_allowed()),
        }
    }

    fn read(&mut self, target: &Target, request: &Request) -> Result<Response, Refusal> {
        self.not_ahead(request)?;
        let name = target.name.as_deref().unwrap_or_default();
        let key = target.kind.key(target.namespace(), name);
        let shelf = self.shelves.get(&target.kind.storage);
        // Without a resourceVersion a read is consistent, whatever the cache knows.
        let cached = request.param("resourceVersion").and(request.as_of);
        let found = shelf.and_then(|shelf| match cached {
            Some(revision) => shelf.at(revision, &key),
            None => shelf.objects.get(&key).cloned(),
        });
        let object = found.ok_or_else(|| target.not_found())?;
        Ok(Response::json(200, &view::one(request, &target.kind.render(&object))))
    }

    /// Refuses a read that asks for a revision still to come.
    fn not_ahead(&self, request: &Request) -> Result<(), Refusal> {
        let Some(asked) = request.param("resourceVersion") else { return Ok(()) };
        let asked: u64 = asked.parse().map_err(|_| list::bad_revision(asked))?;
        let current = request.as_of.unwrap_or(self.revision);
        if asked > current { Err(Refusal::too_large_revision(asked, current)) } else { Ok(()) }
    }

    fn object(&self, storage: StorageId, key: &str) -> Option<&Arc<Value>> {
        self.shelves.get(&storage)?.objects.get(key)
    }

    /// Writes an object under the next revision.
    fn commit(&mut self, now: Millis, kind: &Kind, mut object: Value) -> Arc<Value> {
        meta::tidy(&mut object);
        let key = kind.key(meta::namespace(&object), meta::name(&object));
        let before = self.object(kind.storage, &key).cloned();
        let revision = self.advance(now);
        meta::meta_mut(&mut object).insert("resourceVersion".into(), json!(revision.to_string()));
        let after = Arc::new(object);
        self.index(kind.storage, &key, before.as_deref(), Some(&after));
        let change = Change { revision, key, before, after: after.clone(), deleted: false };
        self.shelves.entry(kind.storage).or_default().commit(change, KEEP);
        after
    }

    /// Removes an object; what is answered is its last state under the revision of the deletion.
    fn erase(&mut self, now: Millis, storage: StorageId, key: &str) -> Option<Arc<Value>> {
        let before = self.object(storage, key).cloned()?;
        let revision = self.advance(now);
        let mut last = (*before).clone();
        meta::meta_mut(&mut last).insert("resourceVersion".into(), json!(revision.to_string()));
        let after = Arc::new(last);
        self.index(storage, key, Some(&before), None);
        let change = Change {
            revision,
            key: key.to_owned(),
            before: Some(before),
            after: after.clone(),
            deleted: true,
        };
        self.shelves.entry(storage).or_default().commit(change, KEEP);
        self.after_erase(now, storage, &after);
        Some(after)
    }

    fn advance(&mut self, now: Millis) -> u64 {
        self.revision += 1;
        match self.ages.back_mut() {
            Some((at, last)) if now - *at < 1_000 => *last = self.revision,
            _ => self.ages.push_back((now, self.revision)),
        }
        self.revision
    }

    /// Forgets changes older than five minutes.
    fn age(&mut self, now: Millis) {
        let mut upto = 0;
        while self.ages.front().is_some_and(|(at, _)| now - at > REMEMBER) {
            upto = self.ages.pop_front().map_or(upto, |(_, revision)| revision);
        }
        if upto > 0 {
            self.compact(upto);
        }
    }

    /// Forgets all changes up to this revision: watches and continued lists from before it answer 410.
    pub fn compact(&mut self, revision: u64) {
        for shelf in self.shelves.values_mut() {
            shelf.compact(revision);
        }
    }

    /// The next number of the seed's sequence (SplitMix64).
    fn draw(&mut self) -> u64 {
        self.drawn += 1;
        let mut z = self.seed.wrapping_add(self.drawn.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn new_uid(&mut self) -> String {
        let (a, b) = (self.draw(), self.draw());
        let (high, mid, low) = (a >> 32, (a >> 16) & 0xffff, a & 0xfff);
        format!(
            "{high:08x}-{mid:04x}-4{low:03x}-{:04x}-{:012x}",
            0x8000 | ((b >> 48) & 0x3fff),
            b & 0xffff_ffff_ffff
        )
    }
}
