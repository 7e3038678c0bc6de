package workload

import (
	"fmt"
	"strconv"
	"strings"
)

// Role is the purpose of an image in an object.
type Role string

// The roles of images.
const (
	Container Role = "container"
	Init      Role = "init"
	Ephemeral Role = "ephemeral"
	Volume    Role = "volume" // mounted, not run
	Custom    Role = "custom" // found by an Extractor
)

// Use is one image of an object.
type Use struct {
	// Image is the reference as written, or the result of an Extractor's Transform.
	Image string
	// Container names it in the object: the container's or volume's name, or the extractor's and
	// the entry's.
	Container string
	// Pointer is its location in the object (RFC 6901).
	Pointer string
	Role    Role
	// Text is the value at Pointer; it differs from Image only after a Transform.
	Text string
}

// podSpecs maps Kubernetes kinds to the paths of their pod specifications.
var podSpecs = map[string][]string{
	"/Pod":                   {"spec"},
	"/PodTemplate":           {"template", "spec"},
	"/ReplicationController": {"spec", "template", "spec"},
	"apps/Deployment":        {"spec", "template", "spec"},
	"apps/StatefulSet":       {"spec", "template", "spec"},
	"apps/DaemonSet":         {"spec", "template", "spec"},
	"apps/ReplicaSet":        {"spec", "template", "spec"},
	"batch/Job":              {"spec", "template", "spec"},
	"batch/CronJob":          {"spec", "jobTemplate", "spec", "template", "spec"},
}

// anyPodSpecs are the paths to try in any other kind: many custom resources embed a pod template.
var anyPodSpecs = [][]string{
	{"spec", "template", "spec"},
	{"spec", "jobTemplate", "spec", "template", "spec"},
	{"template", "spec"},
	{"spec"},
}

// Extract returns the images of an object at the standard paths of a pod specification:
// containers, initContainers, ephemeralContainers, and volumes that are images. In a kind that is
// not Kubernetes' own, only a value with the form of a pod specification counts as one.
//
// A template may have an empty image for a controller to fill in; it is ignored. In a Pod, an
// empty image is an error.
//
// A document has no standard paths: only an Extractor finds images in it.
func Extract(o Object) ([]Use, error) {
	if o.Kind() == "" {
		return nil, nil
	}
	uses, err := extract(o)
	if err != nil {
		return nil, fmt.Errorf("images of %s: %w", o, err)
	}
	return uses, nil
}

func extract(o Object) ([]Use, error) {
	known := o.Group() + "/" + o.Kind()
	if path, ok := podSpecs[known]; ok {
		spec, at, err := descend(o.Root(), path)
		if err != nil || !spec.IsObject() {
			return nil, err
		}
		finder := specFinder{at: at, isStrict: true, isPod: known == "/Pod"}
		return finder.find(spec)
	}
	var uses []Use
	for _, path := range anyPodSpecs {
		spec, at, err := descend(o.Root(), path)
		if err != nil || !spec.IsObject() {
			continue // not the form of a pod specification
		}
		finder := specFinder{at: at}
		found, err := finder.find(spec)
		if err != nil {
			return nil, err
		}
		uses = append(uses, found...)
	}
	return uses, nil
}

// descend follows names through objects; the result is empty if there is no such value.
func descend(value Value, path []string) (Value, pointer, error) {
	var at pointer
	for _, name := range path {
		next, err := value.child(name)
		if err != nil {
			return Value{}, "", fmt.Errorf("%s/%w", at, err)
		}
		value, at = next, at.child(name)
	}
	return value, at, nil
}

// specFinder finds images in one pod specification.
type specFinder struct {
	at       pointer
	isStrict bool // an unexpected form is an error; otherwise it is ignored
	isPod    bool
	uses     []Use
}

func (f *specFinder) find(spec Value) ([]Use, error) {
	for _, list := range [...]struct {
		name string
		role Role
	}{
		{"containers", Container}, {"initContainers", Init}, {"ephemeralContainers", Ephemeral}, {"volumes", Volume},
	} {
		entries := spec.Member(list.name)
		if entries.IsNull() {
			continue
		}
		if err := f.list(entries, f.at.child(list.name), list.role); err != nil {
			return nil, err
		}
	}
	return f.uses, nil
}

func (f *specFinder) list(entries Value, at pointer, role Role) error {
	if !entries.IsList() {
		return f.must(at, "a list", entries)
	}
	for i, entry := range entries.Elements() {
		if !entry.IsObject() {
			if err := f.must(at.index(i), "an object", entry); err != nil {
				return err
			}
			continue
		}
		if err := f.entry(entry, entryAt{at, i}, role); err != nil {
			return err
		}
	}
	return nil
}

// must refuses a value of an unexpected kind.
func (f *specFinder) must(at pointer, want string, got Value) error {
	if !f.isStrict {
		return nil
	}
	return fmt.Errorf("%s: want %s, got %s", at, want, kindName(got.Kind()))
}

// entryAt is the location of an entry in a list. It is formatted as a pointer only if needed.
type entryAt struct {
	list pointer
	i    int
}

func (e entryAt) child(name pointer) pointer {
	return e.list + "/" + pointer(strconv.Itoa(e.i)) + "/" + name
}

func (f *specFinder) entry(entry Value, at entryAt, role Role) error {
	name, written, path := entry.Member("name").Text(), entry.Member("image"), pointer("image")
	if role == Volume {
		switch {
		case written.IsNull(): // a volume of another kind
			return nil
		case !written.IsObject(): // another field with the name image
			return f.must(at.child(path), "an object", written)
		}
		written, path = written.Member("reference"), "image/reference"
	}
	text := written.Text()
	switch {
	case !written.IsText() && !written.IsNull():
		return f.must(at.child(path), "text", written)
	case strings.TrimSpace(text) != "":
		f.uses = append(f.uses, Use{Image: text, Container: name, Pointer: string(at.child(path)), Role: role, Text: text})
	case f.isPod:
		return fmt.Errorf("%s: %s %q has no image, and in a Pod no controller sets it; name one", at.child(path), role, name)
	}
	return nil
}
