package kyvernocel

const (
	// maxConditions bounds matchConditions, as Kubernetes does.
	maxConditions = 64
	// MaxEntries bounds each other list of a document: validations, variables, images,
	// references. All are evaluated for each object.
	MaxEntries = 200
	// minTimeout and maxTimeout bound a webhook's timeout in Kubernetes, in seconds.
	minTimeout, maxTimeout = 1, 30
	// MaxMessage bounds the result of a messageExpression, in bytes: it is part of every
	// response.
	MaxMessage = 5 << 10
)
