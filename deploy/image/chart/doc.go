// Package chart answers: how does a packaged Helm chart get into a registry before
// anybody may find it?
//
// "helm push" tags a chart in the moment it is pushed. Push leaves it under its
// digest alone, so that it can be signed and verified first. What it writes is what
// Helm reads: a manifest with Chart.yaml as its configuration and the package as its
// layer (https://helm.sh/docs/topics/registries/, Helm 3.8 and later).
package chart
