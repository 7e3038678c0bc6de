// Package chart pushes a packaged Helm chart to a registry without a tag.
//
// "helm push" sets a tag at once. Push uploads the chart by digest only, so that it can be signed
// and verified before it is published. The format is Helm's: a manifest with Chart.yaml as its
// configuration and the package as its layer (https://helm.sh/docs/topics/registries/, Helm 3.8 and
// later).
package chart
