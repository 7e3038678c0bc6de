// Package demo holds the policies of `quaymaster demo` as the files that a user
// would write, and requests as an API server (1.36) sends them, so that what is
// shown is what can be used.
package demo

import "embed"

// Policies are the policy files, by name.
//
//go:embed *.yaml
var Policies embed.FS

// Reviews are AdmissionReviews, in the order of their names. The word REGISTRY in
// them stands for the registry's host.
//
//go:embed reviews/*.json
var Reviews embed.FS
