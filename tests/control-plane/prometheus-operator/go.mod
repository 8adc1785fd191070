// Not built: only the definitions of its resources are used, as they are shipped (Apache-2.0).
module rollcall.dev/control-plane/prometheus-operator

go 1.24.0

require github.com/prometheus-operator/prometheus-operator v0.85.0
