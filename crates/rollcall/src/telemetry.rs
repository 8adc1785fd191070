//! Logs: text for people on a terminal, JSON for machines otherwise; always on standard error.

use std::io::IsTerminal;

use anyhow::Context;
use controller::args::LogFormat;
use tracing_subscriber::EnvFilter;

/// Starts logging.
pub(crate) fn start(filter: &str, format: Option<LogFormat>) -> anyhow::Result<()> {
    // What kube says of a failed list or watch is said again by us, with the kind and in fewer words.
    let quiet = if filter.contains("kube") { String::new() } else { format!("{filter},kube_runtime=error") };
    let filter = if quiet.is_empty() { filter } else { &quiet };
    let filter = EnvFilter::try_new(filter).with_context(|| format!("not a log filter: {filter:?}"))?;
    let terminal = std::io::stderr().is_terminal();
    let format = format.unwrap_or(if terminal { LogFormat::Text } else { LogFormat::Json });
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Text => logs.with_ansi(terminal && std::env::var_os("NO_COLOR").is_none()).init(),
        LogFormat::Json => logs.json().flatten_event(true).init(),
    }
    Ok(())
}
