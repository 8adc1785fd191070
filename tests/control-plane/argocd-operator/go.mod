// Not built: only the definition of its resource is used, as it is shipped (Apache-2.0).
module rollcall.dev/control-plane/argocd-operator

go 1.24.0

require github.com/argoproj-labs/argocd-operator v0.15.0
