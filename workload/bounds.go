package workload

import "github.com/quaymaster/quaymaster/workload/internal/yamldocument"

// Bounds on manifests.
const (
	// MaxInput is the size of one input, in bytes. The largest real inputs are lists of all
	// objects of a cluster.
	MaxInput = 64 << 20
	// MaxYAML is the size of one YAML document, in bytes.
	MaxYAML = yamldocument.MaxSize
	// MaxExpanded is the size of one YAML document with expanded aliases, in bytes.
	MaxExpanded = yamldocument.MaxExpanded
	// MaxObjects is the number of objects in one input.
	MaxObjects = 100_000
	// MaxLists is the depth of nested Lists. kubectl writes one; a tool that collects its outputs
	// may add a second.
	MaxLists = 3
	// MaxDepth is the nesting depth of an object.
	MaxDepth = yamldocument.MaxDepth
	// maxTemplate is the kept length of a template's name, in bytes.
	maxTemplate = 512
	// maxSteps is the number of values of a document that one search of a position visits; nested
	// merges could make it unbounded.
	maxSteps = 100_000
)
