package workload

// The bounds on what is read of manifests.
const (
	// MaxInput is the size of one input, in bytes. The largest real inputs are
	// lists of everything that a cluster runs.
	MaxInput = 64 << 20
	// MaxYAML is the size of one YAML document, in bytes; in memory it takes some
	// fifty times as much while it is read.
	MaxYAML = 16 << 20
	// MaxExpanded is the size of one YAML document once its aliases are written
	// out, in bytes, so that a few lines cannot become gigabytes.
	MaxExpanded = 128 << 20
	// MaxObjects is how many objects one input may hold.
	MaxObjects = 100_000
	// MaxLists is how many Lists an object may stand in, one in the other. kubectl
	// writes one; what gathers its outputs, a second.
	MaxLists = 3
	// MaxDepth is how deeply an object may be nested. Custom resource definitions,
	// the deepest objects known, reach about sixty.
	MaxDepth = 256
	// maxTemplate is how much of a template's name is kept, in bytes.
	maxTemplate = 512
	// maxSteps is how many values of a document one search of a position looks at;
	// merges of merges could be more than anybody waits for.
	maxSteps = 100_000
)
