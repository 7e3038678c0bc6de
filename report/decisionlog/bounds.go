package decisionlog

// The bounds of a line. Whoever asks writes names and groups, and registries and
// policies write messages, so that each is cut with a count of what is missing.
const (
	// maxName bounds a name of a person's choice, in bytes; Kubernetes' own are at most
	// 253, and references of images 4,096 where a registry takes them at all.
	maxName = 1024
	// maxMessage bounds a sentence, in bytes.
	maxMessage = 2048
	// maxGroups, maxRules, maxProofs and maxReasons bound the lists of a line: an
	// account in more groups, or an object under more rules, was never seen.
	maxGroups  = 200
	maxRules   = 500
	maxProofs  = 20
	maxReasons = 20
)
