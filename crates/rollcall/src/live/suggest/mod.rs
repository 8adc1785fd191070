//! `rollcall suggest`: policies for what is in a cluster, with the evidence for each.

mod condition_order;
mod definitions;
mod owner_survey;
mod parent_evidence;
mod posted_events;
mod suggested_policy;
mod suggestion_folder;
mod suggestion_run;
mod word_comparison;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use controller::args::ClusterArgs;
use policy::{CompiledPolicy, FoundPolicy};
use serde_json::Value;
use watcher::{ApiKind, ParentObject, list_live};

use super::connect::connect_cluster;
use super::listed_policies::list_policies;
use super::read_error::read_error_text;
use super::target::KindName;
use crate::text::{json_text, print_error_line, sanitize_text, write_stdout};
use condition_order::{describe_order, read_last_children};
use definitions::{defines, describe_definition, lacks_default, read_definitions};
use owner_survey::OwnerSurvey;
use parent_evidence::ParentEvidence;
use posted_events::PostedEvents;
use suggested_policy::{PolicySuggestion, compile_suggestions};
use suggestion_folder::write_folder;
use suggestion_run::SuggestionRun;
use word_comparison::{ORDER_UNSEEN, judge_suggestions};

/// `rollcall suggest`.
#[derive(Args, Debug, Default)]
#[command(
    after_help = "It lists the metadata of every kind that the cluster serves, whole objects of the custom kinds that own \
                  something and of what those own, their definitions, and some Events, with your own rights; it changes nothing. What it prints is a file of policies, in shadow mode unless told otherwise, with \
                  what each rests on in comments: check it, read it, apply it. A kind is left out if a policy names it already, \
                  if it says Ready itself, and nowhere while its children are not, or if it runs to an end, and an object of it whose \
                  children are ready says that it has not ended.\n\nExit codes: 0 printed; 2 the cluster or its policies could not be read, or nothing is suggested and not all could be read, or a kind that was named is not served or owns nothing."
)]
pub(crate) struct SuggestArgs {
    /// Only these kinds of parents.
    #[arg(value_name = "KIND")]
    kinds: Vec<String>,
    /// Only what is in this namespace. Default: all namespaces.
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// Output format: `yaml` prints policies with comments; `json` prints one array of suggestions.
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: SuggestFormat,
    /// Mode of the policies: `shadow` evaluates and writes nothing to parents; `write` begins to write conditions as soon as the
    /// policies are applied.
    #[arg(long, value_enum, default_value_t, value_name = "MODE")]
    mode: SuggestedMode,
    /// Instead of printing the policies, write them into this folder, and beside them the rights that they need, the defaults that
    /// the CRDs of their parents lack, and the health by which Argo CD reads their answers.
    #[arg(long, value_name = "FOLDER", conflicts_with = "output")]
    to: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum SuggestFormat {
    #[default]
    Yaml,
    Json,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum SuggestedMode {
    #[default]
    Shadow,
    Write,
}

pub(crate) async fn suggest_policies(cluster: &ClusterArgs, args: &SuggestArgs) -> anyhow::Result<ExitCode> {
    let (client, _) = connect_cluster(cluster).await?;
    let mut run = collect_suggestions(&client, args).await?;
    report_unread(&run.unread);
    if args.mode == SuggestedMode::Write {
        run.suggestions.iter_mut().for_each(PolicySuggestion::let_write);
    }
    let says_nothing = run.suggestions.is_empty() && (!run.without.is_empty() || run.saw_nothing_readable());
    // A script reads an empty array where a person reads why.
    if !says_nothing || args.output == SuggestFormat::Json {
        if let Some(folder) = &args.to {
            let text = suggestions_text(&run.suggestions, args);
            write_folder(&run, (&text, folder))?;
        } else {
            print_suggestions(&run.suggestions, args)?;
        }
    }
    run.without.iter().for_each(|why| print_error_line(why));
    let is_blind = run.saw_nothing_readable();
    if is_blind {
        print_error_line(
            "of what could be read nothing owns anything, and not all could be read: rights to list more may show more",
        );
    }
    if run.lacks_policies {
        print_error_line(
            "which kinds have a policy already is not known: compare with those before you apply these",
        );
    }
    let is_whole = run.without.is_empty() && !run.lacks_policies && !is_blind;
    Ok(ExitCode::from(if is_whole { 0 } else { 2 }))
}

/// The policies that are suggested for a cluster, in shadow mode. What could not be read is reported.
pub(crate) async fn suggested_policies(
    client: &kube::Client,
) -> anyhow::Result<Vec<(String, CompiledPolicy)>> {
    let run = collect_suggestions(client, &SuggestArgs::default()).await?;
    report_unread(&run.unread);
    let compiled = compile_suggestions(&run.suggestions)?;
    Ok(compiled.into_iter().map(|(found, policy)| (found.name, policy)).collect())
}

fn report_unread(unread: &BTreeMap<String, String>) {
    for (what, why) in unread {
        print_error_line(&format!("not read: {what}: {why}"));
    }
}

async fn collect_suggestions(client: &kube::Client, args: &SuggestArgs) -> anyhow::Result<SuggestionRun> {
    let survey = OwnerSurvey::read(client, args.namespace.as_deref()).await?;
    let (mut suggestions, mut seen, mut unread) = (Vec::new(), BTreeMap::new(), survey.unread.clone());
    let existing = list_policies(client).await;
    let lacks_policies = existing.is_err();
    if let Err(error) = &existing {
        unread.insert("ReadinessPolicy.rollcall.dev".to_owned(), read_error_text(error));
    }
    let named = names_by_kind(existing.unwrap_or_default());
    for (name, owned) in &survey.owners {
        let Some(api) = survey.find_kind(name).filter(|api| is_asked_for(api, &args.kinds)) else { continue };
        let scope = args.namespace.as_deref().filter(|_| api.namespaced);
        let objects = match list_live::<ParentObject>(client, api, scope, None).await {
            Ok(objects) => objects,
            Err(error) => {
                unread.insert(api.to_string(), read_error_text(&error));
                continue;
            }
        };
        let evidence = ParentEvidence::collect(&objects);
        let mut suggestion = PolicySuggestion::of_kind(api, owned, &evidence);
        let key = (api.group.clone(), api.kind.clone());
        if let Some(policy) = named.get(&key) {
            suggestion.leave_out(format!("policy {policy} names it already"));
        }
        seen.insert(key, evidence);
        suggestions.push(suggestion);
    }
    judge_suggestions(client, args.namespace.as_deref(), &mut suggestions, &seen).await?;
    let namespace = args.namespace.as_deref();
    note_order((client, namespace), &survey, (&mut suggestions, &seen), &mut unread).await;
    let definitions = read_definitions(client, &suggestions, &mut unread).await;
    note_definitions(&mut suggestions, &definitions, &survey, &seen);
    match PostedEvents::read(client, namespace).await {
        Ok(events) => note_events(&mut suggestions, &events, &seen),
        Err(why) => _ = unread.insert("Event".to_owned(), why),
    }
    let without = args.kinds.iter().filter_map(|kind| reason_without(kind, &survey)).collect();
    Ok(SuggestionRun { suggestions, served: survey.served, definitions, unread, without, lacks_policies })
}

/// What the kinds show of their operators, by group and kind.
type SeenKinds = BTreeMap<(String, String), ParentEvidence>;

/// Notes whether operators that write `Ready` wait for the children of their parents.
async fn note_order(
    cluster: (&kube::Client, Option<&str>),
    survey: &OwnerSurvey,
    (suggestions, seen): (&mut [PolicySuggestion], &SeenKinds),
    unread: &mut BTreeMap<String, String>,
) {
    let is_open = |suggestion: &&mut PolicySuggestion| suggestion.left_out.is_none() && suggestion.own_ready;
    for suggestion in suggestions.iter_mut().filter(is_open) {
        let Some(evidence) = seen.get(&(suggestion.group.clone(), suggestion.kind.clone())) else { continue };
        let last = read_last_children(cluster, survey, suggestion, unread).await;
        if let Some(order) = describe_order(evidence.parents.iter(), &last) {
            suggestion.evidence.retain(|said| !said.starts_with(ORDER_UNSEEN));
            suggestion.evidence.push(order);
        }
    }
}

/// Notes what the definitions of the kinds say.
fn note_definitions(
    suggestions: &mut [PolicySuggestion],
    definitions: &[Value],
    survey: &OwnerSurvey,
    seen: &SeenKinds,
) {
    for suggestion in suggestions.iter_mut().filter(|suggestion| suggestion.left_out.is_none()) {
        let name = KindName { group: suggestion.group.clone(), kind: suggestion.kind.clone() };
        let Some(api) = survey.find_kind(&name) else { continue };
        let Some(definition) = definitions.iter().find(|definition| defines(definition, api)) else {
            continue;
        };
        let says = seen.get(&(name.group, name.kind)).is_some_and(|evidence| evidence.generations > 0);
        suggestion.evidence.extend(describe_definition(definition, &api.version, says));
        suggestion.lacks_default = lacks_default(definition, &api.version);
    }
}

/// Notes what Events tell of the kinds.
fn note_events(suggestions: &mut [PolicySuggestion], events: &PostedEvents, seen: &SeenKinds) {
    for suggestion in suggestions.iter_mut().filter(|suggestion| suggestion.left_out.is_none()) {
        let Some(evidence) = seen.get(&(suggestion.group.clone(), suggestion.kind.clone())) else { continue };
        suggestion.evidence.extend(events.describe(&suggestion.group, &suggestion.kind, evidence));
    }
}

/// Why nothing is suggested for a kind that was named; `None` where something is.
fn reason_without(asked: &String, survey: &OwnerSurvey) -> Option<String> {
    let is = |api: &&ApiKind| is_asked_for(api, std::slice::from_ref(asked));
    let served: Vec<_> = survey.served.iter().filter(is).collect();
    let owns = |name| survey.find_kind(name).is_some_and(|api| is(&api));
    if served.is_empty() {
        return Some(format!(
            "the cluster serves no kind {asked} that can be listed: `kubectl api-resources --verbs=list` names those that it serves"
        ));
    }
    (!survey.owners.keys().any(owns)).then(|| {
        format!(
            "no {asked} here is a custom resource that owns something: there is no policy to suggest for it"
        )
    })
}

fn is_asked_for(api: &ApiKind, kinds: &[String]) -> bool {
    let is = |asked: &String| {
        let asked = asked.to_lowercase();
        let (kind, full) = (api.kind.to_lowercase(), format!(".{}", api.group));
        [kind.as_str(), api.plural.as_str()]
            .into_iter()
            .any(|name| asked == name || asked == name.to_owned() + &full)
    };
    kinds.is_empty() || kinds.iter().any(is)
}

/// Names of policies, by the kind of their parents.
fn names_by_kind(policies: Vec<FoundPolicy>) -> BTreeMap<(String, String), String> {
    let named = policies.into_iter().filter_map(|policy| {
        let spec = policy.spec.ok()?;
        Some(((spec.parent.group, spec.parent.kind), policy.name))
    });
    named.collect()
}

fn print_suggestions(suggestions: &[PolicySuggestion], args: &SuggestArgs) -> anyhow::Result<()> {
    if args.output == SuggestFormat::Json {
        return write_stdout(&json_text(&suggestions)?).map(drop).map_err(Into::into);
    }
    write_stdout(&suggestions_text(suggestions, args)).map(drop).map_err(Into::into)
}

/// The policies as YAML, with what they rest on, and with what comes next where they are printed, in comments.
fn suggestions_text(suggestions: &[PolicySuggestion], args: &SuggestArgs) -> String {
    let mut text: String = suggestions.iter().map(PolicySuggestion::to_text).collect();
    if suggestions.is_empty() {
        text.push_str("# No custom resource owns anything here.\n");
    } else if args.to.is_none() && suggestions.iter().any(|suggestion| suggestion.left_out.is_none()) {
        text.push_str(
            "# Next, with this in suggested.yaml:\n#   rollcall check -f suggested.yaml\n#   rollcall install -f suggested.yaml | kubectl apply \
             --server-side -f -\n#   kubectl apply -f suggested.yaml\n# Where Rollcall runs already, its rights are enough: rollcall rbac -f \
             suggested.yaml | kubectl apply -f -\n",
        );
        if args.mode == SuggestedMode::Shadow {
            text.push_str("# When `kubectl get readinesspolicies` shows what you expect: --mode write, and the same again.\n");
        }
        let lacking = suggestions.iter().filter(|suggestion| suggestion.lacks_default);
        let lacking: Vec<_> = lacking.map(PolicySuggestion::crd_name).collect();
        if !lacking.is_empty() {
            text.extend([
                "# So that a new object does not look ready at its first read, these CRDs need a default, which\n",
                "# rollcall crd-defaults -f CRD prints: ",
                &lacking.join(", "),
                "\n",
            ]);
        }
        text.push_str(
            "# All of this in one folder, and the health for Argo CD: rollcall suggest --to FOLDER\n",
        );
    }
    let lines: Vec<_> = text.lines().map(sanitize_text).collect();
    lines.join("\n") + "\n"
}
