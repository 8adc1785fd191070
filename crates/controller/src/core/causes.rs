//! Root causes in words: at most three kinds of trouble with three names each, the same for the same world.

use std::collections::BTreeMap;
use std::fmt::Write;

use aggregator::{ObjectId, PolicyId, Role, Trouble};
use readiness::{Level, Reason, Time};

use super::Core;

/// So many kinds of trouble are told.
const KINDS: usize = 3;
/// So many names of each.
const NAMES: usize = 3;
/// A cause below a cause below a cause: no deeper than this.
const DEPTH: usize = 6;
/// A message has at most so many bytes.
pub(super) const LIMIT: usize = 1_024;

/// Troubles of one severity and kind: the first few by name, and how many there are.
#[derive(Default)]
struct Heap {
    first: BTreeMap<String, Trouble>,
    count: usize,
}

/// One line of trouble: severity, kind, text.
type Line = (Level, String, String);

impl Core {
    /// The troubles of a parent, worst first, as one text; empty where there are none.
    pub(super) fn causes(&self, parent: ObjectId, policy: PolicyId, role: Role, now: Time) -> String {
        let mut lines = self.trouble_lines(parent, policy, role, now, 0);
        if role == Role::Critical {
            lines.extend(self.missing_lines(parent, policy));
        }
        lines.sort();
        let more = lines.len().saturating_sub(KINDS);
        let mut text: Vec<String> = lines.into_iter().take(KINDS).map(|(_, _, text)| text).collect();
        if more > 0 {
            text.push(format!("and {more} more kinds of trouble"));
        }
        text.join(", ")
    }

    fn trouble_lines(
        &self,
        parent: ObjectId,
        policy: PolicyId,
        role: Role,
        now: Time,
        depth: usize,
    ) -> Vec<Line> {
        let mut heaps: BTreeMap<(Level, &str), Heap> = BTreeMap::new();
        let namespace = self.reflector.read(parent, |row| row.namespace.clone()).unwrap_or_default();
        for trouble in self.engine.troubles(parent, policy, role) {
            let named = self.reflector.read(trouble.child, |row| {
                if *row.namespace == *namespace || row.namespace.is_empty() {
                    row.name.to_string()
                } else {
                    format!("{}/{}", row.namespace, row.name)
                }
            });
            let heap = heaps.entry((trouble.weight.level, self.kind_name(trouble.kind))).or_default();
            heap.count += 1;
            heap.first.insert(named.unwrap_or_default(), trouble);
            if heap.first.len() > NAMES {
                heap.first.pop_last();
            }
        }
        let line = |((level, kind), heap): ((Level, &str), Heap)| {
            (level, kind.to_owned(), self.line(level, kind, &heap, now, depth))
        };
        heaps.into_iter().map(line).collect()
    }

    fn line(&self, level: Level, kind: &str, heap: &Heap, now: Time, depth: usize) -> String {
        let told = heap.first.iter().map(|(name, trouble)| {
            let detail = self.detail(trouble, now, depth);
            let detail = if detail.is_empty() { detail } else { format!(" ({detail})") };
            format!("{kind} {name} {}{detail}", level.word().to_lowercase())
        });
        let mut text = told.collect::<Vec<_>>().join(", ");
        if heap.count > heap.first.len() {
            _ = write!(text, " and {} more", heap.count - heap.first.len());
        }
        text
    }

    /// Why this child is not ready: the first cause below it where it is a parent itself, under the policy that makes
    /// least of it; else what its rule says.
    fn detail(&self, trouble: &Trouble, now: Time, depth: usize) -> String {
        let answers = self
            .engine
            .policies_of(trouble.child)
            .filter_map(|policy| Some((policy, self.engine.answer(trouble.child, policy)?)));
        let worst = answers.min_by_key(|(policy, answer)| (answer.reason.level(), *policy));
        let below = worst.map(|(policy, answer)| {
            let lines = if depth < DEPTH {
                self.trouble_lines(trouble.child, policy, Role::Critical, now, depth + 1)
            } else {
                Vec::new()
            };
            let deeper = lines.into_iter().min().map(|(_, _, text)| text);
            let missing =
                self.missing_lines(trouble.child, policy).into_iter().next().map(|(_, _, text)| text);
            deeper.or(missing).unwrap_or_else(|| answer.reason.word().to_owned())
        });
        let own = || {
            if trouble.withdrawn {
                return Reason::RuleChanged.to_string();
            }
            let through =
                |row: &watcher::reflector::Row| row.through(trouble.lens).at(now).reason.to_string();
            self.reflector.read(trouble.child, through).unwrap_or_default()
        };
        let overridden = matches!(trouble.weight.level, Level::Terminating | Level::Stuck);
        if overridden { own() } else { below.unwrap_or_else(own) }
    }

    /// What is expected and does not exist, or exists too often.
    pub(super) fn missing_lines(&self, parent: ObjectId, policy: PolicyId) -> Vec<Line> {
        let Some(words) = self.policies.get(&policy) else { return Vec::new() };
        let mut lines = Vec::new();
        let mut total = 0;
        let computed = self.computed(parent, policy);
        for (at, group) in words.groups.iter().enumerate() {
            let count = self.engine.tally(parent, policy, at as u8).total();
            total += count;
            let min = computed.iter().filter(|(g, _)| usize::from(*g) == at).map(|(_, n)| *n).max();
            let min = min.unwrap_or(group.min);
            if count < min {
                let text = format!("{} missing ({count} of at least {min} found)", group.kind);
                lines.push((Level::Missing, group.kind.clone(), text));
            }
            if let Some(max) = group.max.filter(|max| count > *max) {
                let text = format!("{} too many ({count} found, at most {max} expected)", group.kind);
                lines.push((Level::Missing, group.kind.clone(), text));
            }
        }
        lines.extend(self.missing_names(parent, policy, words));
        if lines.is_empty() && total < words.min.max(1) {
            let text = format!("no children yet (at least {} expected)", words.min.max(1));
            lines.push((Level::Missing, String::new(), text));
        }
        lines
    }

    /// How many the policy expects of each group, where it computes that from this parent.
    fn computed(&self, parent: ObjectId, policy: PolicyId) -> Box<[(u8, u32)]> {
        let counts = self.reflector.read(parent, |row| {
            let target = row.parent.as_ref()?.targets.iter().find(|t| t.policy == policy)?;
            Some(target.counts.clone())
        });
        counts.flatten().unwrap_or_default()
    }

    fn missing_names(&self, parent: ObjectId, policy: PolicyId, words: &super::PolicyWords) -> Vec<Line> {
        let names = self.reflector.read(parent, |row| {
            let target = row.parent.as_ref()?.targets.iter().find(|t| t.policy == policy)?;
            Some(target.names.clone())
        });
        let kind = |group: u8| words.groups.get(usize::from(group)).map_or("", |g| &g.kind).to_owned();
        let mut missing = names.flatten().unwrap_or_default();
        missing.retain(|(group, name)| {
            !self.engine.has_name(parent, policy, *group, watcher::reflector::name_hash(name))
        });
        missing.sort();
        missing
            .into_iter()
            .map(|(group, name)| (Level::Missing, kind(group), format!("{} {name} missing", kind(group))))
            .collect()
    }
}

/// Cuts a text to the limit, on a character's boundary.
pub(super) fn bounded(mut text: String) -> String {
    if text.len() > LIMIT {
        let end = (0..=LIMIT - '…'.len_utf8()).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}
