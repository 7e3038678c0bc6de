package configuration

import (
	"slices"

	"github.com/quaymaster/quaymaster/policy"
)

// Mirrors says what mirrors ask for beside policies.
type Mirrors int

// The choices.
const (
	// NoMirrors: there are none, and only policies say what is asked about.
	NoMirrors Mirrors = iota
	// MirrorsOpen: Pods are asked about, and an answer that does not come stops
	// nobody: the image is pulled from where it was written.
	MirrorsOpen
	// MirrorsClosed: an entry denies what no target qualifies for, so that a request
	// without an answer is denied, too.
	MirrorsClosed
)

// mirrorsPolicy returns what mirrors ask for in the form of a policy: an image can come
// into any Pod, and into those of its controllers that are changed as Pods are.
func (in Input) mirrorsPolicy() *policy.Policy {
	p := &policy.Policy{
		Kind: "Mirrors", Name: "all", FailOpen: in.Mirrors != MirrorsClosed,
		Targets: []policy.Target{{Version: "*", Kind: podKind}},
	}
	for _, w := range workloads() {
		if slices.Contains(in.MutateControllers, w.kind) {
			p.Targets = append(p.Targets, policy.Target{Group: w.group, Version: "*", Kind: w.kind})
		}
	}
	return p
}
