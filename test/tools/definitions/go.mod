module github.com/quaymaster/quaymaster/test/tools/definitions

go 1.26.0

// Nothing is built from these: they hold the definitions of kinds that the charts can make.
require (
	github.com/cert-manager/cert-manager v1.21.2
	github.com/prometheus-operator/prometheus-operator v0.85.0
)
