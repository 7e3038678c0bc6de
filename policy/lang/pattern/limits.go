package pattern

const (
	// maxDepth bounds nested objects and lists, in a pattern and in the values of its variables.
	// An object is only read as deep as the pattern, so it bounds that, too. Policies stop at
	// about 20.
	maxDepth = 200
	// maxNodes bounds the keys, items and values of a pattern, and separately
	// those that the variables of one request bring into it.
	maxNodes = 100_000
	// maxText bounds a string that references are filled into, in bytes.
	maxText = 64 << 10
	// maxShown bounds a value in a message.
	maxShown = 200
)
