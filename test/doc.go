// Package test holds the suites that need real programs: cosign, crane,
// registries and Sigstore's servers. They are in a module of their own, so that
// the product's go.mod stays lean; the programs are pinned under tools, one
// module each, and built from Go modules by package peers.
package test
