//! Rights in words.

use policy::rbac::AccessNeed;

/// Maximum number of lines about rights that one policy lacks.
const MAX_MISSING_RIGHTS: usize = 32;

/// Rights such as `get,list,watch databases.example.com`, each with what it is for: the verbs for one resource are one right.
pub(super) fn name_rights(needs: &[AccessNeed]) -> Vec<(String, &'static str)> {
    let mut grouped: Vec<(&AccessNeed, Vec<&str>)> = Vec::new();
    for need in needs {
        let same = |known: &AccessNeed| AccessNeed { verb: need.verb, ..known.clone() } == *need;
        match grouped.iter_mut().find(|(known, _)| same(known)) {
            Some((_, verbs)) => verbs.push(need.verb),
            None => grouped.push((need, vec![need.verb])),
        }
    }
    let name = |(need, verbs): (&AccessNeed, Vec<&str>)| {
        let right = need.to_string();
        let on = right.strip_prefix(need.verb).unwrap_or(&right);
        (format!("{}{on}", verbs.join(",")), need.purpose)
    };
    grouped.into_iter().map(name).collect()
}

/// Rights as lines such as `get,list,watch databases.example.com: the parents of the policy`, of which there are few.
pub(super) fn describe_rights(needs: &[AccessNeed]) -> Vec<String> {
    let rights = name_rights(needs);
    let shown = rights.iter().take(MAX_MISSING_RIGHTS).map(|(right, purpose)| format!("{right}: {purpose}"));
    let more = rights.len().checked_sub(MAX_MISSING_RIGHTS).filter(|more| *more > 0);
    shown.chain(more.map(|more| format!("and {more} more"))).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A right to read or write this resource of `example.com`.
    pub(in crate::policies) fn need(verb: &'static str, resource: &str) -> AccessNeed {
        AccessNeed {
            verb,
            group: "example.com".to_owned(),
            resource: resource.to_owned(),
            namespace: None,
            name: None,
            purpose: "the parents",
            essential: true,
        }
    }

    #[test]
    fn verbs_of_one_resource_are_one_line_and_lines_are_few() {
        let needs =
            [need("list", "databases"), need("watch", "databases"), need("patch", "databases/status")];
        let lines = describe_rights(&needs);
        assert_eq!(
            lines,
            [
                "list,watch databases.example.com: the parents",
                "patch databases/status.example.com: the parents"
            ]
        );
        let many: Vec<_> = (0..50).map(|n| need("list", &format!("kinds{n}"))).collect();
        let lines = describe_rights(&many);
        assert_eq!((lines.len(), lines.last().map(String::as_str)), (33, Some("and 18 more")));
    }
}
