package inventory

import "time"

// The bounds on retained data. Most of it is untrusted text.
const (
	// Keep is the retention of an image or a workload since it was last seen.
	Keep = 7 * 24 * time.Hour
	// MaxImages bounds the images. Images that no workload ran are evicted first, then the least
	// recently seen. A cluster of 150,000 pods runs some 3,000.
	MaxImages = 20_000
	// MaxPage bounds the results of one query.
	MaxPage = 200
	// MaxDecisions bounds the latest decisions. As many denials and errors are retained
	// separately, so that a flood of others does not evict them.
	MaxDecisions = 1_000

	// maxWaiting bounds the queue of decisions, each of which holds its object. Further decisions
	// are dropped and counted.
	maxWaiting = 512
	// maxHeld bounds the queue in bytes, by report.Weight: 512 ordinary Pods have 20 MiB.
	maxHeld = 32 << 20
	// maxUses bounds the workloads of one image, of which the gravest verdicts remain, and maxAllUses
	// those of all.
	maxUses    = 500
	maxAllUses = 100_000
	// maxBarePods bounds the pods without a workload that no scan has found, over all images. Each
	// has its own name, and without scans their deletion is never observed.
	maxBarePods = 4_000
	// maxDeniedBarePods is the same bound for denied pods.
	maxDeniedBarePods = 1_000
	// maxPods bounds the pods that are distinguished in one workload, at 8 bytes each.
	maxPods = 2_000
	// maxAllEvidence bounds the compressed evidence of all images, in bytes.
	maxAllEvidence = 64 << 20
	// maxDecisionEvidence bounds the compressed evidence of the latest decisions, and that of the
	// latest denials and errors, in bytes: 1,000 ordinary ones have 2 MiB.
	maxDecisionEvidence = 8 << 20
	// maxName bounds a name in a row, and maxMessage a message, in bytes.
	maxName    = 512
	maxMessage = 600
	// maxReferences and maxContainers bound the lists of one image, and maxDecided the images of one
	// decision. The bounds of its states and results are those of internal/state and internal/evidence.
	maxReferences = 8
	maxContainers = 8
	maxDecided    = 16
	// maxFacets bounds the values of a filter.
	maxFacets = 500
)
