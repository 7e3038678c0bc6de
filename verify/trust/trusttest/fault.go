package trusttest

// Fault selects the one fault of a published version.
type Fault string

// The faults.
const (
	// None is a valid version.
	None Fault = ""
	// OneSignature has the signature of one key where two are required.
	OneSignature Fault = "one signature"
	// OneKeyTwice has the signature of one key twice, to be counted as two keys.
	OneKeyTwice Fault = "one key twice"
	// Ended metadata expired an hour ago, as when a mirror withholds later versions.
	Ended Fault = "ended"
	// OtherTarget serves a target with other bytes than the signed ones.
	OtherTarget Fault = "other target"
	// EndlessTarget serves a target without an end.
	EndlessTarget Fault = "endless target"
	// EndlessTimestamp serves a timestamp without an end. No signature covers its size.
	EndlessTimestamp Fault = "endless timestamp"
	// OldSnapshot is a newer timestamp of an older snapshot: that of the version before the
	// previous one.
	OldSnapshot Fault = "old snapshot"
	// SkippedRoot publishes with new keys, in a root with a version one too high. The previous
	// keys sign it.
	SkippedRoot Fault = "skipped root"
	// UnrelatedRoot publishes with new keys, in a root signed only by these.
	UnrelatedRoot Fault = "untrusted root"
	// Rotated is no fault: it publishes with new keys, in a root that the previous ones sign.
	Rotated Fault = "rotated"
	// LongSnapshot, LongTargets and LongTarget sign a length of a terabyte for that file.
	LongSnapshot Fault = "long snapshot"
	LongTargets  Fault = "long targets"
	LongTarget   Fault = "long target"
	// NoThreshold publishes with a root of those keys that requires no signature of targets.
	NoThreshold Fault = "no threshold"
)
