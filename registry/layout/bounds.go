package layout

// Bounds of this package, with their reasons.
const (
	// maxMarker is the size of the file oci-layout, which has some 30 bytes.
	maxMarker = 8 << 10
	// maxIndex is the size of a layout's index.json.
	maxIndex = 4 << 20
	// maxLayoutManifests bounds the manifests of a layout that are searched for a subject.
	maxLayoutManifests = 4096
	// maxStart is what is read of a blob to see that it is no object of JSON; white space before one is short.
	maxStart = 512
	// maxUnlisted bounds the bytes of the objects of JSON that are searched for manifests which are not listed.
	maxUnlisted = 1 << 30
	// maxLayouts bounds how many layouts are read as one: each has a file open.
	maxLayouts = 256
	// maxArchiveEntries bounds the table of an archive's files.
	maxArchiveEntries = 1 << 16
)
