module github.com/quaymaster/quaymaster/test/tools/definitions

go 1.26.0

// Nothing is built from these: they hold the definitions of kinds that the charts can make, and
// of those that Quaymaster evaluates, and manifests that another tool signed.
require (
	github.com/cert-manager/cert-manager v1.21.2
	github.com/kyverno/kyverno v1.19.0
	github.com/prometheus-operator/prometheus-operator v0.85.0
	github.com/sigstore/k8s-manifest-sigstore v0.5.4
	github.com/sigstore/policy-controller v0.14.0
)
