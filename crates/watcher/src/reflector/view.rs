//! An object as the engine is shown it.

use aggregator::{Link, ObjectId, Target, View};
use readiness::rollup::Weight;
use readiness::{Time, Verdict};

use super::{Reflector, selectors};

impl Reflector {
    /// Shows an object as it stands at `now`; `None` where it is gone.
    pub fn view<R>(&self, id: ObjectId, now: Time, show: impl FnOnce(Option<&View<'_>>) -> R) -> R {
        let links = self.counted_links(id);
        let mut show = Some(show);
        let shown = self.slots.with(id, |slot| {
            let row = slot.row.as_ref()?;
            let weights: Vec<Weight> = row.assessments().map(|a| weight(a.at(now))).collect();
            let view = View {
                kind: row.kind,
                weights: &weights,
                generation: row.generation,
                created: row.created(),
                name: selectors::name_hash(&row.name),
                links: &links,
                recheck: row.recheck(now),
                lends: row.aside.as_ref().map_or(&[], |aside| &aside.lends),
                parent: row.parent.as_ref().map(|p| &p.view),
            };
            Some(show.take()?(Some(&view)))
        });
        match (shown.flatten(), show) {
            (Some(shown), _) => shown,
            (None, Some(show)) => show(None),
            (None, None) => unreachable!("a view is shown once"),
        }
    }

    /// Its links, without those to owners in another namespace and to other generations of theirs.
    fn counted_links(&self, id: ObjectId) -> Vec<Link> {
        let read = self.read(id, |row| {
            let only = row.remembered().map(|remembered| remembered.only.clone()).unwrap_or_default();
            (row.links.as_slice().to_vec(), row.namespace.clone(), only)
        });
        let Some((mut links, namespace, only)) = read else { return Vec::new() };
        links.retain(|link| only.is_empty() || !self.is_outdated(*link, &only));
        links.retain(|link| match link.target() {
            Target::Object(owner) => !self.is_stranger(owner, &namespace),
            Target::Selector(_) => true,
        });
        links
    }

    /// Objects whose owner lives in another namespace, which therefore count for nobody: name and owner's name.
    pub fn strangers(&self, most: usize) -> Vec<(String, String)> {
        let mut refers = Vec::new();
        self.each(|_, row| {
            for link in row.links.as_slice() {
                if let Target::Object(owner) = link.target() {
                    refers.push((format!("{}/{}", row.namespace, row.name), row.namespace.clone(), owner));
                }
            }
        });
        let strange = refers.into_iter().filter(|(_, namespace, owner)| self.is_stranger(*owner, namespace));
        let named = strange.filter_map(|(child, _, owner)| {
            Some((child, self.read(owner, |row| format!("{}/{}", row.namespace, row.name))?))
        });
        named.take(most).collect()
    }
}

fn weight(verdict: &Verdict) -> Weight {
    Weight { level: verdict.level, terminal: verdict.terminal() }
}
