package signedmanifest

// Bounds on what an object carries.
const (
	// MaxContent is the size of a signed content without the outer compression, in bytes. The API
	// server limits all annotations of an object to 256 KiB together.
	MaxContent = 1 << 20
	// MaxArchive is the size of the files in a content that is an archive, in bytes.
	MaxArchive = 4 << 20
	// MaxFiles is how many files an archive may have.
	MaxFiles = 1000
	// MaxManifests is how many manifests a content may have.
	MaxManifests = 1000
	// MaxSignatures is how many signatures of an object are read.
	MaxSignatures = 32
	// MaxCertificate and MaxEntry are the sizes of a certificate and of a log entry, in bytes.
	MaxCertificate = 64 << 10
	MaxEntry       = 1 << 20
)
