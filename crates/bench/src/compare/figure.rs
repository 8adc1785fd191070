//! Which figures are shown of each workload, under which heading. Of all of them less is better.

/// A figure as a column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FigureColumn {
    /// Its name in the raw data.
    pub(crate) name: &'static str,
    /// Its heading, with the unit.
    pub(crate) heading: &'static str,
    /// Whether it is a panel of the chart.
    pub(crate) charted: bool,
}

/// A workload as a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkloadView {
    /// Its name in the raw data.
    pub(crate) name: &'static str,
    /// What it is, for the page.
    pub(crate) about: &'static str,
    pub(crate) columns: &'static [FigureColumn],
    /// Figures whose growth with the number of children is fitted.
    pub(crate) fitted: &'static [&'static str],
}

const fn charted(name: &'static str, heading: &'static str) -> FigureColumn {
    FigureColumn { name, heading, charted: true }
}

const fn listed(name: &'static str, heading: &'static str) -> FigureColumn {
    FigureColumn { name, heading, charted: false }
}

/// What is measured of subjects at rest.
const REST_COLUMNS: [FigureColumn; 4] = [
    charted("requests_per_minute", "requests a minute"),
    listed("lease_requests_per_minute", "of them for a lease"),
    charted("status_writes_per_minute", "writes to parents a minute"),
    charted("processor_ms_per_minute", "processor, ms a minute"),
];

/// Name of the workload of those that export answers.
pub(crate) const SCRAPE_WORKLOAD: &str = "scrape";

/// In the order of the page.
pub(crate) const WORKLOADS: [WorkloadView; 7] = [
    WorkloadView {
        name: "start",
        about: "A process starts over parents that nobody has told anything yet. Its time ends when the last parent has the right answer; processor time and memory are taken when it has come to rest.",
        columns: &[
            charted("seconds", "time to the last answer, s"),
            charted("processor_s", "processor, s"),
            charted("peak_mb", "peak memory, MB"),
            listed("rest_mb", "memory at rest, MB"),
            listed("status_writes", "writes to parents"),
        ],
        fitted: &["processor_s", "peak_mb"],
    },
    WorkloadView {
        name: "flips",
        about: "Children turn at a fixed rate, whatever became of the flips before; each turns its parent's answer. Latency runs from the time at which the flip was due to the parent's new answer in the server's store.",
        columns: &[
            charted("p50_ms", "latency p50, ms"),
            charted("p99_ms", "latency p99, ms"),
            charted("processor_ms_per_flip", "processor per flip, ms"),
            listed("status_writes_per_flip", "writes per flip"),
            listed("never_shown_percent", "answers never shown, %"),
        ],
        fitted: &["processor_ms_per_flip"],
    },
    WorkloadView {
        name: "burst",
        about: "All children of some parents, fifty in all, turn three times, one every 10 ms; none is ready at the end.",
        columns: &[
            charted("status_writes", "writes to parents"),
            charted("processor_ms", "processor, ms"),
            listed("settled_s", "last turn to last answer, s"),
        ],
        fitted: &[],
    },
    WorkloadView {
        name: "restart",
        about: "The process is stopped, one child turns, and it is started again. One write is needed.",
        columns: &[
            charted("status_writes", "writes to parents"),
            charted("processor_s", "processor, s"),
            charted("seconds", "time to the new answer, s"),
            listed("peak_mb", "peak memory, MB"),
            listed("requests", "requests"),
        ],
        fitted: &["processor_s"],
    },
    WorkloadView {
        name: "rest",
        about: "Nothing happens to 110 parents, 10 of which are not ready. All subjects run side by side, each over a server of its own.",
        columns: &REST_COLUMNS,
        fitted: &[],
    },
    WorkloadView {
        name: "unready",
        about: "Nothing happens to 110 parents, none of which is ready. All subjects run side by side, each over a server of its own.",
        columns: &REST_COLUMNS,
        fitted: &[],
    },
    WorkloadView {
        name: SCRAPE_WORKLOAD,
        about: "Nothing happens to parents one in ten of which is not ready, and their metrics are scraped as Prometheus does. Only programs whose metrics say which parents are not ready take part, side by side over one server: those of the other controllers are about themselves and name no parent. Each answer is compared with the children. Rollcall counts parents by verdict, has several series for each that is not ready, at most 500 of them by default, and its own metrics; kube-state-metrics has series for every parent, reads what Rollcall wrote, and costs this on top of it.",
        columns: &[
            charted("processor_ms_per_scrape", "processor per scrape, ms"),
            charted("sent_kb", "sent per scrape, kB"),
            listed("text_kb", "of text, kB"),
            listed("samples", "samples"),
            charted("p50_ms", "time of a scrape p50, ms"),
            listed("p99_ms", "p99, ms"),
            charted("rest_mb", "memory at rest, MB"),
            listed("scraped_mb", "memory after the scrapes, MB"),
        ],
        fitted: &["processor_ms_per_scrape", "sent_kb"],
    },
];

/// A number with about three digits that count.
pub(crate) fn number_text(value: f64) -> String {
    match value.abs() {
        size if size >= 99.95 || size == 0.0 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        size if size >= 0.095 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        let cases = [
            (0.0, "0"),
            (0.0123, "0.012"),
            (0.5, "0.50"),
            (1.234, "1.23"),
            (12.34, "12.3"),
            (1234.5, "1234"),
        ];
        for (value, text) in cases {
            assert_eq!(number_text(value), text);
        }
    }
}
