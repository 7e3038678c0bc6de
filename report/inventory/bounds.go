package inventory

import "time"

// The bounds on what is kept. Most of it is text that strangers chose.
const (
	// Keep is how long an image or a workload is remembered that nobody saw again.
	Keep = 7 * 24 * time.Hour
	// MaxImages bounds the images; those that nothing ever ran go first, then those seen
	// longest ago. A cluster of 150,000 pods runs some 3,000.
	MaxImages = 20_000
	// MaxPage is the most that one query returns.
	MaxPage = 200
	// MaxDecisions is how many of the latest decisions are kept, and as many again of
	// those that admitted nothing, which a flood of others does not wash away.
	MaxDecisions = 1_000

	// maxWaiting is how many decisions wait to be taken in; each holds its object. Who
	// comes when it is full is left out, and counted.
	maxWaiting = 512
	// maxHeld bounds what they hold, in bytes by report.Weight: 512 usual Pods have 20 MiB.
	maxHeld = 32 << 20
	// maxUses bounds the workloads of one image, and maxAllUses those of all.
	maxUses    = 500
	maxAllUses = 100_000
	// maxLone bounds the pods of no workload that no scan has found, of all images: each
	// has a name of its own, and where no scan runs nobody tells when it is gone.
	maxLone = 4_000
	// maxLoneRefused is the same for those that were refused.
	maxLoneRefused = 1_000
	// maxPods bounds the pods that are told apart in one workload, at 8 bytes each.
	maxPods = 2_000
	// maxAllEvidence bounds the compressed evidence of all images, in bytes.
	maxAllEvidence = 64 << 20
	// maxName bounds a name that is kept in a row, and maxMessage a message, in bytes.
	maxName    = 512
	maxMessage = 600
	// maxReferences, maxSigners, maxContainers and maxJudgements bound what one image has
	// of each; maxDecided the images that one decision names.
	maxReferences = 8
	maxSigners    = 8
	maxContainers = 8
	maxJudgements = 64
	maxDecided    = 16
	// maxPolicies bounds the policies that are counted, and maxRules the rules of one.
	maxPolicies = 2_000
	maxRules    = 100
	// maxFacets bounds the names that filters are offered.
	maxFacets = 500
)
