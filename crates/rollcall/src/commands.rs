//! What each command does.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use controller::args::{ClusterArgs, RunArgs};
use controller::policies::{Compiled, Found, Manifest, parse_selector, read_file, read_manifests};
use controller::{crd as crds, rbac as rights};

use crate::check::{self, CheckArgs};
use crate::cli::{RbacArgs, ReleaseArgs};
use crate::demo::{self, DemoArgs};
use crate::live::{self, DoctorArgs, ExplainArgs, HistoryArgs, TreeArgs, WaitArgs};
use crate::telemetry;

type Done = anyhow::Result<ExitCode>;

/// Limits do not matter where a policy is only looked at.
pub(crate) const ANY_LIMIT: Duration = Duration::from_mins(10);

/// Runs to the end. What is still under way then ends with the process: nobody waits for it.
fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("failed to start the runtime")?;
    let done = runtime.block_on(work);
    runtime.shutdown_background();
    done
}

pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    crate::text::put(text).map(drop).context("failed to write to standard output")
}

pub(crate) fn demo(args: DemoArgs) -> Done {
    block_on(demo::run(args))
}

pub(crate) fn run(cluster: &ClusterArgs, args: RunArgs) -> Done {
    telemetry::start(&args.log, args.log_format)?;
    block_on(controller::run(cluster, args))?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn crd() -> Done {
    print(&crds::yaml()?)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn rbac(args: &RbacArgs) -> Done {
    let (mut policies, mut crds) = (Vec::new(), Vec::new());
    for file in &args.files {
        for manifest in read_manifests(file)? {
            match manifest {
                Manifest::Policy(found) => policies.push(valid(file, &found)?),
                Manifest::Crd(crd) => crds.push(crd),
            }
        }
    }
    let subject = rights::Subject { name: args.service_account.clone(), namespace: args.namespace.clone() };
    print(&rights::yaml(&policies, &rights::Crds::read(&crds), &args.namespaces, &subject))?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn check(args: &CheckArgs) -> Done {
    check::run(args)
}

pub(crate) fn tree(cluster: &ClusterArgs, args: &TreeArgs) -> Done {
    block_on(live::tree(cluster, args))
}

pub(crate) fn explain(cluster: &ClusterArgs, args: &ExplainArgs) -> Done {
    block_on(live::explain(cluster, args))
}

pub(crate) fn doctor(cluster: &ClusterArgs, args: &DoctorArgs) -> Done {
    block_on(live::doctor(cluster, args))
}

pub(crate) fn history(cluster: &ClusterArgs, args: &HistoryArgs) -> Done {
    block_on(live::history(cluster, args))
}

pub(crate) fn wait(cluster: &ClusterArgs, args: &WaitArgs) -> Done {
    block_on(live::wait(cluster, args))
}

pub(crate) fn release(cluster: &ClusterArgs, args: &ReleaseArgs) -> Done {
    telemetry::start("info", None)?;
    let (released, records) = block_on(async {
        let (client, _) = live::connect(cluster).await?;
        let mut found = Vec::new();
        for file in &args.files {
            found.extend(read_file(file)?);
        }
        if args.files.is_empty() {
            found = controller::release::in_cluster(&client).await?;
        }
        let chosen = parse_selector(&args.policy_selector)?;
        found.retain(|f| chosen.matches(&f.labels));
        found.retain(|f| args.policies.is_empty() || args.policies.contains(&f.name));
        let compiled: Vec<Compiled> = found.iter().filter_map(|f| f.compile(ANY_LIMIT).ok()).collect();
        if let Some(lease) = &args.lease {
            let (namespace, name) = lease
                .split_once('/')
                .context("--lease is a namespace and a name: rollcall-system/rollcall")?;
            controller::lease::take(&client, namespace, name).await?;
        }
        let released = controller::release::release(&client, &compiled, &args.namespaces).await?;
        let everything = args.policies.is_empty() && args.policy_selector.is_empty() && args.files.is_empty();
        let of = (!everything).then_some(&*compiled);
        let records = match &args.records {
            Some(namespace) => Some(controller::release::forget(&client, namespace, of).await?),
            None => None,
        };
        Ok((released, records))
    })?;
    let mut failed = released.failed;
    let mut said = format!("released {} parents, {failed} failed\n", released.released);
    if let Some((deleted, kept)) = records {
        _ = writeln!(said, "deleted {deleted} records, {kept} failed");
        failed += kept;
    }
    print(&said)?;
    Ok(ExitCode::from(u8::from(failed > 0)))
}

fn valid(file: &Path, found: &Found) -> anyhow::Result<Compiled> {
    found
        .compile(ANY_LIMIT)
        .map_err(|why| anyhow::anyhow!("{}: policy {}: {why}", file.display(), found.name))
}
