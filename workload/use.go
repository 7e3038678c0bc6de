package workload

import (
	"fmt"
	"strings"
)

// Role says what an object does with an image.
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
	// Image is the reference as it is written, or as an Extractor's Transform
	// made it.
	Image string
	// Container names it in the object: the container's or volume's name, or the
	// extractor's and the entry's.
	Container string
	// Pointer is where it is written (RFC 6901).
	Pointer string
	Role    Role
	// Text is what stands at Pointer; it differs from Image only after a
	// Transform.
	Text string
}

// podSpecs says where the kinds of Kubernetes keep their pod specification.
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

// anyPodSpecs are the places to try in any other kind: many custom resources
// embed a pod template.
var anyPodSpecs = [][]string{
	{"spec", "template", "spec"},
	{"spec", "jobTemplate", "spec", "template", "spec"},
	{"template", "spec"},
	{"spec"},
}

// Extract returns the images of an object at the standard places of a pod
// specification: containers, initContainers, ephemeralContainers, and volumes
// that are images. In a kind that is not Kubernetes' own, only what looks like a
// pod specification counts as one.
//
// A template may leave an image empty for somebody else to fill in; that is no
// use. In a Pod nobody fills it in, and it is an error.
func Extract(o Object) ([]Use, error) {
	if o.IsZero() {
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
		spec, at, err := descend(o.content, path)
		if err != nil || spec == nil {
			return nil, err
		}
		finder := specFinder{at: at, isStrict: true, isPod: known == "/Pod"}
		return finder.find(spec)
	}
	var uses []Use
	for _, path := range anyPodSpecs {
		spec, at, err := descend(o.content, path)
		if err != nil || spec == nil {
			continue // of that shape it is no pod specification
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

// descend follows names through objects; nil if there is nothing.
func descend(content map[string]any, path []string) (map[string]any, pointer, error) {
	var at pointer
	for _, name := range path {
		next, err := child(content, name)
		if err != nil {
			return nil, "", fmt.Errorf("%s/%w", at, err)
		}
		content, at = next, at.child(name)
	}
	return content, at, nil
}

// specFinder finds images in one pod specification.
type specFinder struct {
	at       pointer
	isStrict bool // a shape that is not as it must be is an error, else it is nothing
	isPod    bool
	uses     []Use
}

func (f *specFinder) find(spec map[string]any) ([]Use, error) {
	for _, list := range []struct {
		name string
		role Role
	}{
		{"containers", Container}, {"initContainers", Init}, {"ephemeralContainers", Ephemeral}, {"volumes", Volume},
	} {
		if err := f.list(spec[list.name], f.at.child(list.name), list.role); err != nil {
			return nil, err
		}
	}
	return f.uses, nil
}

func (f *specFinder) list(value any, at pointer, role Role) error {
	entries, ok := value.([]any)
	if !ok {
		return f.odd(value, at, "a list")
	}
	for i, value := range entries {
		entry, ok := value.(map[string]any)
		if !ok {
			if err := f.must(at.index(i), "an object", value); err != nil {
				return err
			}
			continue
		}
		if err := f.entry(entry, at.index(i), role); err != nil {
			return err
		}
	}
	return nil
}

// odd allows what is absent, and otherwise is must.
func (f *specFinder) odd(value any, at pointer, want string) error {
	if value == nil {
		return nil
	}
	return f.must(at, want, value)
}

func (f *specFinder) must(at pointer, want string, got any) error {
	if !f.isStrict {
		return nil
	}
	return fmt.Errorf("%s: want %s, got %s", at, want, typeName(got))
}

func (f *specFinder) entry(entry map[string]any, at pointer, role Role) error {
	name, _ := entry["name"].(string)
	member := "image"
	if role == Volume {
		source, ok := entry["image"].(map[string]any)
		if !ok { // a volume of another sort, whose member image is not ours
			return f.odd(entry["image"], at.child("image"), "an object")
		}
		entry, at, member = source, at.child("image"), "reference"
	}
	at = at.child(member)
	written, ok := entry[member].(string)
	switch {
	case !ok && entry[member] != nil:
		return f.must(at, "text", entry[member])
	case strings.TrimSpace(written) != "":
		f.uses = append(f.uses, Use{Image: written, Container: name, Pointer: string(at), Role: role, Text: written})
	case f.isPod:
		return fmt.Errorf("%s: %s %q has no image, and in a Pod nobody fills it in; name one", at, role, name)
	}
	return nil
}
