//! Compiles `children[].ready` into the policy's own rule, or into a reference to a script library.

use std::fmt;
use std::sync::Arc;

use api::policy::{ReadyRule, RuleProfile};
use rules::{CompiledRule, PeerProfile, RuleDefinition, RuleError};

use super::problem::PolicyProblem;

/// Readiness rule of a group that replaces the native rules.
#[derive(Clone)]
pub enum GroupRule {
    /// Rule of the policy itself.
    Own {
        /// Compiled rule.
        rule: Arc<CompiledRule>,
        /// Source of the rule.
        source: Arc<str>,
    },
    /// Scripts of this ConfigMap.
    Library(ConfigMapName),
}

impl fmt::Debug for GroupRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GroupRule::Own { source, .. } => write!(f, "Own({source:?})"),
            GroupRule::Library(name) => write!(f, "Library({name})"),
        }
    }
}

/// ConfigMap with health scripts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConfigMapName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl fmt::Display for ConfigMapName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Default namespace of `rules`: the one Argo CD is installed in.
const ARGOCD_NAMESPACE: &str = "argocd";

impl ConfigMapName {
    /// `NAMESPACE/NAME`, or `NAME` in the namespace `argocd`.
    fn parse_name(text: &str) -> Option<ConfigMapName> {
        let (namespace, name) = text.split_once('/').unwrap_or((ARGOCD_NAMESPACE, text));
        let valid = |part: &str| {
            let letters = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.".contains(&b);
            !part.is_empty() && part.bytes().all(letters)
        };
        (valid(namespace) && valid(name))
            .then(|| ConfigMapName { namespace: namespace.to_owned(), name: name.to_owned() })
    }
}

/// Compiles a rule. The error lists all problems, with their fields below `ready`.
pub(super) fn compile_ready_rule(ready: &ReadyRule) -> Result<GroupRule, Vec<PolicyProblem>> {
    let wrong = |field: &str, what: String| vec![PolicyProblem { field: field.to_owned(), what, at: None }];
    let given = [ready.cel.is_some(), ready.lua.is_some(), ready.profile.is_some(), ready.rules.is_some()];
    if given.iter().filter(|given| **given).count() != 1 {
        return Err(wrong("", "exactly one of cel, lua, profile, rules".to_owned()));
    }
    if let Some(text) = &ready.rules {
        let name = ConfigMapName::parse_name(text).ok_or_else(|| {
            wrong(".rules", format!("{text:?} is not the name of a ConfigMap, or NAMESPACE/NAME"))
        })?;
        return Ok(GroupRule::Library(name));
    }
    let (spec, source) = rule_spec(ready);
    match CompiledRule::compile(&spec) {
        Ok(rule) => Ok(GroupRule::Own { rule: Arc::new(rule), source: source.into() }),
        Err(error) => Err(rule_problems(ready, &error)),
    }
}

/// Compilation stops at its first error, so several expressions are compiled one by one to report each one's error.
fn rule_problems(ready: &ReadyRule, first: &RuleError) -> Vec<PolicyProblem> {
    let Some(cel) = &ready.cel else { return vec![rule_problem(ready, first)] };
    let parts = [
        ("current", Some(cel.current.as_str())),
        ("inProgress", cel.in_progress.as_deref()),
        ("failed", cel.failed.as_deref()),
    ];
    let wrong = |(part, source): (&str, Option<&str>)| {
        let alone = RuleDefinition::Cel { current: source?, in_progress: None, failed: None };
        let error = CompiledRule::compile(&alone).err()?;
        Some(rule_problem(ready, &RuleError { part: part.to_owned(), ..error }))
    };
    let found: Vec<_> = parts.into_iter().filter_map(wrong).collect();
    if found.is_empty() { vec![rule_problem(ready, first)] } else { found }
}

fn rule_spec(ready: &ReadyRule) -> (RuleDefinition<'_>, String) {
    match (&ready.cel, &ready.lua, ready.profile) {
        (Some(cel), _, _) => {
            let (in_progress, failed) = (cel.in_progress.as_deref(), cel.failed.as_deref());
            let source = format!("cel {:?} {in_progress:?} {failed:?}", cel.current);
            (RuleDefinition::Cel { current: &cel.current, in_progress, failed }, source)
        }
        (_, Some(script), _) => {
            (RuleDefinition::Lua { name: "ready.lua", source: script }, format!("lua {script}"))
        }
        (_, _, profile) => {
            let profile = match profile {
                Some(RuleProfile::Flux) => PeerProfile::Flux,
                Some(RuleProfile::Argocd) => PeerProfile::Argocd,
                Some(RuleProfile::Kstatus) | None => PeerProfile::Kstatus,
            };
            (RuleDefinition::Profile(profile), format!("profile {profile}"))
        }
    }
}

fn rule_problem(ready: &ReadyRule, error: &RuleError) -> PolicyProblem {
    let RuleError { part, line, column, message, .. } = error;
    let field = if ready.cel.is_some() { format!(".cel.{part}") } else { ".lua".to_owned() };
    PolicyProblem { field, what: message.clone(), at: Some((*line, *column)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::policy::CelRule;

    fn cel(current: &str) -> ReadyRule {
        let cel = CelRule { current: current.to_owned(), ..CelRule::default() };
        ReadyRule { cel: Some(cel), ..ReadyRule::default() }
    }

    #[test]
    fn an_expression_that_cannot_be_is_refused_with_its_place() {
        let problems =
            compile_ready_rule(&cel("status.phase ==\n  frobnicate(1)")).expect_err("no such function");
        let [problem] = problems.as_slice() else { panic!("{problems:?}") };
        assert_eq!((&*problem.field, problem.at), (".cel.current", Some((2, 3))));
        assert!(problem.what.contains("frobnicate"), "{problem}");
    }

    #[test]
    fn of_several_expressions_each_says_what_is_wrong_with_it() {
        let mut rule = cel("nonsense(");
        if let Some(cel) = &mut rule.cel {
            (cel.in_progress, cel.failed) = (Some("true".to_owned()), Some("1 + 1".to_owned()));
        }
        let problems = compile_ready_rule(&rule).expect_err("two mistakes");
        let fields: Vec<_> = problems.iter().map(|problem| problem.field.as_str()).collect();
        assert_eq!(fields, [".cel.current", ".cel.failed"]);
    }

    #[test]
    fn a_script_with_a_syntax_error_names_its_line() {
        let rule = ReadyRule { lua: Some("local hs = {}\nif then".to_owned()), ..ReadyRule::default() };
        let problems = compile_ready_rule(&rule).expect_err("no script");
        let [problem] = problems.as_slice() else { panic!("{problems:?}") };
        assert_eq!((&*problem.field, problem.at.map(|at| at.0)), (".lua", Some(2)), "{problem}");
    }

    #[test]
    fn a_library_is_a_config_map_of_argo_cd_unless_said_otherwise() {
        let library = |text: &str| {
            let rule = ReadyRule { rules: Some(text.to_owned()), ..ReadyRule::default() };
            compile_ready_rule(&rule)
                .map(|rule| format!("{rule:?}"))
                .map_err(|problems| problems[0].field.clone())
        };
        assert_eq!(library("argocd-cm"), Ok("Library(argocd/argocd-cm)".to_owned()));
        assert_eq!(library("gitops/rules"), Ok("Library(gitops/rules)".to_owned()));
        assert_eq!(library("a/b/c"), Err(".rules".to_owned()));
    }

    #[test]
    fn exactly_one_of_them_is_given() {
        assert!(compile_ready_rule(&ReadyRule::default()).is_err());
        assert!(
            compile_ready_rule(&ReadyRule { lua: Some("return nil".to_owned()), ..cel("true") }).is_err()
        );
    }
}
