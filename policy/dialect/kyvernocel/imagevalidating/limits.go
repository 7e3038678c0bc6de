package imagevalidating

import "github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"

const (
	// maxEntries bounds each list of a document.
	maxEntries = kyvernocel.MaxEntries
	// maxChoices bounds the evaluations of a policy in search of verified statements that satisfy
	// it. Each was created by a trusted signer, so more than a handful for one image is no attack
	// but a mistake.
	maxChoices = 256
	// maxOthers bounds the unverified images with metadata that an expression reads: each is a
	// series of requests to a registry, and the object names them.
	maxOthers = 32
)
