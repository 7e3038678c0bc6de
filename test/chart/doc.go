// Package chart renders the charts under deploy/helm with the real Helm, and compares the
// result with the manifests that are generated from them and with the real kustomize.
//
// Helm renders (helm.sh/helm, built from Go modules by package peers); nothing here needs a
// cluster. Whether a real API server accepts the result, and the gateway works with it, is
// tested in test/e2e (chart_test.go).
package chart
