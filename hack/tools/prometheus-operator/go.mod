// Only the CRD of ServiceMonitor is taken from it: nothing is built.
module kflare.dev/hack/tools/prometheus-operator

go 1.26.0

require github.com/prometheus-operator/prometheus-operator v0.85.0
