//! What is compared.

use super::exposition::ReadinessSeries;
use super::figure::SCRAPE_WORKLOAD;

/// How a subject is built and started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SubjectRecipe {
    /// The binary of this workspace.
    Rollcall,
    /// A package that a Go module in a folder has or pins, and the arguments that it is started with.
    Go { folder: &'static str, package: &'static str, args: &'static [&'static str] },
    /// A binary of a Rust package in a folder.
    Cargo { folder: &'static str, binary: &'static str },
    /// A handler file for Kopf in a folder.
    Kopf { folder: &'static str, script: &'static str },
}

/// What of a subject is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SubjectRole {
    /// It writes the answers: everything but scrapes. Its metrics are about itself and name no answer.
    Controller,
    /// It exports the answers that another writes: scrapes alone.
    Exporter(ReadinessSeries),
    /// It does both.
    ExportingController(ReadinessSeries),
}

impl SubjectRole {
    /// Series in which it exports the answers, if it does.
    pub(crate) fn series(self) -> Option<ReadinessSeries> {
        match self {
            SubjectRole::Controller => None,
            SubjectRole::Exporter(series) | SubjectRole::ExportingController(series) => Some(series),
        }
    }

    /// Whether it writes the answers.
    pub(crate) fn writes_answers(self) -> bool {
        !matches!(self, SubjectRole::Exporter(_))
    }

    fn takes_part(self, workload: &str) -> bool {
        match workload {
            SCRAPE_WORKLOAD => self.series().is_some(),
            _ => self.writes_answers(),
        }
    }
}

/// Whether a subject has a part in a workload. One that raw data names and nobody knows any more wrote answers.
pub(crate) fn takes_part(subject: &str, workload: &str) -> bool {
    let known = SUBJECTS.iter().find(|known| known.name == subject);
    known.map_or(SubjectRole::Controller, |known| known.role).takes_part(workload)
}

/// Arguments of kube-state-metrics that exports custom resources and nothing else.
const fn custom_resources_only(config: &'static str) -> [&'static str; 8] {
    [
        "--kubeconfig={kubeconfig}",
        "--custom-resource-state-only",
        "--custom-resource-state-config-file",
        config,
        "--host=127.0.0.1",
        "--port={port}",
        "--telemetry-host=127.0.0.1",
        "--telemetry-port=0",
    ]
}

const CONDITION_STATES_ARGS: [&str; 8] = custom_resources_only("{folder}/widgets.yaml");
const READY_GAUGE_ARGS: [&str; 8] = custom_resources_only("{folder}/widgets-tuned.yaml");
const GZIP_ARGS: [&str; 9] = {
    let [a, b, c, d, e, f, g, h] = READY_GAUGE_ARGS;
    [a, b, c, d, e, f, g, h, "--enable-gzip-encoding"]
};

/// A program that tells parents, or monitoring, whether their children are ready.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ComparedSubject {
    /// Its name on the command line and in the raw data.
    pub(crate) name: &'static str,
    pub(crate) role: SubjectRole,
    pub(crate) recipe: SubjectRecipe,
    /// The library that it is made with, as its manifest names it.
    pub(crate) library: &'static str,
    /// What it does, for the page.
    pub(crate) about: &'static str,
}

/// The first is what the others are compared with.
pub(crate) const SUBJECTS: [ComparedSubject; 10] = [
    ComparedSubject {
        name: "rollcall",
        role: SubjectRole::ExportingController(ReadinessSeries::ParentsByVerdict),
        recipe: SubjectRecipe::Rollcall,
        library: "rollcall",
        about: "This program with its defaults: a lease, metrics, the page, re-reads of what is not ready",
    },
    ComparedSubject {
        name: "controller-runtime",
        role: SubjectRole::Controller,
        recipe: SubjectRecipe::Go { folder: "controller-runtime", package: "./default", args: &[] },
        library: "sigs.k8s.io/controller-runtime",
        about: "Go: the default cache, an index by owner, a patch at the end of each reconciliation",
    },
    ComparedSubject {
        name: "controller-runtime-tuned",
        role: SubjectRole::Controller,
        recipe: SubjectRecipe::Go { folder: "controller-runtime", package: "./tuned", args: &[] },
        library: "sigs.k8s.io/controller-runtime",
        about: "Go: types without the spec, a stripping transform, no copies, a predicate, eight workers, a patch only on change",
    },
    ComparedSubject {
        name: "kube-rs",
        role: SubjectRole::Controller,
        recipe: SubjectRecipe::Cargo { folder: "kube-rs", binary: "default" },
        library: "kube",
        about: "Rust: a `Store` of whole children that each reconciliation searches, a patch at its end",
    },
    ComparedSubject {
        name: "kube-rs-tuned",
        role: SubjectRole::Controller,
        recipe: SubjectRecipe::Cargo { folder: "kube-rs", binary: "tuned" },
        library: "kube",
        about: "Rust: types without the spec, one row per child in an index by owner, a trigger and a patch only on change",
    },
    ComparedSubject {
        name: "kstatus",
        role: SubjectRole::Controller,
        recipe: SubjectRecipe::Go { folder: "client-go-kstatus", package: ".", args: &[] },
        library: "sigs.k8s.io/cli-utils",
        about: "Go: client-go's dynamic informers, kstatus, a workqueue with four workers, a patch only on change",
    },
    ComparedSubject {
        name: "kopf",
        role: SubjectRole::Controller,
        recipe: SubjectRecipe::Kopf { folder: "kopf", script: "widgets.py" },
        library: "kopf",
        about: "Python: an index by owner and a timer of 30 s, a patch only on change",
    },
    ComparedSubject {
        name: "kube-state-metrics",
        role: SubjectRole::Exporter(ReadinessSeries::ConditionStates),
        recipe: SubjectRecipe::Go {
            folder: "kube-state-metrics",
            package: "k8s.io/kube-state-metrics/v2",
            args: &CONDITION_STATES_ARGS,
        },
        library: "k8s.io/kube-state-metrics/v2",
        about: "Go: custom resource state alone, every condition of a parent with its reason, as `rollcall readers` configures it; it reads what a controller wrote",
    },
    ComparedSubject {
        name: "kube-state-metrics-tuned",
        role: SubjectRole::Exporter(ReadinessSeries::ReadyGauge),
        recipe: SubjectRecipe::Go {
            folder: "kube-state-metrics",
            package: "k8s.io/kube-state-metrics/v2",
            args: &READY_GAUGE_ARGS,
        },
        library: "k8s.io/kube-state-metrics/v2",
        about: "The same with one series a parent: whether its condition Ready is True",
    },
    ComparedSubject {
        name: "kube-state-metrics-gzip",
        role: SubjectRole::Exporter(ReadinessSeries::ReadyGauge),
        recipe: SubjectRecipe::Go {
            folder: "kube-state-metrics",
            package: "k8s.io/kube-state-metrics/v2",
            args: &GZIP_ARGS,
        },
        library: "k8s.io/kube-state-metrics/v2",
        about: "The tuned one with answers compressed, for which it has a flag that is off by default",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scrapes_are_of_those_that_export_answers() {
        let cases = [
            ("rollcall", true, true),
            ("kube-rs", false, true),
            ("kube-state-metrics", true, false),
            ("of an older run", false, true),
        ];
        for (subject, is_scraped, is_started) in cases {
            let parts = (takes_part(subject, SCRAPE_WORKLOAD), takes_part(subject, "start"));
            assert_eq!(parts, (is_scraped, is_started), "{subject}");
        }
    }
}
