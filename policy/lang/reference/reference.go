package reference

import (
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// Concerns reports whether one of the patterns matches an image. Where a reference has
// several spellings, one matching spelling suffices: the author of the reference must not
// choose whether it is verified.
func Concerns(patterns []string, ref image.Ref) bool {
	for _, base := range bases(ref, true) {
		for _, spelling := range spellings(base, ref) {
			if wildcard.Any(patterns, spelling) {
				return true
			}
		}
		// So does one that names the repository alone.
		if slices.ContainsFunc(patterns, func(p string) bool { return Untagged(p) && wildcard.Match(p, base) }) {
			return true
		}
		// A pattern for every tag (repo:*) matches an image that is named by digest alone, too.
		if ref.Tag() == "" && wildcard.Any(patterns, base+":") {
			return true
		}
	}
	return false
}

// Exempts reports whether one of the patterns exempts an image. A tag with a digest is
// ignored, so a pattern for tags exempts no image that has a digest.
func Exempts(patterns []string, ref image.Ref) bool {
	for _, base := range bases(ref, false) {
		if !ref.Digest().IsZero() {
			if wildcard.Any(patterns, base+"@"+ref.Digest().String()) {
				return true
			}
		} else if wildcard.Any(patterns, base+":"+ref.Tag()) {
			return true
		}
	}
	return false
}

// ExemptsTag reports whether one of the patterns exempts the tag of an image that has a digest as well.
// It exempts the image if the tag resolves to the digest.
func ExemptsTag(patterns []string, ref image.Ref) bool {
	if ref.Tag() == "" || ref.Digest().IsZero() {
		return false
	}
	return slices.ContainsFunc(bases(ref, false), func(base string) bool { return wildcard.Any(patterns, base+":"+ref.Tag()) })
}

// bases are the spellings of registry and path: Docker Hub's official images
// with and without library/. With all, they are also there without the registry, and by each name that
// their registry has.
func bases(ref image.Ref, all bool) []string {
	full := ref.Repository().String()
	list := []string{full}
	if all {
		list = append(list, ref.Repository().OtherSpellings()...)
	}
	path, hub := strings.CutPrefix(full, "docker.io/")
	if !hub {
		return list
	}
	official, isOfficial := strings.CutPrefix(path, "library/")
	if isOfficial {
		list = append(list, "docker.io/"+official)
	}
	if all {
		list = append(list, path)
		if isOfficial {
			list = append(list, official)
		}
	}
	return list
}

func spellings(base string, ref image.Ref) []string {
	var list []string
	if ref.Tag() != "" {
		list = append(list, base+":"+ref.Tag())
	}
	if digest := ref.Digest(); !digest.IsZero() {
		list = append(list, base+"@"+digest.String())
		if ref.Tag() != "" {
			list = append(list, base+":"+ref.Tag()+"@"+digest.String())
		}
	}
	return list
}

// Texts returns texts of which at least one contains each spelling of the
// reference that a pattern may fit, for an index to look in.
func Texts(ref image.Ref) []string {
	digest := ""
	if !ref.Digest().IsZero() {
		digest = "@" + ref.Digest().String()
	}
	var texts []string
	for _, base := range append(bases(ref, false), ref.Repository().OtherSpellings()...) {
		if ref.Tag() != "" || digest == "" {
			texts = append(texts, base+":"+ref.Tag()+digest)
		} else {
			texts = append(texts, base+":") // compared with repo:*
		}
		if digest != "" {
			texts = append(texts, base+digest)
		}
	}
	return texts
}
