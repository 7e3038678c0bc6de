package compare

import (
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/report"
)

// How two verdicts were found to be about the same.
const (
	byUID      = "uid"
	byName     = "name"
	byWorkload = "workload"
)

// index finds what one side said of an object.
type index struct {
	uid, name, workload map[string][]*said
}

// indexed sorts verdicts by their objects. A verdict that was said about a workload for all
// its pods stands by that name.
func (c *Collector) indexed(all []*said) *index {
	x := &index{uid: map[string][]*said{}, name: map[string][]*said{}, workload: map[string][]*said{}}
	for _, s := range all {
		o := s.object
		if o.UID != "" {
			x.uid[identity(o)] = append(x.uid[identity(o)], s)
		}
		if isNamed(o) {
			key := nameOf(o.Kind, o.Namespace, o.Name)
			x.name[key] = append(x.name[key], s)
		}
		for _, place := range c.places(o) {
			if len(x.workload[place]) < maxSiblings {
				x.workload[place] = append(x.workload[place], s)
			}
		}
	}
	return x
}

func isNamed(o report.Resource) bool { return o.Name != "" && !strings.HasSuffix(o.Name, "*") }

// of returns what was said of an object, and by what it was found: by its UID, its name, or
// by that of what made it.
func (x *index) of(o report.Resource, places []string) ([]*said, string) {
	if found := x.uid[identity(o)]; o.UID != "" && len(found) > 0 {
		return found, byUID
	}
	if isNamed(o) {
		found := slices.DeleteFunc(slices.Clone(x.name[nameOf(o.Kind, o.Namespace, o.Name)]), func(s *said) bool {
			return o.UID != "" && s.object.UID != "" // another object of that name
		})
		if len(found) > 0 {
			return found, byName
		}
	}
	for _, place := range places { // from the nearest
		if found := slices.Concat(x.name[place], x.workload[place]); len(found) > 0 {
			return found, byWorkload
		}
	}
	if found := x.workload[nameOf(o.Kind, o.Namespace, o.Name)]; len(found) > 0 {
		return found, byWorkload
	}
	return nil, ""
}

// imageName is what an image's reference says.
type imageName struct {
	repository  image.Repository
	tag, digest string
}

func nameOfImage(written string) (imageName, bool) {
	ref, err := image.Parse(written)
	if err != nil {
		return imageName{}, false
	}
	return imageName{ref.Repository(), ref.Tag(), ref.Digest().String()}, true
}

// isSame reports whether two names may mean one image: whoever names a digest means no
// other.
func (n imageName) isSame(other imageName) bool {
	switch {
	case n.repository != other.repository:
		return false
	case n.digest != "" && other.digest != "":
		return n.digest == other.digest
	case n.tag != "" && other.tag != "":
		return n.tag == other.tag
	}
	return true
}

// images remembers the names that were read.
type images map[string]*imageName

func (m images) of(written, digest string) *imageName {
	key := written + "\x00" + digest
	if known, ok := m[key]; ok {
		return known
	}
	var made *imageName
	if n, ok := nameOfImage(written); ok {
		if n.digest == "" {
			n.digest = digest
		}
		made = &n
	}
	m[key] = made
	return made
}

// onlyImage is the image that a message names, as it is written there; empty where it names
// none, or several.
func onlyImage(message string) string {
	only := ""
	for _, word := range mentions(message) {
		if only != "" && word != only {
			return ""
		}
		only = word
	}
	return only
}

// mentioned are the images that a message names.
func mentioned(message string) []imageName {
	var names []imageName
	for _, word := range mentions(message) {
		if n, ok := nameOfImage(word); ok {
			names = append(names, n)
		}
	}
	return names
}

// mentions are the words of a message that can be read as an image with a registry and a
// tag or a digest: no URL, and no path.
func mentions(message string) []string {
	var words []string
	fields := strings.FieldsFunc(message, func(c rune) bool { return strings.ContainsRune(" \t\n\r\"'`,;()[]{}<>=", c) })
	for _, word := range fields[:min(len(fields), maxTokens)] {
		word = strings.Trim(word, ":.")
		if !strings.Contains(word, "/") || !strings.ContainsAny(word, ":@") || strings.Contains(word, "://") {
			continue
		}
		if _, ok := nameOfImage(word); ok {
			words = append(words, word)
		}
	}
	return words
}

// ofPolicy, ofRule and ofImage are how much a verdict is about another.
const (
	ofPolicy = 4
	ofRule   = 2 * ofPolicy
	ofImage  = 2
)

// speaks says how much one of their verdicts is about one of ours: less than nothing means
// not at all.
func speaks(theirs *said, named []imageName, ours *said, name *imageName) int {
	score := 0
	if theirs.policy.name != "" {
		if ours.policy.name == "" {
			return -1
		}
		if !theirs.policy.isSame(ours.policy) || !isSameRule(theirs, ours) {
			return -1
		}
		score = ofPolicy
		if theirs.rule != "" {
			score = ofRule
		}
	}
	if len(named) == 0 || name == nil {
		return score
	}
	if slices.ContainsFunc(named, name.isSame) {
		return score + ofImage
	}
	return -1
}
