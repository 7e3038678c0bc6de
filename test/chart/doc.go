// Package chart asks the real Helm and the real kustomize: what do the charts under
// deploy/helm say, and is what was made from them up to date?
//
// Helm renders (helm.sh/helm, built from Go modules by package peers); nothing here needs
// a cluster. That a real API server takes what is rendered, and that the gateway works
// with it, is asked in test/e2e (chart_test.go).
package chart
