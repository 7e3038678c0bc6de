package mutating

const (
	// maxOperations bounds one JSON patch, as the API server does.
	maxOperations = 10_000
	// maxWritten bounds the data that one JSON patch writes and copies, in bytes of text plus
	// valueCost for each value: the API server accepts objects of 3 MiB.
	maxWritten = 3 << 20
	valueCost  = 8
	// maxDepth bounds objects and lists in one another.
	maxDepth = 200
	// maxChosen bounds the targets that an expression chooses: each is read apart.
	maxChosen = 1000
)
