package mutation

const (
	// maxOperations bounds one JSON patch, as the API server does.
	maxOperations = 10_000
	// maxWritten bounds the data that one JSON patch writes and copies, in bytes of text plus
	// valueCost for each value: the API server accepts objects of 3 MiB.
	maxWritten = 3 << 20
	valueCost  = 8
	// maxSteps bounds the operations that are applied one by one, each with the whole object written
	// and read.
	maxSteps = 1000
	// maxDepth bounds objects and lists in one another.
	maxDepth = 200
)
