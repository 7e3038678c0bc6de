package connaisseur

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy/convert/internal/images"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
)

// pattern is a pattern of Connaisseur's: * matches any run of characters, slashes too, ?
// one, and * is added at both ends.
type pattern string

type patterns []pattern

// patterns checks the patterns.
func (c reader) patterns(rules []rule, path string) patterns {
	var list patterns
	first := map[string]int{}
	for i, rule := range rules {
		at := source.Index(path, i) + ".pattern"
		host, _, _ := strings.Cut(rule.Pattern, "/")
		earlier, twice := first[rule.Pattern]
		switch {
		case rule.Pattern == "":
			c.Refuse(at, "is empty", "set the images, * for all")
		case strings.ContainsAny(rule.Pattern, `[]{}\!^`):
			c.Refuse(at, fmt.Sprintf("%q has a character class, alternatives or an escape", rule.Pattern), "write a rule for each, with * and ? alone")
		case strings.ToLower(host) != host && strings.Contains(rule.Pattern, "/"):
			c.Refuse(at, fmt.Sprintf("%q has upper case in its first part", rule.Pattern), "write it in lower case, as registries are compared")
		case isOtherHub(rule.Pattern):
			c.Refuse(at, fmt.Sprintf("%q matches nothing here", rule.Pattern), "Docker Hub is docker.io, by each of its names: write docker.io/")
		case twice:
			c.Refuse(at, fmt.Sprintf("%q stands in %s already", rule.Pattern, source.Index(path, earlier)),
				"remove one: which of two equal patterns wins is nowhere written down")
		}
		first[rule.Pattern] = i
		list = append(list, pattern(rule.Pattern))
	}
	return list
}

// isOtherHub reports whether the registry of a pattern is Docker Hub by a name that references never have
// here. Connaisseur compares the name that the reference is written with, and index.docker.io for docker.io.
func isOtherHub(text string) bool {
	host, _, ok := strings.Cut(text, "/")
	if !ok || !strings.Contains(host, "docker") && !strings.Contains(host, "registry") {
		return false
	}
	fits := regexp.MustCompile(strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(regexp.QuoteMeta(host)) + "$").MatchString
	return !fits("index.docker.io") && slices.ContainsFunc(image.HubNames(), fits)
}

// takes is the pattern as a test of names as they are written.
func (p pattern) takes() images.Pattern {
	return images.Pattern(contained(string(p)))
}

// contained writes a pattern of * and ? as an expression that is found in a text
// if the pattern, with * at both ends, fits the text.
func contained(glob string) string {
	text := strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(regexp.QuoteMeta(glob))
	return strings.TrimSuffix(strings.TrimPrefix(strings.ReplaceAll(text, ".*.*", ".*"), ".*"), ".*")
}

// total reports whether the pattern fits every name, which has a slash, and a colon
// after it.
func (p pattern) total() bool {
	rest := strings.ReplaceAll(string(p), "*", "")
	return rest == "" || rest == "/" || rest == ":" || rest == "/:"
}

// beats tests whether p is more specific than the other for a name that both fit: it has
// more parts between slashes; or else, from left to right, a longer beginning in
// common with the name's part; or else, from left to right, a longer part. How much
// a part has in common depends on the name, but which of two has more does not need
// counting: they part where they first differ, and the name follows one of them
// there, or neither.
func (p pattern) beats(other pattern) images.Test {
	ps, os := strings.Split(string(p), "/"), strings.Split(string(other), "/")
	if len(ps) != len(os) {
		if len(ps) > len(os) {
			return images.All{}
		}
		return images.Some{}
	}
	var ways images.Some
	var kept images.All // the other has not won at a part further left
	for i := range ps {
		d := commonPrefix(ps[i], os[i])
		if wins, can := follows(i, ps[i], d); can {
			ways = append(ways, append(images.All{wins}, kept...))
		}
		if wins, can := follows(i, os[i], d); can {
			kept = append(kept[:len(kept):len(kept)], images.Not{Test: wins})
		}
	}
	for i := range ps {
		if len(ps[i]) != len(os[i]) {
			if len(ps[i]) > len(os[i]) {
				ways = append(ways, kept)
			}
			break
		}
	}
	for _, way := range ways {
		if len(way.(images.All)) == 0 {
			return images.All{}
		}
	}
	return ways
}

// follows tests whether the i-th part of a name begins as the pattern's part does,
// to one character beyond d; false if no name's can.
func follows(i int, part string, d int) (images.Pattern, bool) {
	if d >= len(part) || strings.ContainsAny(part[:d+1], "*?") {
		return "", false
	}
	return images.Pattern("^" + strings.Repeat("[^/]*/", i) + regexp.QuoteMeta(part[:d+1])), true
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// selection is the images of a pattern without those of more specific ones. Where two are
// equally specific for an image, both keep it, and so both must allow.
func (list patterns) selection(i int) images.Selection {
	s := images.Selection{Spelling: images.AsWritten, Takes: list[i].takes()}
	for j, q := range list {
		if j == i {
			continue
		}
		switch beats := q.beats(list[i]).(type) {
		case images.Some:
			if len(beats) > 0 {
				s.Before = append(s.Before, images.All{q.takes(), beats})
			}
		case images.All:
			s.Before = append(s.Before, q.takes())
		}
	}
	return s
}

// unmatched selects the images that no pattern matches.
func (list patterns) unmatched() images.Selection {
	var taken []images.Test
	for _, p := range list {
		taken = append(taken, p.takes())
	}
	return images.Others(images.AsWritten, taken)
}
