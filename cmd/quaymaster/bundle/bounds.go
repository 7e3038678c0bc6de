package bundle

// Every bound of this package, with its reason. What is above one is refused, and
// never cut short.
const (
	// MaxFile bounds the file: what a pipeline downloads for each run.
	MaxFile = 64 << 20
	// maxTotal bounds what is unpacked, against bytes that pack a thousand to one.
	maxTotal = 256 << 20
	// maxEntry bounds one entry: etcd takes objects of 1.5 MiB, and a global context
	// entry holds 8 MiB.
	maxEntry = 9 << 20
	// maxEntries bounds the entries: a large cluster has some thousand namespaces.
	maxEntries = 50_000
	// maxManifest is 300 bytes for each entry, and some.
	maxManifest = 16 << 20
	// maxNotes bounds what could not be carried, in sentences.
	maxNotes = 1_000
)
