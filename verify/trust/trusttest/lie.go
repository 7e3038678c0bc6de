package trusttest

// Lie names the one thing that is wrong with what is published.
type Lie string

// The lies.
const (
	// Honest is a version as it should be.
	Honest Lie = ""
	// OneSignature is by one key where two are wanted.
	OneSignature Lie = "one signature"
	// OneKeyTwice has the signature of one key twice, to pass for two keys.
	OneKeyTwice Lie = "one key twice"
	// Ended metadata ended an hour ago: whoever serves it on holds back what came since.
	Ended Lie = "ended"
	// OtherTarget serves a target of other bytes than were signed.
	OtherTarget Lie = "other target"
	// EndlessTarget serves a target that does not end.
	EndlessTarget Lie = "endless target"
	// EndlessTimestamp serves a timestamp, whose size nobody has signed, that does not end.
	EndlessTimestamp Lie = "endless timestamp"
	// OldSnapshot is a newer timestamp of a snapshot that is older than the one before: of
	// the version before that.
	OldSnapshot Lie = "old snapshot"
	// SkippedRoot publishes with new keys, in a root whose version is one too high. It is
	// signed by the keys before it.
	SkippedRoot Lie = "skipped root"
	// StrangersRoot publishes with new keys, in a root that these alone have signed.
	StrangersRoot Lie = "stranger's root"
	// NoThreshold publishes with a root of those keys that wants no signature of targets.
	NoThreshold Lie = "no threshold"
)
