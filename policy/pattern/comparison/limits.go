package comparison

const (
	// maxParts bounds what `|` and `&` join in one string.
	maxParts = 4096
	// maxWork bounds what one budget pays for, in comparisons of short values; a
	// long text or one with `?` counts as several. The largest object that
	// Kubernetes takes has some ten thousand values; to spend all of it takes
	// tenths of a second.
	maxWork = 4 << 20
	// workBytes is how many bytes a comparison looks at for one unit of work.
	workBytes = 64
)
