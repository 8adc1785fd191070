//! The tools that read.

use clap::ValueEnum;

/// A tool that reads conditions or metrics.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadingTool {
    /// `healthCheckExprs` of a Flux Kustomization.
    Flux,
    /// `readyWhen` of a resource in a kro ResourceGraphDefinition.
    Kro,
    /// The command line of `kubectl wait`.
    Kubectl,
    /// Annotations of the parent in a Helm chart.
    Helm,
    /// Annotation of the parent for Pulumi.
    Pulumi,
    /// Configuration of kube-state-metrics for custom resources.
    KubeStateMetrics,
    /// An Argo Rollouts AnalysisTemplate over Rollcall's metrics.
    ArgoRollouts,
}
