//! The search for everything below the objects of a parent's tree: of every kind that the cluster serves, read with
//! Rollcall's rights, judged by the built-in rules. Its costs are bounded whatever viewers ask for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aggregator::{ObjectId, PolicyId};
use inspect::discover::listable_kinds;
use inspect::owned_index::{KnownObjects, OwnedIndex, OwnedList, is_idle_replica_set, retain_searched_kinds};
use inspect::owned_reader::{OwnedReadLimits, OwnedReader};
use inspect::owned_walk::{OwnedBranch, OwnedWalk};
use inspect::self_rules::SelfRules;
use readiness::{RuleKind, StuckLimits, Time, assess};
use rustc_hash::FxHashMap;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout, timeout_at};
use watcher::ApiKind;
use watcher::reflector::Reflector;
use watcher::wire::ChildObject;

use super::below_tree::{BelowFindings, BelowVerdict, build_group};
use super::refusal::PageRefusal;
use super::tree::PageNode;
use super::ttl_cache::TtlCache;
use crate::clock::ServerClock;
use crate::reviews::{ClientBudgets, RequestBudget, ReviewedUser, SharedBudget};

/// Bounds of one search.
const READ_LIMITS: OwnedReadLimits = OwnedReadLimits {
    concurrent: 4,
    page_timeout: Duration::from_secs(5),
    total_timeout: Duration::from_secs(8),
    objects_per_kind: 10_000,
    bytes_per_kind: 16 << 20,
};
/// Maximum number of concurrent searches.
const MAX_CONCURRENT_SEARCHES: usize = 2;
/// Maximum number of requests that hold a whole tree: those who search, and as many whose findings are cached.
const MAX_WHOLE_TREES: usize = 2 * MAX_CONCURRENT_SEARCHES;
/// Longest time that a viewer waits for others: for their searches, their trees and their live reads together. 10 s.
const TURN_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of kinds that are listed.
const MAX_SEARCHED_KINDS: usize = 300;
/// Maximum number of objects that are found below one parent.
const MAX_FOUND_OBJECTS: usize = 1_000;
/// Time for which lists and findings are cached, for all viewers. 10 s.
const SEARCH_CACHE_TTL: Duration = Duration::from_secs(10);
/// Time for which the kinds that the cluster serves are cached. 60 s.
const KINDS_CACHE_TTL: Duration = Duration::from_secs(60);
/// Maximum number of entries of all cached lists: some 10 MB.
const MAX_CACHED_ENTRIES: usize = 40_000;
/// Maximum number of objects in all cached findings: some 2 MB.
const MAX_CACHED_FINDINGS: usize = 4_000;
/// Lists for all viewers together.
const LIST_BUDGET: RequestBudget = RequestBudget { burst: 400, interval: Duration::from_millis(50) };
/// Searches for all viewers together; a cached finding costs nothing.
const SEARCH_BUDGET: RequestBudget = RequestBudget { burst: 40, interval: Duration::from_millis(250) };
/// Searches for one user.
const SEARCHES_OF_USER: RequestBudget = RequestBudget { burst: 10, interval: Duration::from_secs(1) };

/// Group, version, plural and namespace of a list.
type ListKey = (String, String, String, Option<String>);

/// A parent under one policy, by its uid.
type BelowKey = (Arc<str>, PolicyId);

/// Searches below parents, with what was read a short time ago.
pub(super) struct BelowSearch {
    client: kube::Client,
    reflector: Arc<Reflector>,
    clock: ServerClock,
    turns: Semaphore,
    /// Those who wait for a turn hold no tree.
    whole_trees: Semaphore,
    /// All live reads for viewers; a search is one of them.
    inspections: Arc<Semaphore>,
    lists_budget: SharedBudget,
    budget: SharedBudget,
    budgets: ClientBudgets<ReviewedUser>,
    kinds: TtlCache<(), Arc<Vec<ApiKind>>>,
    lists: TtlCache<ListKey, OwnedList>,
    findings: TtlCache<BelowKey, Arc<BelowFindings>>,
}

/// What is owned by objects of the tree, and the number of objects that were left out, by kind and namespace.
type FoundBranches<'o> = (Vec<(ObjectId, Vec<OwnedBranch<'o>>)>, BTreeMap<(usize, Box<str>), usize>);

/// A whole tree with what was found below it.
pub(super) struct SearchedTree<'a> {
    pub(super) found: Arc<BelowFindings>,
    pub(super) nodes: Vec<PageNode>,
    /// The turn to hold the tree.
    pub(super) _turn: SemaphorePermit<'a>,
}

impl BelowSearch {
    pub(super) fn new(
        client: kube::Client,
        reflector: Arc<Reflector>,
        clock: ServerClock,
        inspections: Arc<Semaphore>,
    ) -> BelowSearch {
        BelowSearch {
            client,
            reflector,
            clock,
            turns: Semaphore::new(MAX_CONCURRENT_SEARCHES),
            whole_trees: Semaphore::new(MAX_WHOLE_TREES),
            inspections,
            lists_budget: SharedBudget::new(LIST_BUDGET),
            budget: SharedBudget::new(SEARCH_BUDGET),
            budgets: ClientBudgets::new(SEARCHES_OF_USER),
            kinds: TtlCache::new(KINDS_CACHE_TTL, 1),
            lists: TtlCache::new(SEARCH_CACHE_TTL, MAX_CACHED_ENTRIES),
            findings: TtlCache::new(SEARCH_CACHE_TTL, MAX_CACHED_FINDINGS),
        }
    }

    /// Frees what is too old to be used.
    pub(super) fn remove_expired(&self) {
        let now = self.clock.now();
        self.lists.remove_expired(now);
        self.findings.remove_expired(now);
    }

    /// What is below the objects of a tree and is not in it. The tree is asked for when it is this request's turn. `user` pays
    /// for the search, if there is one to be made.
    pub(super) async fn find_below(
        &self,
        key: BelowKey,
        user: Option<&ReviewedUser>,
        tree: impl Future<Output = Result<Vec<PageNode>, PageRefusal>>,
    ) -> Result<SearchedTree<'_>, PageRefusal> {
        let known = || self.findings.get(&key, self.clock.now());
        let deadline = Instant::now() + TURN_TIMEOUT;
        let mut found = known();
        let mut search = None;
        if found.is_none() {
            search = Some(wait_for_turn(&self.turns, deadline).await?);
            // Somebody else may have searched meanwhile.
            found = known();
        }
        if let Some(found) = found {
            drop(search);
            let turn = wait_for_turn(&self.whole_trees, deadline).await?;
            return Ok(SearchedTree { found, nodes: tree.await?, _turn: turn });
        }
        let now = self.clock.now();
        if user.is_some_and(|user| !self.budgets.take(user, now)) || !self.budget.take(now) {
            return Err(PageRefusal::TooManySearches);
        }
        let turn = wait_for_turn(&self.whole_trees, deadline).await?;
        let nodes = tree.await?;
        let _inspection = wait_for_turn(&self.inspections, deadline).await?;
        let found = Arc::new(self.search(&nodes, now).await?);
        self.findings.put(key, found.clone(), 1 + found.len(), self.clock.now());
        Ok(SearchedTree { found, nodes, _turn: turn })
    }

    async fn search(&self, nodes: &[PageNode], now: Time) -> Result<BelowFindings, PageRefusal> {
        let Some(root) = nodes.first() else { return Ok(BelowFindings::default()) };
        let namespace = Some(root.namespace.clone()).filter(|namespace| !namespace.is_empty());
        let mut kinds = self.searched_kinds(namespace.as_deref()).await?;
        let unsearched = kinds.split_off(kinds.len().min(MAX_SEARCHED_KINDS));
        let reader = OwnedReader::new(self.client.clone(), "Rollcall", READ_LIMITS);
        let rules = SelfRules::read(&self.client, namespace.as_deref()).await;
        let (reader, rules, scope) = (&reader, &rules, namespace.as_deref());
        let list = |api: ApiKind| async move {
            if !rules.may_list(&api) {
                return Err("Rollcall may not list them".to_owned());
            }
            self.list_kind(reader, &api, scope).await
        };
        let index = reader.index_kinds(kinds, list).await;
        let judge = |api: &ApiKind, child: &ChildObject| judge_object(api, child, now);
        let (branches, left_out) = self.branches_below(&index, nodes);
        let mut found = Vec::new();
        branches
            .iter()
            .flat_map(|(_, branches)| branches)
            .for_each(|branch| branch.collect_metas(&mut found));
        let contents = reader.read_contents(&index, &found, judge).await;
        let groups = branches
            .iter()
            .map(|(owner, branches)| build_group(*owner, branches, &index, &contents))
            .collect();
        let mut findings = BelowFindings { groups, left_out, ..BelowFindings::default() };
        findings.note_unread(&index, &contents, scope);
        findings.note_unsearched(&unsearched, MAX_SEARCHED_KINDS);
        findings.kinds = index.kinds;
        Ok(findings)
    }

    /// What is owned below the objects of the tree, by these objects.
    fn branches_below<'o>(&self, index: &'o OwnedIndex, nodes: &[PageNode]) -> FoundBranches<'o> {
        // An object that stands in the tree twice is searched where it stands first.
        let mut places = FxHashMap::default();
        for (at, node) in nodes.iter().enumerate() {
            places.entry(node.id).or_insert(at);
        }
        let find = |uid: &str| self.reflector.find_object(uid).filter(|id| places.contains_key(id));
        let mut walk = OwnedWalk::new(index, MAX_FOUND_OBJECTS, &|_| true);
        for meta in index.owned_metas().filter(|meta| find(&meta.uid).is_some()) {
            walk.exclude_uid(&meta.uid);
        }
        let mut owners: Vec<_> =
            index.owner_uids().filter_map(|uid| find(uid).map(|id| (places[&id], id, uid))).collect();
        owners.sort_unstable_by_key(|(at, ..)| *at);
        let branches =
            owners.into_iter().map(|(at, id, uid)| (id, walk.find_below(uid, &nodes[at].namespace)));
        let branches = branches.filter(|(_, branches)| !branches.is_empty()).collect();
        let mut left_out = BTreeMap::new();
        for meta in walk.left_out {
            *left_out.entry((meta.kind, meta.namespace.clone())).or_default() += 1;
        }
        (branches, left_out)
    }

    async fn searched_kinds(&self, namespace: Option<&str>) -> Result<Vec<ApiKind>, PageRefusal> {
        let mut kinds = if let Some(kinds) = self.kinds.get(&(), self.clock.now()) {
            (*kinds).clone()
        } else {
            let listed = timeout(READ_LIMITS.page_timeout, listable_kinds(&self.client)).await;
            let kinds =
                listed.map_err(|_| PageRefusal::Unreachable)?.map_err(|_| PageRefusal::Unreachable)?;
            self.kinds.put((), Arc::new(kinds.clone()), 1, self.clock.now());
            kinds
        };
        retain_searched_kinds(&mut kinds, namespace);
        Ok(kinds)
    }

    /// What the objects of a kind own, or are owned by, from a list that was read a short time ago, for whomever.
    async fn list_kind(
        &self,
        reader: &OwnedReader,
        api: &ApiKind,
        namespace: Option<&str>,
    ) -> Result<OwnedList, String> {
        let key = (api.group.clone(), api.version.clone(), api.plural.clone(), namespace.map(str::to_owned));
        if let Some(list) = self.lists.get(&key, self.clock.now()) {
            return Ok(list);
        }
        if !self.lists_budget.take(self.clock.now()) {
            return Err("too many lists were asked for; try again in a few seconds".to_owned());
        }
        let list = reader.list_owned(api, namespace, &KnownObjects::default()).await?;
        self.lists.put(key, list.clone(), 1 + list.entries.len(), self.clock.now());
        Ok(list)
    }
}

async fn wait_for_turn(turns: &Semaphore, deadline: Instant) -> Result<SemaphorePermit<'_>, PageRefusal> {
    let turn = timeout_at(deadline, turns.acquire()).await;
    turn.map_err(|_| PageRefusal::TooManySearches)?.map_err(|_| PageRefusal::Unreachable)
}

/// The verdict of the built-in rules.
fn judge_object(api: &ApiKind, child: &ChildObject, now: Time) -> BelowVerdict {
    let (kind, facts) = (RuleKind::from_group_kind(&api.group, &api.kind), &child.facts);
    let verdict = assess(kind, facts, &StuckLimits::default()).verdict_at(now).clone();
    let since = readiness::unready_since(kind, facts, &verdict);
    BelowVerdict { verdict, since, is_idle: is_idle_replica_set(api, facts) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reviews::review_server::ReviewServer;
    use std::cell::Cell;

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_a_search_holds_no_tree_and_waits_for_none_if_it_was_made() {
        let client = ReviewServer::new(|_, _| serde_json::Value::Null).client();
        let (reflector, inspections) = (Arc::new(Reflector::new(|| ())), Arc::new(Semaphore::new(1)));
        let below = BelowSearch::new(client, reflector, ServerClock::assume_local(), inspections);
        let built = Cell::new(0);
        let tree = || async {
            built.set(built.get() + 1);
            Ok(Vec::new())
        };
        let key = |uid: &str| (Arc::from(uid), PolicyId(0));
        let others = below.turns.acquire_many(2).await.unwrap();
        let refused = below.find_below(key("a"), None, tree()).await.map(drop);
        assert_eq!((refused, built.get()), (Err(PageRefusal::TooManySearches), 0));
        below.findings.put(key("b"), Arc::default(), 1, below.clock.now());
        below.find_below(key("b"), None, tree()).await.map(drop).unwrap();
        assert_eq!(built.get(), 1);
        drop(others);
        let trees = below.whole_trees.acquire_many(4).await.unwrap();
        let refused = below.find_below(key("b"), None, tree()).await.map(drop);
        assert_eq!((refused, built.get()), (Err(PageRefusal::TooManySearches), 1));
        drop(trees);
        below.find_below(key("a"), None, tree()).await.map(drop).unwrap();
        assert_eq!(built.get(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_more_than_ten_seconds_for_others_whatever_of_theirs_it_is() {
        let client = ReviewServer::new(|_, _| serde_json::Value::Null).client();
        let (reflector, inspections) = (Arc::new(Reflector::new(|| ())), Arc::new(Semaphore::new(4)));
        let below = BelowSearch::new(client, reflector, ServerClock::assume_local(), inspections.clone());
        let key = |uid: &str| (Arc::from(uid), PolicyId(0));
        let free_after = async |turns: &Semaphore, permits: u32, seconds: u64| {
            let held = turns.acquire_many(permits).await.unwrap();
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            drop(held);
        };
        // Each of these for less than ten seconds, and all of them for more.
        let (searches, trees) = (&below.turns, &below.whole_trees);
        for held in [[60, 0, 0], [0, 60, 0], [0, 0, 60], [4, 8, 60], [7, 60, 0], [6, 7, 60]] {
            let begun = Instant::now();
            let asked = async {
                tokio::task::yield_now().await;
                let refused = below.find_below(key("a"), None, async { Ok(Vec::new()) }).await.map(drop);
                (refused, begun.elapsed())
            };
            let ((), (), (), answer) = tokio::join!(
                free_after(searches, 2, held[0]),
                free_after(trees, 4, held[1]),
                free_after(&inspections, 4, held[2]),
                asked
            );
            assert_eq!(answer, (Err(PageRefusal::TooManySearches), Duration::from_secs(10)), "{held:?}");
        }
        let begun = Instant::now();
        let asked = async {
            tokio::task::yield_now().await;
            below.find_below(key("a"), None, async { Ok(Vec::new()) }).await.map(drop)
        };
        let ((), answer) = tokio::join!(free_after(searches, 2, 9), asked);
        assert_eq!((answer, begun.elapsed()), (Ok(()), Duration::from_secs(9)));
    }
}
