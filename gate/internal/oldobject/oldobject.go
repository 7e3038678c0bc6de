// Package oldobject reports which images an object had before an update: those are not verified
// again.
package oldobject

import (
	"path"

	"github.com/quaymaster/quaymaster/workload"
)

// Object is the old object of an update, with its images. The zero value has no images.
type Object struct {
	object workload.Object
	images map[location]bool
}

// location is where an object has an image, by name: a container that moved in its list is the same. One
// that became an init container is not, nor is one of another pod specification of a custom resource.
type location struct{ list, container, text string }

// locate returns the location of an image. Without a name, it is the place in the list.
func locate(use workload.Use) location {
	at := location{list: use.Pointer, container: use.Container, text: use.Text}
	if use.Container == "" {
		return at
	}
	at.list = path.Dir(path.Dir(use.Pointer))
	if use.Role == workload.Volume { // .../volumes/0/image/reference
		at.list = path.Dir(at.list)
	}
	return at
}

// Of reads an object's state before an update. The images of an object of another kind, or of one
// that cannot be read, do not count.
func Of(old, updated workload.Object) Object {
	if old.IsZero() || old.Group() != updated.Group() || old.Kind() != updated.Kind() {
		return Object{}
	}
	f := Object{object: old}
	uses, err := workload.Extract(old)
	if err != nil || len(uses) == 0 {
		return f
	}
	f.images = make(map[location]bool, len(uses))
	for _, use := range uses {
		f.images[locate(use)] = true
	}
	return f
}

// IsZero reports whether there is no old object of the same kind.
func (f Object) IsZero() bool { return f.object.IsZero() }

// Ran reports whether the object had the same text at the same location.
func (f Object) Ran(use workload.Use) bool {
	return f.images[locate(use)]
}

// At returns the values at the pointers of extractors, by pointer.
func (f Object) At(places []workload.Extractor) map[string]string {
	uses, err := workload.ExtractWith(f.object, places)
	if err != nil {
		return nil
	}
	texts := make(map[string]string, len(uses))
	for _, use := range uses {
		texts[use.Pointer] = use.Text
	}
	return texts
}
