package decisionlog

// MaxLines bounds the lines of a log that a command reads, the latest: some 2 GB.
const MaxLines = 1_000_000

// The bounds of a line. Users choose names and groups, and registries and policies write
// messages. Each is truncated, with a count of the omitted part.
const (
	// maxName bounds a user-chosen name, in bytes. Kubernetes limits its own names to 253, and
	// registries image references to 4,096 or fewer.
	maxName = 1024
	// maxMessage bounds a message, in bytes.
	maxMessage = 2048
	// maxGroups, maxRules, maxProofs and maxReasons bound the lists of a line. No known account
	// is in more groups, and no known object has more rules.
	maxGroups  = 200
	maxRules   = 500
	maxProofs  = 20
	maxReasons = 20
)
