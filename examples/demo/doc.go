// Package demo embeds the policies of `quaymaster demo`, as the files that a user would write, and
// requests as an API server (1.36) sends them. The demo therefore shows files that work in a
// cluster.
package demo

import "embed"

// Policies are the policy files, by name.
//
//go:embed *.yaml
var Policies embed.FS

// Reviews are AdmissionReviews, in the order of their names. They contain the placeholder REGISTRY
// for the registry's host.
//
//go:embed reviews/*.json
var Reviews embed.FS
