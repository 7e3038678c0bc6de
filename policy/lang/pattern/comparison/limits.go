package comparison

const (
	// maxParts bounds the operands of `|` and `&` in one string.
	maxParts = 4096
	// maxWork bounds one budget, in comparisons of short values; a long text or one with `?`
	// counts as several. The largest object that Kubernetes accepts has some ten thousand values;
	// spending all of the budget takes tenths of a second.
	maxWork = 4 << 20
	// workBytes is the number of bytes that a comparison reads for one unit of work.
	workBytes = 64
)
