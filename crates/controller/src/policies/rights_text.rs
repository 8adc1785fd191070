//! Rights in words.

use policy::rbac::AccessNeed;

/// Maximum number of lines about rights that one policy lacks.
const MAX_MISSING_RIGHTS: usize = 32;

/// Rights as lines such as `get,list,watch databases.example.com: the parents of the policy`, of which there are few.
pub(super) fn describe_rights(needs: &[AccessNeed]) -> Vec<String> {
    let mut lines: Vec<(AccessNeed, Vec<&str>)> = Vec::new();
    for need in needs {
        let same = |known: &AccessNeed| AccessNeed { verb: need.verb, ..known.clone() } == *need;
        match lines.iter_mut().find(|(known, _)| same(known)) {
            Some((_, verbs)) => verbs.push(need.verb),
            None => lines.push((need.clone(), vec![need.verb])),
        }
    }
    let total = lines.len();
    let shown = lines.iter().take(MAX_MISSING_RIGHTS).map(|(need, verbs)| {
        let right = need.to_string();
        let on = right.strip_prefix(need.verb).unwrap_or(&right);
        format!("{}{on}: {}", verbs.join(","), need.purpose)
    });
    let more = (total > MAX_MISSING_RIGHTS).then(|| format!("and {} more", total - MAX_MISSING_RIGHTS));
    shown.chain(more).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(verb: &'static str, resource: &str) -> AccessNeed {
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
