package images

import (
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/image"
)

// Wildcards is the syntax of patterns for names.
type Wildcards int

const (
	// Kyverno has * for any run of characters, and ? for one.
	Kyverno Wildcards = iota
	// PolicyController has ** for any run of characters, and * for one without a slash.
	PolicyController
)

// HubPaths returns the patterns that a pattern has for the paths of Docker Hub by way of a wildcard in the
// registry: of registry-?.docker.io/acme/* it is acme/*. A pattern matches the images of a registry by each
// of its names, and expressions see one name. Patterns are left out that match the name docker.io, with
// and without library/, as well.
func (w Wildcards) HubPaths(pattern string) []string {
	plain, official := w.after(pattern, "docker.io/"), w.after(pattern, "docker.io/library/")
	var paths []string
	for _, name := range image.HubNames() {
		for _, i := range w.after(pattern, name+"/") {
			is := slices.Contains(plain, i) && slices.Contains(official, i)
			if !is && strings.ContainsAny(pattern[:min(i+1, len(pattern))], "*?") && !slices.Contains(paths, pattern[i:]) {
				paths = append(paths, pattern[i:])
			}
		}
	}
	return paths
}

// after returns where in a pattern the rest of it may begin after a text.
func (w Wildcards) after(pattern, text string) []int {
	at := []int{0}
	for i := range len(text) {
		var next []int
		for n := 0; n < len(at); n++ {
			from, to, kept := at[n], at[n]+1, false
			switch star := w.star(pattern[from:]); {
			case star > 0:
				kept = star == 2 || w == Kyverno || text[i] != '/'
				if !slices.Contains(at, from+star) {
					at = append(at, from+star)
				}
				to = from
			case from < len(pattern):
				kept = pattern[from] == text[i] || w == Kyverno && pattern[from] == '?'
			}
			if kept && !slices.Contains(next, to) {
				next = append(next, to)
			}
		}
		at = next
	}
	return at
}

// star returns the length of the run of stars that a pattern begins with, as one wildcard.
func (w Wildcards) star(pattern string) int {
	switch {
	case w == PolicyController && strings.HasPrefix(pattern, "**"):
		return 2
	case strings.HasPrefix(pattern, "*"):
		return 1
	}
	return 0
}
