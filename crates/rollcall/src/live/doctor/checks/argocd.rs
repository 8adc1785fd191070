//! Releases of Argo CD that leave their finalizer on hooks.
//!
//! From the sources of the releases: 2.14.3 had it by accident, 3.0.0 for good; the race was mended in 3.0.16, 3.1.4 and
//! 3.2.0, and what is left behind by a sync that fails only in 3.4.0 (argo-cd#25916).

use std::collections::BTreeSet;

use super::super::finding::{Finding, Severity};
use super::super::world::World;

pub(super) const NAME: &str = "argocd-version";

pub(super) fn check(world: &World) -> Vec<Finding> {
    let mut found = Vec::new();
    for seen in &world.objects {
        let images: BTreeSet<&str> =
            seen.images.iter().map(String::as_str).filter(|image| is_argocd(image)).collect();
        for image in images {
            if let Some((severity, evidence, fix)) = judge(image) {
                found.push(
                    Finding::new(severity, NAME, seen.title())
                        .because(format!("image {image}: {evidence}"))
                        .fix(fix),
                );
            }
        }
    }
    found
}

/// `quay.io/argoproj/argocd:v3.1.2`, from whatever registry.
fn is_argocd(image: &str) -> bool {
    let path = image.split('@').next().unwrap_or(image);
    let last = path.rsplit('/').next().unwrap_or(path);
    last.split(':').next() == Some("argocd")
}

const RACE: &str = "it sets a finalizer on hooks and may forget to take it off: a Job that ends fast hangs in deletion, and with it the sync";

fn judge(image: &str) -> Option<(Severity, &'static str, &'static str)> {
    let Some(version) = version(image) else {
        return Some((
            Severity::Info,
            "which release that is cannot be told from its tag",
            "2.14.3, 3.0.0 to 3.0.15 and 3.1.0 to 3.1.3 forget their finalizer on hooks",
        ));
    };
    match version {
        (2, 14, 3) => Some((Severity::Error, RACE, "update to 2.14.4 or newer")),
        (3, 0, 0..=15) => Some((Severity::Error, RACE, "update to 3.0.16 or newer")),
        (3, 1, 0..=3) => Some((Severity::Error, RACE, "update to 3.1.4 or newer")),
        (3, 0..=3, _) => Some((
            Severity::Warning,
            "where a sync fails or is ended, its finalizer stays on hooks",
            "update to 3.4.0 or newer",
        )),
        (2, 14, 0..=11) => Some((
            Severity::Info,
            "users report hooks that hang behind its finalizer; its sources do not show why",
            "if you see that, update",
        )),
        _ => None,
    }
}

fn version(image: &str) -> Option<(u32, u32, u32)> {
    let path = image.split('@').next().unwrap_or(image);
    let (_, tag) = path.rsplit('/').next()?.split_once(':')?;
    let core = tag.strip_prefix('v').unwrap_or(tag).split(['-', '+']).next()?;
    let mut parts = core.split('.').map(str::parse);
    match (parts.next()?, parts.next()?, parts.next()?, parts.next()) {
        (Ok(major), Ok(minor), Ok(patch), None) => Some((major, minor, patch)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::support::{object, world};
    use super::*;
    use serde_json::json;

    #[test]
    fn the_releases_that_forget_their_finalizer_are_known() {
        for (image, severity) in [
            ("quay.io/argoproj/argocd:v2.13.9", None),
            ("quay.io/argoproj/argocd:v2.14.2", Some(Severity::Info)),
            ("quay.io/argoproj/argocd:v2.14.3", Some(Severity::Error)),
            ("quay.io/argoproj/argocd:v2.14.12", None),
            ("quay.io/argoproj/argocd:v3.0.15", Some(Severity::Error)),
            ("quay.io/argoproj/argocd:v3.0.16", Some(Severity::Warning)),
            ("mirror.local:5000/argocd:v3.1.3", Some(Severity::Error)),
            ("quay.io/argoproj/argocd:v3.1.4", Some(Severity::Warning)),
            ("quay.io/argoproj/argocd:v3.3.9", Some(Severity::Warning)),
            ("quay.io/argoproj/argocd:v3.4.0", None),
            ("quay.io/argoproj/argocd:v3.0.0-rc1@sha256:abc", Some(Severity::Error)),
            ("quay.io/argoproj/argocd@sha256:abc", Some(Severity::Info)),
            ("quay.io/argoproj/argocd:latest", Some(Severity::Info)),
            ("quay.io/argoproj/argocd-image-updater:v0.1.0", None),
            ("redis:7", None),
        ] {
            let mut server = object("Deployment", "argocd-server", &json!({}), &json!({}));
            server["spec"] = json!({ "template": { "spec": { "containers": [{ "image": image }] } } });
            let found = check(&world(&[server]));
            assert_eq!(found.first().map(|finding| finding.severity), severity, "{image}");
        }
    }
}
