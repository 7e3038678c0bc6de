package bundle

// The bounds of this package, with their reasons. Content above a bound is refused, and never
// truncated.
const (
	// MaxFile bounds the file: a pipeline downloads it for each run.
	MaxFile = 64 << 20
	// maxTotal bounds the unpacked bytes, against compression ratios of a thousand to one.
	maxTotal = 256 << 20
	// maxEntry bounds one entry: etcd takes objects of 1.5 MiB, and a global context
	// entry holds 8 MiB.
	maxEntry = 9 << 20
	// maxEntries bounds the entries: a large cluster has some thousand namespaces.
	maxEntries = 50_000
	// maxManifest is 300 bytes for each entry, and some.
	maxManifest = 16 << 20
	// maxNotes bounds the notes on content that could not be included.
	maxNotes = 1_000
)
