//! Arguments of the components of a control plane.

use std::path::Path;

pub(crate) fn api_server_args(folder: &Path, port: u16, etcd: u16) -> Vec<String> {
    let key = folder.join("service-accounts.key");
    vec![
        format!("--etcd-servers=http://127.0.0.1:{etcd}"),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        format!("--cert-dir={}", folder.join("certificates").display()),
        format!("--token-auth-file={}", folder.join("tokens.csv").display()),
        format!("--client-ca-file={}", folder.join("ca.pem").display()),
        "--authorization-mode=RBAC,Node".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-key-file={}", key.display()),
        format!("--service-account-signing-key-file={}", key.display()),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
    ]
}

/// Arguments of the controller manager: with all controllers, or with the one alone that aggregates ClusterRoles.
pub(crate) fn manager_args(folder: &Path, port: u16, all: bool) -> Vec<String> {
    let mut args = component_args(folder, port);
    if !all {
        args.push("--controllers=clusterrole-aggregation-controller".to_owned());
    }
    args.push(format!(
        "--service-account-private-key-file={}",
        folder.join("service-accounts.key").display()
    ));
    args.push(format!("--root-ca-file={}", folder.join("certificates/apiserver.crt").display()));
    args.push("--use-service-account-credentials".to_owned());
    // kwok's nodes are never lost; on a busy machine their heartbeats may be late.
    args.push("--node-monitor-grace-period=24h".to_owned());
    args
}

pub(crate) fn scheduler_args(folder: &Path, port: u16) -> Vec<String> {
    component_args(folder, port)
}

fn component_args(folder: &Path, port: u16) -> Vec<String> {
    let file = folder.join("admin.kubeconfig").display().to_string();
    vec![
        format!("--kubeconfig={file}"),
        format!("--authentication-kubeconfig={file}"),
        format!("--authorization-kubeconfig={file}"),
        "--authentication-skip-lookup".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        "--leader-elect=false".to_owned(),
    ]
}
