//! What is compared.

/// How a subject is built and started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SubjectRecipe {
    /// The binary of this workspace.
    Rollcall,
    /// A package of a Go module in a folder.
    Go { folder: &'static str, package: &'static str },
    /// A binary of a Rust package in a folder.
    Cargo { folder: &'static str, binary: &'static str },
    /// A handler file for Kopf in a folder.
    Kopf { folder: &'static str, script: &'static str },
}

/// A program that tells parents whether their children are ready.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ComparedSubject {
    /// Its name on the command line and in the raw data.
    pub(crate) name: &'static str,
    pub(crate) recipe: SubjectRecipe,
    /// The library that it is made with, as its manifest names it.
    pub(crate) library: &'static str,
    /// What it does, for the page.
    pub(crate) about: &'static str,
}

/// The first is what the others are compared with.
pub(crate) const SUBJECTS: [ComparedSubject; 7] = [
    ComparedSubject {
        name: "rollcall",
        recipe: SubjectRecipe::Rollcall,
        library: "rollcall",
        about: "This program with its defaults: a lease, metrics, the page, re-reads of what is not ready",
    },
    ComparedSubject {
        name: "controller-runtime",
        recipe: SubjectRecipe::Go { folder: "controller-runtime", package: "./default" },
        library: "sigs.k8s.io/controller-runtime",
        about: "Go: the default cache, an index by owner, a patch at the end of each reconciliation",
    },
    ComparedSubject {
        name: "controller-runtime-tuned",
        recipe: SubjectRecipe::Go { folder: "controller-runtime", package: "./tuned" },
        library: "sigs.k8s.io/controller-runtime",
        about: "Go: types without the spec, a stripping transform, no copies, a predicate, eight workers, a patch only on change",
    },
    ComparedSubject {
        name: "kube-rs",
        recipe: SubjectRecipe::Cargo { folder: "kube-rs", binary: "default" },
        library: "kube",
        about: "Rust: a `Store` of whole children that each reconciliation searches, a patch at its end",
    },
    ComparedSubject {
        name: "kube-rs-tuned",
        recipe: SubjectRecipe::Cargo { folder: "kube-rs", binary: "tuned" },
        library: "kube",
        about: "Rust: types without the spec, one row per child in an index by owner, a trigger and a patch only on change",
    },
    ComparedSubject {
        name: "kstatus",
        recipe: SubjectRecipe::Go { folder: "client-go-kstatus", package: "." },
        library: "sigs.k8s.io/cli-utils",
        about: "Go: client-go's dynamic informers, kstatus, a workqueue with four workers, a patch only on change",
    },
    ComparedSubject {
        name: "kopf",
        recipe: SubjectRecipe::Kopf { folder: "kopf", script: "widgets.py" },
        library: "kopf",
        about: "Python: an index by owner and a timer of 30 s, a patch only on change",
    },
];
