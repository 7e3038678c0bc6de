package imagevalidating

const (
	// maxConditions bounds matchConditions, as Kubernetes does.
	maxConditions = 64
	// maxEntries bounds each other list of a document: validations, variables, images,
	// references. All are looked at for each object.
	maxEntries = 200
	// maxGlob bounds a glob, in bytes; a reference with a digest has at most some 500.
	maxGlob = 1 << 10
	// maxAlternatives bounds what the braces of one glob stand for.
	maxAlternatives = 64
	// maxChoices bounds how often a policy is evaluated to find proved statements that
	// it agrees with. Each was made by a trusted signer, so more than a handful for one
	// image is no attack but a mistake.
	maxChoices = 256
	// minTimeout and maxTimeout bound a webhook's timeout in Kubernetes, in seconds.
	minTimeout, maxTimeout = 1, 30
	// maxMessage bounds what a messageExpression says, in bytes: it is in every answer.
	maxMessage = 5 << 10
)
