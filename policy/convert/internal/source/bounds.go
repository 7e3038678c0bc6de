package source

// Bounds of the input. Hand-written policies stay far below them.
const (
	// maxFile is the largest file that a policy may name, in bytes: a chain of
	// certificates has a few KiB.
	maxFile = 1 << 20
	// maxDocuments bounds the documents of one file.
	maxDocuments = 100
	// MaxRules bounds the rules of one source: each is compared with each.
	MaxRules = 200
	// maxExpression bounds one written expression, in bytes: the gateway compiles at most 64
	// KiB.
	maxExpression = 60 << 10
)
