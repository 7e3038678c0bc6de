package sigstore

import (
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/reference"
)

// glob is a pattern for image references: `*` matches any run of characters without a
// slash, `**` any run.
type glob struct {
	// text is the pattern with its registry spelt as image.Ref spells it.
	text string
	re   *regexp.Regexp
	// named is the part before a digest in the pattern, which matches a name with @; nil where it has none.
	named *regexp.Regexp
	// open: the registry has a wildcard, so that it may match any of Docker Hub's names.
	open bool
}

const (
	dockerHub = "docker.io/"
	maxGlob   = 4 << 10 // bytes; its expression takes some hundred times as much memory
)

// parseGlob refuses patterns that can match no reference. policy-controller documents that
// two of the globs match images of Docker Hub alone.
func parseGlob(text, path string) (glob, error) {
	switch {
	case text == "":
		return glob{}, field.Fail(path, "is empty")
	case len(text) > maxGlob:
		return glob{}, field.Fail(path, "%d bytes are more than %d", len(text), maxGlob)
	case text == "*":
		text = dockerHub + "library/*"
	case text == "*/*":
		text = dockerHub + "*/*"
	}
	if i := strings.IndexFunc(text, notInGlob); i >= 0 {
		return glob{}, field.Fail(path, "%q: a glob has letters, digits and - _ : / * . @ alone, and no %q", text, text[i:i+1])
	}
	if why := reference.Unmatchable(text); why != "" {
		return glob{}, field.Fail(path, "%q can match no image reference: %s", text, why)
	}
	g := glob{text: reference.Normal(text)}
	first, _, _ := strings.Cut(g.text, "/")
	g.open = strings.Contains(first, "*")
	var errs [2]error
	g.re, errs[0] = compileGlob(g.text)
	if before, ok := beforeDigest(g.text); ok {
		g.named, errs[1] = compileGlob(before)
	}
	return g, field.Below(path, errors.Join(errs[:]...))
}

// beforeDigest returns the part of a glob before a digest, with its @ or a wildcard for it (**sha256:*).
func beforeDigest(text string) (string, bool) {
	end := cmp.Or(strings.IndexByte(text, '@')+1, strings.LastIndex(text, "*sha256:")+1)
	return text[:end], end > 0
}

func compileGlob(text string) (*regexp.Regexp, error) {
	quoted := strings.NewReplacer(`\*\*`, `.*`, `\*`, `[^/]*`).Replace(regexp.QuoteMeta(text))
	return regexp.Compile(`\A(?:` + quoted + `)\z`)
}

func notInGlob(r rune) bool {
	return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_:/*.@", r)
}

// concerns reports whether the glob matches an image. Where a reference has several
// spellings, one matching spelling suffices: the author of the reference must not choose
// whether it is verified.
func (g glob) concerns(ref image.Ref) bool {
	untagged := reference.Untagged(g.text)
	for _, base := range g.bases(ref) {
		tag, digest := ref.Tag(), ref.Digest()
		switch {
		case untagged && g.re.MatchString(base):
			return true
		// A glob for every tag matches an image that is named by digest alone, too: an empty tag
		// is one.
		case g.re.MatchString(base + ":" + tag):
			return true
		case digest.IsZero():
		case g.re.MatchString(base + "@" + digest.String()), g.re.MatchString(base + ":" + tag + "@" + digest.String()):
			return true
		}
	}
	return false
}

// hangsOnDigest reports whether a match depends on the digest of an image without one:
// policy-controller resolves tags before it compares.
func (g glob) hangsOnDigest(ref image.Ref) bool {
	return g.named != nil && ref.Digest().IsZero() && slices.ContainsFunc(g.bases(ref), func(base string) bool {
		return g.named.MatchString(base+"@") || g.named.MatchString(base+":"+ref.Tag()+"@")
	})
}

// bases are the spellings of registry and path: images of Docker Hub with and
// without the registry, official ones with and without library/, and all by each name that their
// registry has. A registry that a glob writes out in full has the first of them.
func (g glob) bases(ref image.Ref) []string {
	full := ref.Repository().String()
	others := ref.Repository().OtherSpellings()
	path, hub := strings.CutPrefix(full, dockerHub)
	if !hub {
		return append([]string{full}, others...)
	}
	paths := []string{path}
	if official, ok := strings.CutPrefix(path, "library/"); ok {
		paths = append(paths, official)
	}
	var list []string
	for _, p := range paths {
		list = append(list, dockerHub+p, p)
	}
	if g.open {
		list = append(list, others...)
	}
	return list
}
