//! Logging: text on a terminal, JSON otherwise; always on standard error.

use std::io::IsTerminal;

use anyhow::Context;
use controller::KUBE_LOG_DIRECTIVES;
use controller::args::LogFormat;
use tracing_subscriber::EnvFilter;

/// Starts logging.
pub(crate) fn start_logging(filter: &str, format: Option<LogFormat>) -> anyhow::Result<()> {
    // object_store logs every attempt.
    let quiet = [("kube", KUBE_LOG_DIRECTIVES), ("object_store", "object_store=error")];
    let quiet = quiet.into_iter().filter(|(of, _)| !filter.contains(of)).map(|(_, directive)| directive);
    let filter = [filter].into_iter().chain(quiet).collect::<Vec<_>>().join(",");
    let filter = EnvFilter::try_new(&filter).with_context(|| format!("not a log filter: {filter:?}"))?;
    let terminal = std::io::stderr().is_terminal();
    let format = format.unwrap_or(if terminal { LogFormat::Text } else { LogFormat::Json });
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Text => logs.with_ansi(terminal && std::env::var_os("NO_COLOR").is_none()).init(),
        LogFormat::Json => logs.json().flatten_event(true).init(),
    }
    Ok(())
}
