package source

import "strings"

// Problem is a part of a policy that cannot be carried.
type Problem struct {
	// Path is where it stands, dotted, with indices in brackets; a file of several
	// documents has "document 2: " before it.
	Path string
	// Found is what stands there.
	Found string
	// Do is what to do about it.
	Do string
}

// Error returns "path: what was found: what to do".
func (p Problem) Error() string {
	text := p.Found + ": " + p.Do
	if p.Path != "" {
		text = strings.TrimSuffix(p.Path, ": ") + ": " + text
	}
	return text
}
