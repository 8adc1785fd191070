//! `rollcall plan`: what the parents in a cluster would say if policies were applied or deleted.

mod checked_account;
mod condition_change;
mod debounced_answers;
mod planned_groups;
mod policy_change;
mod render;
mod replay;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use controller::args::ClusterArgs;
use controller::history::HistoryStore;
use controller::history::read::{HistoryEntries, HistoryLineKind};
use policy::offline::OfflineAnswer;
use policy::{CompiledPolicy, FoundPolicy, PolicyBook, parse_policies, read_text};
use readiness::{Time, saturating_millis};
use watcher::{ApiKind, LivePage, ParentObject};

use super::cluster_libraries::ClusterLibraries;
use super::connect::connect_cluster;
use super::decided_policies::DecidedPolicies;
use super::doctor::{ServiceAccountName, parse_service_account};
use super::listed_policies::ListedPolicies;
use super::policy_cluster::PolicyCluster;
use super::survey::{feed_page, read_pages};
use crate::eval::current_time;
use crate::rbac::object_name;
use crate::text::{print_error_line, write_stdout};
use checked_account::CheckedAccount;
use condition_change::{ConditionChanges, ParentKey, ParentSays, compare_answers};
use planned_groups::PlannedGroups;
use policy_change::{PlannedPolicyChange, list_changes};
use render::{PlanFormat, PlanReport};
use replay::{AnswerDamping, ReplayedPolicy, replay_policy};

/// `rollcall plan`.
#[derive(Args, Debug)]
#[command(
    after_help = "It reads policies and objects with your own rights, decides as the service does which policies are in force, and \
                  compares what is said of each parent now with what would be said once everything has settled. It changes \
                  nothing, and the service need not run.\n\nExit codes: 0 no parent turns, gets or loses a condition, and nothing \
                  lacks; 1 one does, a policy is refused, or a right lacks; 2 not determined: something could not be read."
)]
pub(crate) struct PlanArgs {
    /// Files with the ReadinessPolicies and ReadinessGroups to apply: new ones, and others of those in the cluster.
    #[arg(short = 'f', long = "filename", value_name = "FILE", required_unless_present = "delete")]
    files: Vec<PathBuf>,
    /// Policies of the cluster to delete.
    #[arg(long, value_name = "POLICY")]
    delete: Vec<String>,
    /// Maximum number of parents to show; all are counted [default: 100 as text, all as JSON].
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Service account whose rights are checked, as NAMESPACE/NAME.
    #[arg(long, value_name = "NAMESPACE/NAME", default_value = "rollcall-system/rollcall", value_parser = parse_service_account)]
    service_account: ServiceAccountName,
    /// Namespace in which that service account keeps ReadinessRecords [default: its own].
    #[arg(long, value_name = "NAMESPACE", value_parser = object_name)]
    records_namespace: Option<String>,
    /// Also play a history against the changed policies: how often parents would have flapped with their debounce, hold,
    /// grace and quorum.
    /// Object store that `run --history` fills, read with your own credentials: s3://bucket/prefix, gs://…, az://…,
    /// file:///folder.
    #[arg(long, value_name = "URL")]
    replay: Option<String>,
    /// Time span of the history to play.
    #[arg(long, default_value = "7d", value_parser = humantime::parse_duration, value_name = "DURATION", requires = "replay")]
    since: Duration,
    /// Output format.
    #[arg(short = 'o', long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: PlanFormat,
}

impl PlanArgs {
    fn checked_account(&self) -> CheckedAccount {
        CheckedAccount::new(self.service_account.clone(), self.records_namespace.clone())
    }
}

pub(crate) async fn plan_policies(cluster: &ClusterArgs, args: &PlanArgs) -> anyhow::Result<ExitCode> {
    // A file or a history that cannot be read is said without a cluster.
    let (texts, applied) = read_files(&args.files)?;
    let history = args.replay.as_deref().map(HistoryStore::open_existing).transpose()?;
    let (client, namespace) = connect_cluster(cluster).await?;
    let now = current_time();
    let listed = ListedPolicies::read(&client, &namespace).await;
    if let Some(why) = &listed.unread_policies {
        bail!("failed to list policies: {why}");
    }
    let mut groups = PlannedGroups::default();
    texts.iter().try_for_each(|text| groups.add_text(text, &namespace))?;
    let before = listed.found();
    let mut after = apply_policies(listed.policies(), applied, args, now)?;
    after.extend(groups.policies(&listed, now)?);
    let libraries = ClusterLibraries::read(&client, before.iter().chain(&after)).await;
    let [now_decided, then_decided] = decide_both(&before, &after, &libraries);
    let changes = list_changes((&before, &now_decided.book), (&after, &then_decided.book));
    let changed: Vec<_> = compiled(&then_decided).filter(|(name, _)| names(&changes, name)).collect();
    let account = args.checked_account();
    let lacking = account.lacking_rights(&client, changed).await;

    let everything = compiled(&now_decided).chain(compiled(&then_decided)).collect();
    let mut reader = PolicyCluster::of_policies(client, everything, None);
    let decided = [&now_decided, &then_decided];
    let parents = compare_parents(&mut reader, decided, &mut groups, &libraries, now).await?;
    let unread_otherwise = libraries.unread().chain(listed.unread());
    let unread_otherwise = unread_otherwise.map(|(what, why)| format!("{what}: {why}"));
    let mut unread: Vec<String> = reader.unread_texts().chain(unread_otherwise).collect();
    let lacking = lacking.unwrap_or_else(|error| {
        unread.push(format!("rights of {}: {error:#}", account.subject()));
        Vec::new()
    });
    let replayed = match &history {
        Some(store) => {
            replay_history(
                store,
                Time(now.0 - saturating_millis(args.since)),
                now,
                (&now_decided, &then_decided),
                &changes,
                &mut unread,
            )
            .await?
        }
        None => Vec::new(),
    };
    let report = PlanReport {
        policies: changes,
        replayed,
        parents,
        lacking,
        unread,
        files: args.files.clone(),
        account,
    };
    for what in &report.unread {
        print_error_line(&format!("not read: {what}"));
    }
    write_stdout(&report.render(args.output, args.limit)?)?;
    Ok(ExitCode::from(report.exit_code()))
}

/// The texts of the files, and their policies, without those that stand for groups: what stands for a group depends on all.
fn read_files(files: &[PathBuf]) -> anyhow::Result<(Vec<String>, Vec<FoundPolicy>)> {
    let (mut texts, mut policies) = (Vec::new(), Vec::new());
    for file in files {
        let text = read_text(file)?;
        policies.extend(parse_policies(&text, file)?);
        texts.push(text);
    }
    policies.retain(|policy| policy.groups.is_none());
    Ok((texts, policies))
}

/// Decides on the policies as they are and as they would be; as the service, which knows what it accepted last.
fn decide_both(
    before: &[FoundPolicy],
    after: &[FoundPolicy],
    libraries: &ClusterLibraries,
) -> [DecidedPolicies; 2] {
    let now_decided = DecidedPolicies::decide(before, PolicyBook::default(), libraries);
    let mut book = PolicyBook::default();
    book.accepted.clone_from(&now_decided.book.accepted);
    let then_decided = DecidedPolicies::decide(after, book, libraries);
    [now_decided, then_decided]
}

/// Reads everything, and compares what is said of each parent under both sets of policies.
async fn compare_parents(
    reader: &mut PolicyCluster,
    decided: [&DecidedPolicies; 2],
    groups: &mut PlannedGroups,
    libraries: &ClusterLibraries,
    now: Time,
) -> anyhow::Result<ConditionChanges> {
    let times = (Time(i64::MIN), now);
    let [mut is, mut will_be] = decided.map(|decided| decided.begin_rollup(&[], libraries, times));
    read_pages(reader, |api: &ApiKind, _, page: LivePage<ParentObject>| {
        feed_page(&mut is, api, &page);
        feed_page(&mut will_be, api, groups.edit_page(api, &page).as_ref().unwrap_or(&page));
    })
    .await;
    for group in groups.new_objects(now)? {
        will_be.add_object(&group);
    }
    let [says, would_say] = [is, will_be].map(|world| world.into_answers(reader.hidden_kinds()));
    Ok(compare_answers(&told_by(decided[0], says), &told_by(decided[1], would_say)))
}

/// Plays what was recorded under each policy that changes.
async fn replay_history(
    store: &HistoryStore,
    since: Time,
    now: Time,
    decided: (&DecidedPolicies, &DecidedPolicies),
    changes: &[PlannedPolicyChange],
    unread: &mut Vec<String>,
) -> anyhow::Result<Vec<ReplayedPolicy>> {
    let before: BTreeMap<_, _> = compiled(decided.0).collect();
    let changed: Vec<_> = compiled(decided.1).filter(|(name, _)| names(changes, name)).collect();
    let of_changed = |policy: &str| changed.iter().any(|(name, _)| name == policy);
    let found = {
        let lines = HistoryLineKind::Transitions;
        HistoryEntries::read_range(store, lines, (since, now), |entry| of_changed(&entry.policy)).await?
    };
    unread.extend(found.unreadable.iter().map(|(batch, why)| format!("{batch}: {why}")));
    let replayed = changed.iter().map(|(name, compiled)| {
        let would = AnswerDamping::of_policy(compiled);
        let then = before.get(name).map_or(would, AnswerDamping::of_policy);
        replay_policy(name, &found.entries, then, would, now)
    });
    Ok(replayed.collect())
}

fn names(changes: &[PlannedPolicyChange], policy: &str) -> bool {
    changes.iter().any(|change| change.name == policy)
}

/// The policies of the cluster as they would be found once these are applied, and others deleted.
fn apply_policies(
    before: &[FoundPolicy],
    applied: Vec<FoundPolicy>,
    args: &PlanArgs,
    now: Time,
) -> anyhow::Result<Vec<FoundPolicy>> {
    let mut after = before.to_vec();
    for name in &args.delete {
        if !before.iter().any(|policy| policy.name == *name) {
            bail!("there is no policy {name} in the cluster");
        }
        after.retain(|policy| policy.name != *name);
    }
    for new in applied {
        match after.iter_mut().find(|policy| policy.name == new.name) {
            Some(held) if held.spec == new.spec => {}
            Some(held) => {
                *held = FoundPolicy {
                    spec: new.spec,
                    text: new.text,
                    generation: held.generation + 1,
                    ..held.clone()
                }
            }
            // Of two that claim the same the one that is created first goes before.
            None => after.push(FoundPolicy {
                uid: format!("new:{}", new.name),
                generation: 1,
                created: Some(now),
                ..new
            }),
        }
    }
    Ok(after)
}

/// The policies that are in force, by name.
fn compiled(decided: &DecidedPolicies) -> impl Iterator<Item = (String, CompiledPolicy)> {
    decided.in_force().map(|(name, policy)| (name.to_owned(), policy.clone()))
}

/// What is told of each parent by these answers, by the type of the condition.
fn told_by(decided: &DecidedPolicies, answers: Vec<OfflineAnswer>) -> BTreeMap<ParentKey, ParentSays> {
    let policies: BTreeMap<_, _> = decided.in_force().collect();
    let told = answers.into_iter().filter_map(|answer| {
        let policy = policies.get(&*answer.policy)?;
        let condition = answer.condition.as_deref().unwrap_or(&policy.condition);
        let key = ParentKey::new(&answer.parent, condition);
        Some((key, ParentSays::new(answer, policy.shadow)))
    });
    told.collect()
}
