package rulecontext

import (
	"errors"
	"fmt"
	"strings"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// imagesFrom returns the images variable. It holds every image of the object: an unreadable one
// makes it unknown. If two images have one key, a projection reads both, and an expression that
// names the key fails.
func imagesFrom(find func() ([]policy.Image, error)) *variable.Deferred {
	var found []policy.Image
	return variable.DeferPartial(func() (any, error) {
		if find == nil {
			return nil, unfound(errors.New("the images of the object are not known"))
		}
		var err error
		found, err = find()
		if err != nil {
			return nil, unfound(fmt.Errorf("the images: %w", err))
		}
		return imagesOf(found), nil
	}, func(_ any, path []string) error {
		if len(path) < 2 {
			return nil
		}
		for _, key := range keysOf(found) {
			if key.shared && key.group == path[0] && key.written == path[1] {
				return unfound(fmt.Errorf("images.%s.%s: several images have this key", path[0], path[1]))
			}
		}
		return nil
	})
}

// imageKey is where an image is in the images variable.
type imageKey struct {
	group, written string
	// name is as written, or with the image's place where others have the same.
	name   string
	shared bool
}

func keysOf(images []policy.Image) []imageKey {
	keys, times := make([]imageKey, len(images)), make(map[[2]string]int, len(images))
	for n, i := range images {
		group, name := groupAndName(i)
		keys[n] = imageKey{group: group, written: name, name: name}
		times[[2]string{group, name}]++
	}
	for n := range keys {
		if key := &keys[n]; times[[2]string{key.group, key.written}] > 1 {
			key.shared, key.name = true, key.written+" "+images[n].Pointer
		}
	}
	return keys
}

// imagesOf builds Kyverno's images variable: group, name of the container, and the parts of the
// reference. For an image that a mirror serves they are those of its source, and the parts of the
// text in the object are under copy.
func imagesOf(images []policy.Image) map[string]any {
	groups := map[string]any{}
	for n, key := range keysOf(images) {
		i, group, name := images[n], key.group, key.name
		members, ok := groups[group].(map[string]any)
		if !ok {
			members = map[string]any{}
			groups[group] = members
		}
		one := partsOf(i.Ref)
		one["jsonPointer"] = i.Pointer
		if !i.Copy.IsZero() {
			one["copy"] = partsOf(i.Copy)
		}
		members[name] = one
	}
	return groups
}

func partsOf(ref image.Ref) map[string]any {
	path := ref.Repository().Path()
	base := ref.Registry() + "/" + path
	one := map[string]any{
		"registry": ref.Registry(), "path": path, "name": path[strings.LastIndexByte(path, '/')+1:],
		"reference": base + ":" + ref.Tag(), "referenceWithTag": base + ":" + ref.Tag(),
	}
	if tag := ref.Tag(); tag != "" {
		one["tag"] = tag
	}
	if digest := ref.Digest(); !digest.IsZero() {
		one["digest"], one["reference"] = digest.String(), base+"@"+digest.String()
	}
	return one
}

func groupAndName(i policy.Image) (group, name string) {
	switch i.Role {
	case "container":
		return "containers", i.Container
	case "init":
		return "initContainers", i.Container
	case "ephemeral":
		return "ephemeralContainers", i.Container
	case "volume":
		return "volumes", i.Container
	}
	if extractor, key, ok := strings.Cut(i.Container, "/"); ok {
		return extractor, key
	}
	return i.Container, i.Pointer
}
