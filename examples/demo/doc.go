// Package demo holds the policies of `quaymaster demo` as the files that a user
// would write, so that what is shown is what can be used.
package demo

import "embed"

// Policies are the policy files, by name.
//
//go:embed *.yaml
var Policies embed.FS
