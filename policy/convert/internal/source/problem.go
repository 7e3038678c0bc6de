package source

import "strings"

// Problem is a part of a policy that cannot be converted.
type Problem struct {
	// Path is the location, dotted, with indices in brackets; in a file of several documents
	// it begins with "document 2: ".
	Path string
	// Found is the content at the location.
	Found string
	// Do is the remedy.
	Do string
}

// Error returns "path: found: remedy".
func (p Problem) Error() string {
	text := p.Found + ": " + p.Do
	if p.Path != "" {
		text = strings.TrimSuffix(p.Path, ": ") + ": " + text
	}
	return text
}
