//! The parents of the crowd: fifty of five kinds, and what becomes of each.

use super::crowd_fate::ParentFate;
use super::fixtures::DemoObject;

/// The API of the kinds that the demo defines.
const EXAMPLE_API: &str = "example.com/v1";
/// The API of groups.
const ROLLCALL_API: &str = "rollcall.dev/v1alpha1";
/// Seconds by which the fate of one parent is behind that of the one before, so that not all turn at once.
const OFFSET_SECONDS: u64 = 7;

/// A kind of parents of the crowd: its API and name, the API and kind of the children that act, and what its parents are
/// called, where they are and what becomes of them.
struct CrowdKind {
    parent: (&'static str, &'static str),
    child: (&'static str, &'static str),
    namespaces: &'static [&'static str],
    names: &'static [(&'static str, ParentFate)],
}

use ParentFate::{
    Childless, Failed, Fails, Flaps, Held, Leaving, Lost, RollsOut, Slow, Steady, Suspended, Unhandled,
};

const CROWD: [CrowdKind; 5] = [
    CrowdKind {
        parent: (EXAMPLE_API, "Shop"),
        child: ("apps/v1", "Deployment"),
        namespaces: &["europe", "asia", "america"],
        names: &[
            ("books", Steady),
            ("music", Steady),
            ("garden", RollsOut),
            ("toys", Steady),
            ("shoes", Flaps),
            ("tea", Steady),
            ("bikes", Held),
            ("lamps", Steady),
            ("maps", Fails),
            ("games", Steady),
            ("paper", Unhandled),
            ("cloth", Steady),
            ("spice", Childless),
            ("wine", RollsOut),
        ],
    },
    CrowdKind {
        parent: (EXAMPLE_API, "Database"),
        child: ("v1", "Pod"),
        namespaces: &["europe", "asia", "america"],
        names: &[
            ("books-db", Steady),
            ("music-db", Fails),
            ("garden-db", Steady),
            ("toys-db", Steady),
            ("shoes-db", Steady),
            ("tea-db", RollsOut),
            ("bikes-db", Steady),
            ("lamps-db", Failed),
            ("audit", Leaving),
            ("billing", Steady),
            ("catalog", Flaps),
            ("ledger", Steady),
            ("orders", Lost),
            ("search", Slow),
        ],
    },
    CrowdKind {
        parent: (EXAMPLE_API, "Cache"),
        child: ("apps/v1", "StatefulSet"),
        namespaces: &["platform"],
        names: &[
            ("sessions", Steady),
            ("carts", Steady),
            ("prices", RollsOut),
            ("stock", Steady),
            ("pages", Steady),
            ("tokens", Slow),
            ("rates", Steady),
            ("routes", Held),
            ("users", Steady),
            ("texts", Flaps),
        ],
    },
    CrowdKind {
        parent: (EXAMPLE_API, "Pipeline"),
        child: ("batch/v1", "Job"),
        namespaces: &["platform", "reports"],
        names: &[
            ("exports", Steady),
            ("invoices", RollsOut),
            ("imports", Steady),
            ("mails", Failed),
            ("thumbnails", Steady),
            ("backups", Suspended),
            ("feeds", RollsOut),
            ("archive", Steady),
            ("taxes", Childless),
            ("labels", Steady),
        ],
    },
    CrowdKind {
        parent: (ROLLCALL_API, "ReadinessGroup"),
        child: ("apps/v1", "Deployment"),
        namespaces: &["tools"],
        names: &[("checkout", Steady), ("mailer", RollsOut)],
    },
];

/// One parent of the crowd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CrowdMember {
    parent: (&'static str, &'static str),
    child: (&'static str, &'static str),
    namespace: &'static str,
    name: &'static str,
    child_name: String,
    /// Name of the parent above it, of kind Shop.
    pub(super) shop: Option<&'static str>,
    /// What becomes of it.
    pub(super) fate: ParentFate,
    /// Seconds by which its fate is ahead of the clock.
    pub(super) ahead: u64,
}

impl CrowdMember {
    /// Returns all members; a parent comes before those below it.
    pub(super) fn list_all() -> Vec<CrowdMember> {
        let members = CROWD.iter().flat_map(|kind| {
            kind.names.iter().enumerate().map(|(at, &(name, fate))| {
                let suffix = if kind.child.1 == "Pod" { "-0" } else { "" };
                CrowdMember {
                    parent: kind.parent,
                    child: kind.child,
                    namespace: kind.namespaces[at % kind.namespaces.len()],
                    name,
                    child_name: format!("{name}{suffix}"),
                    shop: name.strip_suffix("-db"),
                    fate,
                    ahead: 0,
                }
            })
        });
        (0..)
            .step_by(usize::try_from(OFFSET_SECONDS).unwrap_or(1))
            .zip(members)
            .map(|(ahead, m)| CrowdMember { ahead, ..m })
            .collect()
    }

    /// Returns the parent.
    pub(super) fn parent_object(&self) -> DemoObject<'_> {
        let (api, kind) = self.parent;
        DemoObject { api, kind, namespace: self.namespace, name: self.name }
    }

    /// Returns the child that acts.
    pub(super) fn child_object(&self) -> DemoObject<'_> {
        let (api, kind) = self.child;
        DemoObject { api, kind, namespace: self.namespace, name: &self.child_name }
    }

    /// Returns the Shop that owns it.
    pub(super) fn shop_object(&self) -> Option<DemoObject<'_>> {
        let name = self.shop?;
        Some(DemoObject { api: EXAMPLE_API, kind: "Shop", namespace: self.namespace, name })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_crowd_is_fifty_parents_of_five_kinds_with_every_fate() {
        let crowd = CrowdMember::list_all();
        assert_eq!(crowd.len(), 50);
        let kinds: BTreeSet<_> = crowd.iter().map(|member| member.parent).collect();
        assert_eq!(kinds.len(), 5);
        let fates: BTreeSet<_> = crowd.iter().map(|member| member.fate).collect();
        assert_eq!(fates.len(), 12, "{fates:?}");
        let names: BTreeSet<_> = crowd.iter().map(|m| (m.parent, m.namespace, m.name)).collect();
        assert_eq!(names.len(), 50);
    }

    #[test]
    fn a_database_of_a_shop_is_in_the_namespace_of_that_shop() {
        let crowd = CrowdMember::list_all();
        let below: Vec<_> = crowd.iter().filter_map(CrowdMember::shop_object).collect();
        assert_eq!(below.len(), 8);
        for shop in below {
            assert!(crowd.iter().any(|member| member.parent_object() == shop), "{shop:?}");
        }
    }
}
