//! Argo CD releases that leak their hook finalizer.
//!
//! According to the sources of the releases: 2.14.3 had it by accident, 3.0.0 permanently; the race was fixed in
//! 3.0.16, 3.1.4 and 3.2.0, and the finalizers leaked by a failing sync only in 3.4.0 (argo-cd#25916).

use std::collections::BTreeSet;

use super::super::finding::{DoctorFinding, DoctorSeverity};
use super::super::inventory::DoctorInventory;

pub(super) const CHECK_NAME: &str = "argocd-version";

pub(super) fn run_check(world: &DoctorInventory) -> Vec<DoctorFinding> {
    let mut found = Vec::new();
    for seen in &world.objects {
        let images: BTreeSet<&str> =
            seen.images.iter().map(String::as_str).filter(|image| is_argocd(image)).collect();
        for image in images {
            if let Some((severity, evidence, fix)) = judge_image(image) {
                found.push(
                    DoctorFinding::new(severity, CHECK_NAME, seen.display_title())
                        .with_evidence(format!("image {image}: {evidence}"))
                        .with_fix(fix),
                );
            }
        }
    }
    found
}

/// Matches `quay.io/argoproj/argocd:v3.1.2`, from any registry.
fn is_argocd(image: &str) -> bool {
    let path = image.split('@').next().unwrap_or(image);
    let last = path.rsplit('/').next().unwrap_or(path);
    last.split(':').next() == Some("argocd")
}

const HOOK_RACE: &str = "this Argo CD version can leak its hook finalizer: short-lived hook Jobs then block in deletion, and so does the sync";

fn judge_image(image: &str) -> Option<(DoctorSeverity, &'static str, &'static str)> {
    let Some(version) = parse_version(image) else {
        return Some((
            DoctorSeverity::Info,
            "the tag does not identify the release",
            "check the version: 2.14.3, 3.0.0 to 3.0.15 and 3.1.0 to 3.1.3 leak their hook finalizer",
        ));
    };
    match version {
        (2, 14, 3) => Some((DoctorSeverity::Error, HOOK_RACE, "update to 2.14.4 or newer")),
        (3, 0, 0..=15) => Some((DoctorSeverity::Error, HOOK_RACE, "update to 3.0.16 or newer")),
        (3, 1, 0..=3) => Some((DoctorSeverity::Error, HOOK_RACE, "update to 3.1.4 or newer")),
        (3, 0..=3, _) => Some((
            DoctorSeverity::Warning,
            "if a sync fails or is terminated, this version leaves its finalizer on hooks",
            "update to 3.4.0 or newer",
        )),
        (2, 14, 0..=11) => Some((
            DoctorSeverity::Info,
            "users report hooks that hang in deletion with its finalizer; the cause is not known",
            "update if you observe that",
        )),
        _ => None,
    }
}

fn parse_version(image: &str) -> Option<(u32, u32, u32)> {
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
            ("quay.io/argoproj/argocd:v2.14.2", Some(DoctorSeverity::Info)),
            ("quay.io/argoproj/argocd:v2.14.3", Some(DoctorSeverity::Error)),
            ("quay.io/argoproj/argocd:v2.14.12", None),
            ("quay.io/argoproj/argocd:v3.0.15", Some(DoctorSeverity::Error)),
            ("quay.io/argoproj/argocd:v3.0.16", Some(DoctorSeverity::Warning)),
            ("mirror.local:5000/argocd:v3.1.3", Some(DoctorSeverity::Error)),
            ("quay.io/argoproj/argocd:v3.1.4", Some(DoctorSeverity::Warning)),
            ("quay.io/argoproj/argocd:v3.3.9", Some(DoctorSeverity::Warning)),
            ("quay.io/argoproj/argocd:v3.4.0", None),
            ("quay.io/argoproj/argocd:v3.0.0-rc1@sha256:abc", Some(DoctorSeverity::Error)),
            ("quay.io/argoproj/argocd@sha256:abc", Some(DoctorSeverity::Info)),
            ("quay.io/argoproj/argocd:latest", Some(DoctorSeverity::Info)),
            ("quay.io/argoproj/argocd-image-updater:v0.1.0", None),
            ("redis:7", None),
        ] {
            let mut server = object("Deployment", "argocd-server", &json!({}), &json!({}));
            server["spec"] = json!({ "template": { "spec": { "containers": [{ "image": image }] } } });
            let found = run_check(&world(&[server]));
            assert_eq!(found.first().map(|finding| finding.severity), severity, "{image}");
        }
    }
}
