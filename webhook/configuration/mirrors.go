package configuration

import (
	"slices"

	"github.com/quaymaster/quaymaster/policy"
)

// Mirrors is the requirement of mirrors in addition to policies.
type Mirrors int

// The possible values.
const (
	// NoMirrors means that there are no mirrors; only policies determine the webhooks.
	NoMirrors Mirrors = iota
	// MirrorsOpen includes Pods and fails open: without an answer, the image is pulled from its
	// original registry.
	MirrorsOpen
	// MirrorsClosed includes Pods and fails closed, because an entry denies images without a
	// qualified target.
	MirrorsClosed
)

// mirrorsPolicy returns the requirement of mirrors as a policy. Its targets are Pods, and the
// controllers that are changed like Pods.
func (in Input) mirrorsPolicy() *policy.Policy {
	p := &policy.Policy{
		Kind: "Mirrors", Name: "all", Settings: policy.Settings{FailOpen: in.Mirrors != MirrorsClosed},
		Targets: []policy.Target{{Version: "*", Kind: podKind}},
	}
	for _, w := range workloads() {
		if slices.Contains(in.MutateControllers, w.kind) {
			p.Targets = append(p.Targets, policy.Target{Group: w.group, Version: "*", Kind: w.kind})
		}
	}
	return p
}
