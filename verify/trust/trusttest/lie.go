package trusttest

// Lie selects the one fault of a published version.
type Lie string

// The lies.
const (
	// Honest is a valid version.
	Honest Lie = ""
	// OneSignature has the signature of one key where two are required.
	OneSignature Lie = "one signature"
	// OneKeyTwice has the signature of one key twice, to be counted as two keys.
	OneKeyTwice Lie = "one key twice"
	// Ended metadata expired an hour ago, as when a mirror withholds later versions.
	Ended Lie = "ended"
	// OtherTarget serves a target with other bytes than the signed ones.
	OtherTarget Lie = "other target"
	// EndlessTarget serves a target without an end.
	EndlessTarget Lie = "endless target"
	// EndlessTimestamp serves a timestamp without an end. No signature covers its size.
	EndlessTimestamp Lie = "endless timestamp"
	// OldSnapshot is a newer timestamp of an older snapshot: that of the version before the
	// previous one.
	OldSnapshot Lie = "old snapshot"
	// SkippedRoot publishes with new keys, in a root with a version one too high. The previous
	// keys sign it.
	SkippedRoot Lie = "skipped root"
	// StrangersRoot publishes with new keys, in a root signed only by these.
	StrangersRoot Lie = "untrusted root"
	// NoThreshold publishes with a root of those keys that requires no signature of targets.
	NoThreshold Lie = "no threshold"
)
