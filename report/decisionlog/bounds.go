package decisionlog

// The bounds of a line. Whoever asks writes names and groups, and registries and
// policies write messages, so that each is cut with a count of what is missing.
const (
	// maxLine bounds a line that is read, in bytes: what a line with every list full
	// has.
	maxLine = 4 << 20
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
	// maxSegment bounds a file that is read backwards from its compressed form, which
	// has to be in memory, in bytes. Package journal rotates before.
	maxSegment = 1 << 30
	// maxFiles bounds the files of one log, in case of a folder that is no log's.
	maxFiles = 100_000
)
