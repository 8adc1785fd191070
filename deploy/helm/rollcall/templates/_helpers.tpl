{{- define "rollcall.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "rollcall.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "rollcall.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "rollcall.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- /* Where names are not the namespace's own: like no other release, nor what `rollcall rbac` prints. With a second dash, or cut, it
could be that of a release of another name in another namespace: then a hash of both tells them apart. */ -}}
{{- define "rollcall.wideName" -}}
{{- $name := include "rollcall.fullname" . -}}
{{- $wide := printf "%s-%s" .Release.Namespace $name -}}
{{- if or (contains "-" .Release.Namespace) (contains "-" $name) (gt (len $wide) 63) -}}
{{- printf "%s-%s" ($wide | trunc 54 | trimSuffix "-") (printf "%s/%s" .Release.Namespace $name | sha256sum | trunc 8) -}}
{{- else -}}
{{- $wide -}}
{{- end -}}
{{- end -}}

{{- define "rollcall.selector" -}}
app.kubernetes.io/name: {{ include "rollcall.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "rollcall.labels" -}}
{{ include "rollcall.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "rollcall.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "rollcall.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.name is needed where serviceAccount.create is false" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "rollcall.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{- /* Everything that cannot be is said before anything is installed. */ -}}
{{- define "rollcall.check" -}}
{{- if and .Values.namespaces (not .Values.policies) -}}
{{- fail "namespaces: policies live in the cluster, which Roles may not read: give them in `policies`" -}}
{{- end -}}
{{- if and .Values.policies .Values.policySelector -}}
{{- fail "policySelector chooses policies of the cluster, and with `policies` none are read from there" -}}
{{- end -}}
{{- if and .Values.grant.roles .Values.policies -}}
{{- fail "grant.roles is for policies of the cluster, and with `policies` none are read from there" -}}
{{- end -}}
{{- end -}}

{{- define "rollcall.portName" -}}
{{- if .Values.tls.enabled }}https{{ else }}http{{ end -}}
{{- end -}}

{{- /* A Role cannot grant the right to review tokens. */ -}}
{{- define "rollcall.metricsAuth" -}}
{{- if and .Values.metrics.auth (not .Values.namespaces) }}true{{ end -}}
{{- end -}}

{{- /* Flags that the service and the release of its entries have in common. */ -}}
{{- define "rollcall.scope" -}}
{{- with .Values.namespaces }}
- --namespaces={{ join "," . }}
{{- end }}
{{- with .Values.policySelector }}
- {{ printf "--policy-selector=%s" . | quote }}
{{- end }}
{{- end -}}

{{- define "rollcall.recordsNamespace" -}}
{{- default .Release.Namespace .Values.recordsNamespace -}}
{{- end -}}

{{- /* What it remembers, and which policy wrote which conditions. The right to create cannot be bound to a name. */ -}}
{{- define "rollcall.recordRules" -}}
{{- if not .Values.policies }}
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [{{ include "rollcall.fullname" . }}-inventory]
  verbs: [get, patch]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [create]
{{- end }}
- apiGroups: [rollcall.dev]
  resources: [readinessrecords]
  verbs: [get, list, watch, create, patch, delete]
{{- end -}}

{{- /* What parents and children need, in the cluster or in each namespace. */ -}}
{{- define "rollcall.rules" -}}
- apiGroups: [apps]
  resources: [daemonsets, deployments, replicasets, statefulsets]
  verbs: [get, list, watch]
- apiGroups: [batch]
  resources: [cronjobs, jobs]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch]
# Why a pod does not start: the claims that it mounts, for those who may read them.
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get]
# How many pods of a workload a disruption may take away.
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [list, watch]
# Events on parents.
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
# Outcome of a Job whose end was not observed, and what the page shows around an object to those who may read them.
- apiGroups: [""]
  resources: [events]
  verbs: [list]
{{- range .Values.children }}
- apiGroups: [{{ .group | quote }}]
  resources: {{ toJson .resources }}
  verbs: [get, list, watch]
{{- end }}
{{- range .Values.parents }}
- apiGroups: [{{ .group | quote }}]
  resources: [{{ .resource }}]
  verbs: [get, list, watch]
{{- if ne .write false }}
- apiGroups: [{{ .group | quote }}]
  resources: [{{ .resource }}{{ if ne .statusSubresource false }}/status{{ end }}]
  verbs: [patch]
{{- end }}
{{- end }}
{{- end -}}

{{- define "rollcall.subject" -}}
- kind: ServiceAccount
  name: {{ include "rollcall.serviceAccount" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}
