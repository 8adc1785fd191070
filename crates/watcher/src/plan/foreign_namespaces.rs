//! Namespaces, besides their own, in which parents may have children that they name themselves.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::allowed_namespaces::AllowedNamespaces;
use super::namespace_scope::NamespaceScope;

/// Longest name of a namespace, which is a DNS label.
const MAX_NAMESPACE_BYTES: usize = 63;

/// Which namespaces an administrator opens to parents, by the namespace of these. Written `platform=*;team-a=team-a-*,shared`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespaceGrants(GrantTable);

#[derive(Clone, Debug, PartialEq, Eq)]
enum GrantTable {
    /// Every namespace to all: for who looks with rights of their own.
    Any,
    ByParent(Arc<[(Box<str>, AllowedNamespaces)]>),
}

impl Default for GrantTable {
    fn default() -> Self {
        GrantTable::ByParent(Arc::default())
    }
}

/// Text that opens no namespaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotNamespaceGrants(String);

impl fmt::Display for NotNamespaceGrants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} opens no namespaces: write NAMESPACE=NAMES, with names, beginnings of names and *, or * alone, as in \
             platform=*;team-a=team-a-*,shared",
            self.0
        )
    }
}

impl std::error::Error for NotNamespaceGrants {}

fn is_namespace(text: &str) -> bool {
    let is_inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    (1..=MAX_NAMESPACE_BYTES).contains(&text.len())
        && text.bytes().all(is_inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

fn is_pattern(text: &str) -> bool {
    let is_beginning = |text: &str| text.is_empty() || is_namespace(text.trim_end_matches('-'));
    is_namespace(text) || text.strip_suffix('*').is_some_and(is_beginning)
}

impl FromStr for NamespaceGrants {
    type Err = NotNamespaceGrants;

    fn from_str(text: &str) -> Result<NamespaceGrants, NotNamespaceGrants> {
        let grant = |part: &str| {
            let (of, names) = part.split_once('=')?;
            let names: Vec<&str> = names.split(',').map(str::trim).collect();
            let is_sound = is_namespace(of.trim()) && names.iter().all(|name| is_pattern(name));
            let listed = || AllowedNamespaces::listed(names.iter().copied());
            let allowed = || if names.contains(&"*") { AllowedNamespaces::any() } else { listed() };
            is_sound.then(|| (Box::from(of.trim()), allowed()))
        };
        let wrong = |part: &str| NotNamespaceGrants(part.chars().take(80).collect());
        let parts = text.split(';').map(str::trim).filter(|part| !part.is_empty());
        let grants = parts.map(|part| grant(part).ok_or_else(|| wrong(part)));
        Ok(NamespaceGrants(GrantTable::ByParent(grants.collect::<Result<_, _>>()?)))
    }
}

impl NamespaceGrants {
    /// Opens every namespace to all parents: for who looks with rights of their own.
    pub fn any() -> NamespaceGrants {
        NamespaceGrants(GrantTable::Any)
    }

    /// Returns `true` if a parent in `own` may have children in `other`.
    pub fn allows(&self, own: &str, other: &str) -> bool {
        match &self.0 {
            _ if own == other => true,
            GrantTable::Any => true,
            GrantTable::ByParent(grants) => {
                grants.iter().any(|(of, allowed)| **of == *own && allowed.allows(other))
            }
        }
    }
}

/// Where parents may have children, and where these can be seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForeignNamespaces {
    /// What an administrator opens.
    pub grants: NamespaceGrants,
    /// Namespaces that are watched.
    pub watched: NamespaceScope,
}

impl ForeignNamespaces {
    /// Every namespace: for who looks with rights of their own.
    pub fn any() -> ForeignNamespaces {
        ForeignNamespaces { grants: NamespaceGrants::any(), watched: NamespaceScope::default() }
    }

    /// Says why a parent in `own` cannot have children in `other`. Of a namespace that is not opened nothing else is told.
    pub(crate) fn check_child(&self, own: &str, other: &str) -> Result<(), String> {
        let quoted: String = other.chars().take(MAX_NAMESPACE_BYTES).collect();
        if !self.grants.allows(own, other) {
            return Err(format!(
                "it cannot be judged: groups of namespace {own} may not have members in namespace {quoted:?}: remove it, or \
                 have an administrator allow it by --group-namespaces '{own}={quoted}'"
            ));
        }
        if own != other && !self.watched.covers(other) {
            return Err(format!(
                "it cannot be judged: members in namespace {quoted:?} cannot be seen, because Rollcall is restricted to \
                 other namespaces (--namespaces): remove it, or have an administrator add it"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_are_opened_by_the_namespace_of_the_parent_and_to_no_other() {
        let grants: NamespaceGrants = "platform=*; team-a=team-a-*,shared;".parse().expect("grants");
        let of = |own: &str, other: &str| grants.allows(own, other);
        assert!(of("platform", "bank") && of("team-a", "team-a-web") && of("team-a", "shared"));
        assert!(of("bank", "bank"), "its own");
        for (own, other) in [
            ("team-a", "bank"),
            ("team-a", "team-b"),
            ("shared", "team-a"),
            ("bank", "platform"),
            ("team-a-web", "team-a"),
        ] {
            assert!(!of(own, other), "{own} {other}");
        }
        assert!(!NamespaceGrants::default().allows("shop", "bank"));
        assert!(NamespaceGrants::any().allows("shop", "bank"));
        assert_eq!("".parse(), Ok(NamespaceGrants::default()));
    }

    #[test]
    fn what_opens_no_namespaces_is_refused() {
        for text in [
            "*=bank",
            "shop",
            "shop=",
            "=bank",
            "shop=Bank",
            "shop=ba*k",
            "shop=**",
            "team-*=bank",
            "shop=-*",
            "shop=a,,b",
        ] {
            let refused = text.parse::<NamespaceGrants>();
            assert!(refused.is_err_and(|why| why.to_string().contains(text)), "{text}");
        }
    }

    #[test]
    fn what_is_not_opened_is_told_with_the_flag_and_what_is_not_watched_as_such() {
        let foreign = ForeignNamespaces {
            grants: "shop=bank,books".parse().expect("grants"),
            watched: NamespaceScope::only(["shop", "books", "vault"]),
        };
        let told = |other: &str| foreign.check_child("shop", other).err().unwrap_or_default();
        assert_eq!([told("shop"), told("books")], ["", ""]);
        assert!(told("vault").contains("--group-namespaces 'shop=vault'"), "{}", told("vault"));
        assert!(told("nowhere").contains("--group-namespaces 'shop=nowhere'"), "whether there is one or not");
        assert!(told("bank").contains("cannot be seen") && told("bank").contains("--namespaces"));
    }
}
