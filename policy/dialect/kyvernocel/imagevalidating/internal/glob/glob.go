// Package glob reads the patterns of image references in an ImageValidatingPolicy and its exceptions
// (policies.kyverno.io, Kyverno 1.19): it converts globs to patterns of package reference.
package glob

import (
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/reference"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

const (
	// maxGlob bounds a glob, in bytes; a reference with a digest has at most some 500.
	maxGlob = 1 << 10
	// maxAlternatives bounds the expansions of the braces of one glob.
	maxAlternatives = 64
)

// Patterns returns the patterns, in the syntax of package reference, that are equivalent to a glob
// of matchImageReferences. In Kyverno's globs one star crosses slashes as two do; braces hold
// alternatives. Classes and escapes are refused: in image references a list of globs can express
// the same.
func Patterns(text, path string) ([]string, error) {
	if len(text) > maxGlob {
		return nil, field.Fail(path, "%d bytes are more than %d: write several entries", len(text), maxGlob)
	}
	if i := strings.IndexAny(text, `[]\`); i >= 0 {
		return nil, field.Fail(path, "%q: %q is not valid in an image reference: write a glob for each alternative", text, text[i:i+1])
	}
	alternatives, ok := expand(text)
	if !ok {
		return nil, field.Fail(path, "%q: its braces are unbalanced, or expand to more than %d globs", text, maxAlternatives)
	}
	var patterns []string
	for _, one := range alternatives {
		for strings.Contains(one, "**") {
			one = strings.ReplaceAll(one, "**", "*")
		}
		if one == "" {
			return nil, field.Fail(path, "%q: one of its alternatives is empty", text)
		}
		if why := reference.Unmatchable(one); why != "" {
			return nil, field.Fail(path, "%q can match no image reference: %s", text, why)
		}
		patterns = append(patterns, reference.Normal(one))
	}
	return patterns, nil
}

// expand writes out {a,b}, also one inside another.
func expand(text string) ([]string, bool) {
	opened := strings.IndexByte(text, '{')
	if opened < 0 {
		return []string{text}, !strings.Contains(text, "}")
	}
	depth, start := 0, opened+1
	var parts []string
	for i := opened; i < len(text); i++ {
		switch text[i] {
		case '{':
			depth++
		case ',':
			if depth == 1 {
				parts, start = append(parts, text[start:i]), i+1
			}
		case '}':
			depth--
			if depth > 0 {
				continue
			}
			var all []string
			for _, part := range append(parts, text[start:i]) {
				more, ok := expand(text[:opened] + part + text[i+1:])
				all = append(all, more...)
				if !ok || len(all) > maxAlternatives {
					return nil, false
				}
			}
			return all, true
		}
	}
	return nil, false
}

// Spellings are the equivalent texts of a reference, on which an expression of
// matchImageReferences is evaluated: its author must not evade verification by the spelling, or by an
// unusual name of the registry. Unusual ones of a usual name would select what an expression excludes.
func Spellings(ref image.Ref) []string {
	name, usual := ref.Repository().String(), ref.Repository().UsualName().String()
	list := []string{ref.Written(), ref.String(), usual + strings.TrimPrefix(ref.String(), name)}
	if tag := ref.Tag(); tag != "" {
		list = append(list, name+":"+tag, usual+":"+tag)
	}
	if short, ok := strings.CutPrefix(ref.String(), "docker.io/"); ok {
		list = append(list, short, "index.docker.io/"+short)
		if official, ok := strings.CutPrefix(short, "library/"); ok {
			list = append(list, official)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Exempting returns the pattern for an entry of an exception's images. One without
// a wildcard is a reference: without a tag it means latest.
func Exempting(text, path string) (string, error) {
	text = strings.TrimSpace(text)
	if !wildcard.Contains(text) {
		ref, err := image.Parse(text)
		if err != nil {
			return "", field.Fail(path, "%w", err)
		}
		if digest := ref.Digest(); !digest.IsZero() {
			return ref.Repository().String() + "@" + digest.String(), nil
		}
		return ref.Repository().String() + ":" + ref.Tag(), nil
	}
	patterns, err := Patterns(text, path)
	if err != nil {
		return "", err
	}
	if len(patterns) != 1 {
		return "", field.Fail(path, "%q: write an entry for each alternative", text)
	}
	pattern := patterns[0]
	host, _, below := strings.Cut(pattern, "/")
	switch {
	case reference.Untagged(pattern):
		return "", field.Fail(path, "%q can match no image reference, which have a tag or a digest: write %s:* to leave out its tags, or %s@* its digests",
			text, text, text)
	case !strings.HasPrefix(host, "*") && (!below || !strings.ContainsAny(host, "*.:") && host != "localhost"):
		return "", field.Fail(path, "%q can match no image reference, which begin with their registry: write docker.io/%s", text, text)
	}
	return pattern, nil
}
