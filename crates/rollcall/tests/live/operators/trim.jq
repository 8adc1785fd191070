# Keeps of CRDs and objects what readers of readiness look at. The answer is JSON with one object per line.

# A schema without its prose; of all but the status, that anything may be there.
def plain: walk(if type == "object" then (if .description | type == "string" then del(.description) else . end) else . end);
def open: { type: "object", "x-kubernetes-preserve-unknown-fields": true };
def schema: { openAPIV3Schema: { type: "object", properties: { spec: open,
  status: (.openAPIV3Schema.properties.status // open | plain) } } };
def crd: { apiVersion, kind, metadata: { name: .metadata.name }, spec: {
  group: .spec.group, scope: .spec.scope, names: .spec.names,
  versions: [.spec.versions[] | { name, served, storage, subresources: (.subresources // {}), schema: (.schema | schema) }] } };

def is_custom: .apiVersion | IN($groups | splits(" ") | . + "/v1", . + "/v1alpha1", . + "/v1beta1");
def annotations: del(.["kubectl.kubernetes.io/last-applied-configuration"]);
# Managers of a custom resource say whose condition is whose; of what it owns nobody asks.
def meta: { name, namespace, uid, generation, creationTimestamp, labels, annotations: (.annotations // {} | annotations),
  ownerReferences, finalizers, managedFields };
def pod: { containers: [.containers[] | { name, image }] };
def template: if .template.spec.containers then .template |= { metadata: { labels: .metadata.labels }, spec: (.spec | pod) } else . end;
def content:
  if .kind == "Secret" or .kind == "ConfigMap" then {}
  elif .kind == "GraphRevision" then { status }
  elif .kind == "Pod" then { spec: (.spec | pod + { nodeName }), status: (.status | del(.hostIP, .hostIPs, .podIP, .podIPs)) }
  else { spec: (.spec // {} | template), status } end;
def object: . as $object | { apiVersion, kind,
  metadata: (.metadata | meta | if $object | is_custom then . else del(.managedFields) end) } + content
  | del(.. | nulls) | if .metadata.annotations == {} then del(.metadata.annotations) else . end;

def lines: map(tojson) | join(",\n");
"{ \"module\": \($source | tojson), \"version\": \($version | tojson), \"kubernetes\": \($kubernetes | tojson), \"recordedAt\": \($now | tojson),\n\"crds\": [\n"
  + ([$crds[] | select(.spec.group as $group | $groups | split(" ") | index($group))] | map(crd) | lines)
  + "\n],\n\"objects\": [\n"
  + ([$objects[] | select((.kind == "ServiceAccount" or .metadata.name == "kube-root-ca.crt") | not)] | map(object) | lines)
  + "\n] }"
