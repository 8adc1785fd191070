//! One healthy object of every kind a peer has a rule for, and a few custom ones.

use serde_json::{Value, json};

fn metadata() -> Value {
    json!({
        "name": "web", "namespace": "shop", "uid": "5f1c8a54-2a64-4a4e-9a3b-0d6b1f6f0001", "generation": 2,
        "creationTimestamp": "2025-01-01T00:00:00Z", "labels": {"app": "web"},
        "annotations": {
            "autoscaling.alpha.kubernetes.io/conditions":
                "[{\"type\":\"AbleToScale\",\"status\":\"True\",\"reason\":\"ReadyForNewScale\",\"message\":\"ready\"}]"
        },
        "ownerReferences": [{"apiVersion": "v1", "kind": "Owner", "name": "o", "uid": "u", "controller": true}],
        "managedFields": [{"manager": "m", "operation": "Update", "apiVersion": "v1", "time": "2025-01-01T00:00:00Z",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {}}}],
    })
}

fn template() -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": pod_spec()})
}

fn pod_spec() -> Value {
    json!({
        "restartPolicy": "Always", "terminationGracePeriodSeconds": 30,
        "containers": [{
            "name": "web", "image": "nginx", "ports": [{"containerPort": 80, "protocol": "TCP"}],
            "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"cpu": 1}},
            "readinessProbe": {"httpGet": {"path": "/", "port": 80}, "periodSeconds": 5},
            "env": [{"name": "A", "value": "b"}, {"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        }],
        "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 30}],
        "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}, {"name": "c", "configMap": {"name": "c", "defaultMode": 420}}],
        "securityContext": {"runAsUser": 1000, "fsGroup": 1000},
    })
}

fn conditions(of: &[(&str, &str, &str)]) -> Value {
    of.iter()
        .map(|(kind, status, reason)| {
            json!({"type": kind, "status": status, "reason": reason, "message": format!("{kind} is {status}"),
                "lastTransitionTime": "2025-01-01T00:00:00Z"})
        })
        .collect()
}

fn object(api_version: &str, kind: &str, spec: &Value, status: &Value) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": metadata(), "spec": spec, "status": status})
}

fn workloads() -> Vec<Value> {
    let selector = json!({"matchLabels": {"app": "web"}});
    let deployed = conditions(&[
        ("Available", "True", "MinimumReplicasAvailable"),
        ("Progressing", "True", "NewReplicaSetAvailable"),
    ]);
    vec![
        object(
            "apps/v1",
            "Deployment",
            &json!({"replicas": 3, "paused": false, "progressDeadlineSeconds": 600, "selector": selector, "template": template(),
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}}}),
            &json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3,
                "conditions": deployed}),
        ),
        object(
            "apps/v1",
            "StatefulSet",
            &json!({"replicas": 3, "serviceName": "web", "selector": selector, "template": template(),
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}}),
            &json!({"observedGeneration": 2, "replicas": 3, "readyReplicas": 3, "currentReplicas": 3, "updatedReplicas": 3,
                "currentRevision": "a-1", "updateRevision": "a-1"}),
        ),
        object(
            "apps/v1",
            "StatefulSet",
            &json!({"replicas": 3, "serviceName": "web", "selector": selector, "template": template(), "updateStrategy": {"type": "OnDelete"}}),
            &json!({"observedGeneration": 2, "replicas": 3, "readyReplicas": 1, "currentReplicas": 3, "updatedReplicas": 0,
                "currentRevision": "a-1", "updateRevision": "a-2"}),
        ),
        object(
            "apps/v1",
            "DaemonSet",
            &json!({"selector": selector, "template": template(), "updateStrategy": {"type": "RollingUpdate"}}),
            &json!({"observedGeneration": 2, "desiredNumberScheduled": 2, "currentNumberScheduled": 2, "updatedNumberScheduled": 2,
                "numberAvailable": 2, "numberReady": 2, "numberMisscheduled": 0}),
        ),
        object(
            "apps/v1",
            "ReplicaSet",
            &json!({"replicas": 2, "selector": selector, "template": template()}),
            &json!({"observedGeneration": 2, "replicas": 2, "fullyLabeledReplicas": 2, "readyReplicas": 2, "availableReplicas": 2}),
        ),
        object(
            "extensions/v1beta1",
            "Deployment",
            &json!({"replicas": 1}),
            &json!({"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
                "conditions": conditions(&[("Available", "True", "")])}),
        ),
    ]
}

fn jobs() -> Vec<Value> {
    vec![
        object(
            "batch/v1",
            "Job",
            &json!({"completions": 1, "parallelism": 1, "suspend": false, "backoffLimit": 3, "template": template()}),
            &json!({"startTime": "2025-01-01T00:00:00Z", "active": 0, "succeeded": 1, "conditions": conditions(&[("Complete", "True", "")])}),
        ),
        object(
            "batch/v1",
            "Job",
            &json!({"template": template()}),
            &json!({"startTime": "2025-01-01T00:00:00Z", "active": 1}),
        ),
        object(
            "batch/v1",
            "CronJob",
            &json!({"schedule": "* * * * *", "suspend": false}),
            &json!({"lastScheduleTime": "2025-01-01T00:00:00Z", "lastSuccessfulTime": "2025-01-01T00:01:00Z", "active": []}),
        ),
    ]
}

fn pods() -> Vec<Value> {
    let status = json!({
        "phase": "Running", "message": "", "podIP": "10.0.0.1", "startTime": "2025-01-01T00:00:00Z",
        "conditions": conditions(&[("PodScheduled", "True", ""), ("Ready", "True", "")]),
        "initContainerStatuses": [{"name": "init", "state": {"terminated": {"exitCode": 1, "reason": "Error"}}}],
        "containerStatuses": [{"name": "web", "ready": true, "restartCount": 0, "state": {"running": {"startedAt": "2025-01-01T00:00:00Z"}},
            "lastState": {}}],
    });
    let mut waiting = status.clone();
    waiting["conditions"] = conditions(&[("Ready", "False", "")]);
    waiting["containerStatuses"] = json!([
        {"name": "web", "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}, "lastState": {"terminated": {"exitCode": 2}}},
        {"name": "side", "state": {"waiting": {"reason": "ErrImagePull", "message": "no image"}}, "restartCount": 3},
    ]);
    let mut failed = status.clone();
    failed["phase"] = json!("Failed");
    failed["containerStatuses"] =
        json!([{"name": "web", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}]);
    let pending =
        json!({"phase": "Pending", "conditions": conditions(&[("PodScheduled", "False", "Unschedulable")])});
    [&status, &waiting, &failed, &pending].map(|status| object("v1", "Pod", &pod_spec(), status)).into()
}

fn others() -> Vec<Value> {
    let balanced = json!({"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}});
    let scaled = conditions(&[
        ("AbleToScale", "True", "ReadyForNewScale"),
        ("ScalingActive", "True", "ValidMetricFound"),
        ("ScalingLimited", "False", ""),
    ]);
    let hpa = json!({"minReplicas": 1, "maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"}});
    vec![
        object(
            "v1",
            "Service",
            &json!({"type": "LoadBalancer", "clusterIP": "10.0.0.1", "ports": [{"port": 80, "targetPort": "http"}]}),
            &balanced,
        ),
        object("networking.k8s.io/v1", "Ingress", &json!({"rules": []}), &balanced),
        object(
            "v1",
            "PersistentVolumeClaim",
            &json!({"resources": {"requests": {"storage": "1Gi"}}}),
            &json!({"phase": "Bound", "capacity": {"storage": "1Gi"}}),
        ),
        object(
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            &hpa,
            &json!({"currentReplicas": 1, "desiredReplicas": 1, "conditions": scaled}),
        ),
        object(
            "autoscaling/v1",
            "HorizontalPodAutoscaler",
            &hpa,
            &json!({"currentReplicas": 1, "desiredReplicas": 1}),
        ),
        object(
            "apiregistration.k8s.io/v1",
            "APIService",
            &json!({"group": "g", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1, "caBundle": "aGk="}),
            &json!({"conditions": conditions(&[("Available", "True", "Passed")])}),
        ),
    ]
}

fn custom() -> Vec<Value> {
    vec![
        object(
            "policy/v1",
            "PodDisruptionBudget",
            &json!({"minAvailable": 1}),
            &json!({"observedGeneration": 2, "conditions": conditions(&[("DisruptionAllowed", "True", "SufficientPods")])}),
        ),
        object(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            &json!({"group": "example.com"}),
            &json!({"conditions": conditions(&[("NamesAccepted", "True", "NoConflicts"), ("Established", "True", "InitialNamesAccepted")])}),
        ),
        object("argoproj.io/v1alpha1", "Workflow", &json!({}), &json!({"phase": "Running", "message": "m"})),
        object(
            "example.com/v1",
            "Database",
            &json!({"size": 3}),
            &json!({"observedGeneration": 2, "phase": "Running", "conditions": conditions(&[("Ready", "True", "Up")])}),
        ),
        object("example.com/v1", "Cache", &json!({}), &json!({})),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(), "data": {"a": "b"}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata(), "data": {"a": "b"}}),
    ]
}

/// Returns all samples.
pub(crate) fn all() -> Vec<Value> {
    [workloads(), jobs(), pods(), others(), custom()].concat()
}
