package content

// Bounds of content, with their reasons. Content above a bound is an image.Bound error, never a
// shorter answer.
const (
	// MaxManifest is the size that the distribution specification asks a registry to accept (4
	// MiB); no client can rely on more.
	MaxManifest = 4 << 20
	// MaxBlob bounds the memory for one blob, independent of the caller; evidence with a large
	// SBOM has some tens of megabytes.
	MaxBlob = 128 << 20
	// maxReferrerEntry is the size of one entry of a list, which is held whole: it has
	// the annotations of a manifest, and that has MaxManifest at most. Where a type is
	// asked for by itself, it is a quarter of the list.
	maxReferrerEntry = MaxManifest
	// maxBlank is the white space between two values of a list, in bytes, which has to be
	// held, too: a list that is laid out for people has some dozens.
	maxBlank = 64 << 10
	// maxAnnotation is the size of an annotation that is kept of an entry, in
	// bytes: a URI.
	maxAnnotation = 1 << 10
	// MaxListedReferrers is the number of referrers of each wanted type. An image has
	// a handful; a busy one that is scanned daily some hundreds.
	MaxListedReferrers = 1000
)
