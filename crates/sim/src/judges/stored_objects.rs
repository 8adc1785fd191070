//! The server's objects as the judges read them, read again only where they have changed.

use std::rc::Rc;
use std::sync::Arc;

use serde_json::Value;

use crate::world::{ModelObject, SimWorld};

/// All objects of the server at one revision.
#[derive(Default)]
pub(super) struct StoredObjects {
    revision: Option<u64>,
    raw: Vec<Arc<Value>>,
    models: Vec<Rc<ModelObject>>,
}

impl StoredObjects {
    /// Reads what has changed; returns `false` if nothing has.
    pub(super) fn update(&mut self, world: &SimWorld) -> bool {
        let revision = Some(world.store.revision());
        if std::mem::replace(&mut self.revision, revision) == revision {
            return false;
        }
        let all = world.list_kinds(0..world.scenario.kinds.len());
        let models = all.iter().map(|(kind, object)| {
            let held = self.raw.iter().position(|held| Arc::ptr_eq(held, object));
            held.map_or_else(|| Rc::new(world.read_object(*kind, object)), |at| self.models[at].clone())
        });
        self.models = models.collect();
        self.raw = all.into_iter().map(|(_, object)| object).collect();
        true
    }

    /// Returns all objects.
    pub(super) fn models(&self) -> &[Rc<ModelObject>] {
        &self.models
    }

    /// Returns each object as the server has it, with what the judges read of it.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Value, &Rc<ModelObject>)> {
        self.raw.iter().map(|object| &**object).zip(&self.models)
    }
}
