// Package oldobject reports which images an object had before an update: those are not verified
// again.
package oldobject

import "github.com/quaymaster/quaymaster/workload"

// Object is the old object of an update, with its images. The zero value has no images.
type Object struct {
	object workload.Object
	images map[location]bool
}

// location is where a pod specification has an image, by name: a container that
// moved in its list is the same, one that became an init container is not.
type location struct {
	role            workload.Role
	container, text string
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
		f.images[location{use.Role, use.Container, use.Text}] = true
	}
	return f
}

// IsZero reports whether there is no old object of the same kind.
func (f Object) IsZero() bool { return f.object.IsZero() }

// Ran reports whether the object had the same text under the same name and role.
func (f Object) Ran(use workload.Use) bool {
	return f.images[location{use.Role, use.Container, use.Text}]
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
