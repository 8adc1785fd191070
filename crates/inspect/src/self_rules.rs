//! What the client itself may read in a namespace, asked for once instead of by one refused request a kind.

use http::header::CONTENT_TYPE;
use serde::Deserialize;
use serde_json::json;
use watcher::ApiKind;

const RULES_REVIEW_PATH: &str = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";

/// The client's own rights in a namespace, as a SelfSubjectRulesReview has them.
#[derive(Debug, Default)]
pub struct SelfRules(Option<RulesReviewStatus>);

#[derive(Debug, Default, Deserialize)]
struct RulesReview {
    #[serde(default)]
    status: RulesReviewStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RulesReviewStatus {
    resource_rules: Vec<ResourceRule>,
    /// Some authorizer cannot enumerate its rules.
    incomplete: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ResourceRule {
    verbs: Vec<String>,
    api_groups: Option<Vec<String>>,
    resources: Option<Vec<String>>,
    resource_names: Option<Vec<String>>,
}

impl ResourceRule {
    fn grants_list(&self, api: &ApiKind) -> bool {
        let has = |list: &[String], word: &str| list.iter().any(|entry| entry == "*" || entry == word);
        let names = self.resource_names.as_deref().unwrap_or_default();
        has(&self.verbs, "list")
            && has(self.api_groups.as_deref().unwrap_or_default(), &api.group)
            && has(self.resources.as_deref().unwrap_or_default(), &api.plural)
            // A rule about named objects lists nothing.
            && names.is_empty()
    }
}

impl SelfRules {
    /// Reads the rights. Where the server does not tell, nothing is known of them.
    pub async fn read(client: &kube::Client, namespace: Option<&str>) -> SelfRules {
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview",
            "spec": { "namespace": namespace.unwrap_or("default") },
        });
        let request = http::Request::post(RULES_REVIEW_PATH)
            .header(CONTENT_TYPE, "application/json")
            .body(review.to_string().into_bytes());
        let Ok(request) = request else { return SelfRules::default() };
        SelfRules(client.request::<RulesReview>(request).await.ok().map(|review| review.status))
    }

    /// Returns `true` if the kind may be listed there, or that is not known: then the list itself tells.
    pub fn may_list(&self, api: &ApiKind) -> bool {
        let Some(status) = &self.0 else { return true };
        status.incomplete || status.resource_rules.iter().any(|rule| rule.grants_list(api))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(status: serde_json::Value) -> SelfRules {
        SelfRules(serde_json::from_value(status).unwrap())
    }

    fn kind(group: &str, plural: &str) -> ApiKind {
        ApiKind {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: "Any".to_owned(),
            plural: plural.to_owned(),
            namespaced: true,
            has_status: true,
        }
    }

    #[test]
    fn a_kind_is_listed_if_a_rule_grants_it_to_all_names_or_nothing_is_known() {
        let granted = |rule: serde_json::Value| {
            rules(json!({ "resourceRules": [rule], "incomplete": false }))
                .may_list(&kind("acme.io", "orders"))
        };
        let rule = |verb: &str, group: &str, resource: &str| json!({ "verbs": [verb], "apiGroups": [group], "resources": [resource] });
        assert!(granted(rule("list", "acme.io", "orders")));
        assert!(granted(rule("*", "*", "*")));
        assert!(!granted(rule("get", "acme.io", "orders")));
        assert!(!granted(rule("list", "", "orders")));
        assert!(!granted(rule("list", "acme.io", "orders/status")));
        let mut named = rule("list", "acme.io", "orders");
        named["resourceNames"] = json!(["one"]);
        assert!(!granted(named), "of named objects no list is granted");
        assert!(rules(json!({ "resourceRules": [], "incomplete": true })).may_list(&kind("", "pods")));
        assert!(SelfRules::default().may_list(&kind("", "pods")));
    }
}
