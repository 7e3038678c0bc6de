package compare

import (
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/report"
)

// The criteria by which two verdicts are matched.
const (
	byUID      = "uid"
	byName     = "name"
	byWorkload = "workload"
)

// index finds the verdicts of one side by object.
type index struct {
	uid, name, workload map[string][]*engineVerdict
}

// indexed indexes verdicts by their objects. A verdict on a workload for all its pods is indexed
// by the workload's name.
func (c *Collector) indexed(all []*engineVerdict) *index {
	x := &index{uid: map[string][]*engineVerdict{}, name: map[string][]*engineVerdict{}, workload: map[string][]*engineVerdict{}}
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

// of returns the verdicts on an object and the matching criterion: its UID, its name, or its
// controller's name.
func (x *index) of(o report.Resource, places []string) ([]*engineVerdict, string) {
	if found := x.uid[identity(o)]; o.UID != "" && len(found) > 0 {
		return found, byUID
	}
	if isNamed(o) {
		found := slices.DeleteFunc(slices.Clone(x.name[nameOf(o.Kind, o.Namespace, o.Name)]), func(s *engineVerdict) bool {
			return o.UID != "" && s.object.UID != "" // another object with that name
		})
		if len(found) > 0 {
			return found, byName
		}
	}
	for _, place := range places { // from the nearest controller
		if found := slices.Concat(x.name[place], x.workload[place]); len(found) > 0 {
			return found, byWorkload
		}
	}
	if found := x.workload[nameOf(o.Kind, o.Namespace, o.Name)]; len(found) > 0 {
		return found, byWorkload
	}
	return nil, ""
}

// imageName is a parsed image reference.
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

// isSame reports whether two names may refer to one image. Different digests never do.
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

// images caches parsed names.
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

// onlyImage is the image in a message, as written; empty where the message names none or several.
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

// mentioned are the images in a message.
func mentioned(message string) []imageName {
	var names []imageName
	for _, word := range mentions(message) {
		if n, ok := nameOfImage(word); ok {
			names = append(names, n)
		}
	}
	return names
}

// mentions are the words of a message that parse as an image with a registry and a tag or a
// digest, and not as a URL or a path.
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

// ofPolicy, ofRule and ofImage are the weights of a match.
const (
	ofPolicy = 4
	ofRule   = 2 * ofPolicy
	ofImage  = 2
)

// speaks returns how well a verdict of the other engine matches one of ours. A negative score is
// no match.
func speaks(theirs *engineVerdict, named []imageName, ours *engineVerdict, name *imageName) int {
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
