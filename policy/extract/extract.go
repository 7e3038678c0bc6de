// Package extract finds the images of an object: those at the standard locations of pod
// specifications, or those at the extractors of a policy's rule.
package extract

import (
	"fmt"
	"sync"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/workload"
)

// Finder returns a finder of an object's images. The object is made at the first request. An
// image that cannot be read is an error, Unreadable: a rule that denies an image would pass
// without it.
func Finder(object func() (workload.Object, error), parse func(string) (image.Ref, error)) policy.Finder {
	object = sync.OnceValues(object)
	return func(extractors []policy.Extractor) ([]policy.Image, error) {
		within, err := object()
		if err != nil {
			return nil, err
		}
		uses, err := Uses(within, extractors)
		if err != nil {
			return nil, err
		}
		images := make([]policy.Image, 0, len(uses))
		for _, use := range uses {
			ref, err := parse(use.Image)
			if err != nil {
				return nil, InvalidAt(use, err)
			}
			images = append(images, Image(use, ref))
		}
		return images, nil
	}
}

// Uses returns the images at a rule's extractors, and without extractors those at the standard
// locations. An error is Unreadable.
func Uses(o workload.Object, extractors []policy.Extractor) (uses []workload.Use, err error) {
	if len(extractors) > 0 {
		uses, err = workload.ExtractWith(o, Locations(extractors))
	} else {
		uses, err = workload.Extract(o)
	}
	if err == nil && len(uses) > maxImages {
		err = fmt.Errorf("it names %d images, %w", len(uses), ErrTooMany)
	}
	if err != nil {
		return nil, Unreadable{err}
	}
	return uses, nil
}

// maxImages bounds the images of one object. Pods have a few dozen containers at most,
// and each image is compared with all others.
const maxImages = 500

// ErrTooMany means that an object names more images than are evaluated.
var ErrTooMany = fmt.Errorf("more than %d: make several objects of it", maxImages)

// Locations returns what a rule's extractors select in an object.
func Locations(extractors []policy.Extractor) []workload.Extractor {
	locations := make([]workload.Extractor, len(extractors))
	for i, e := range extractors {
		locations[i] = workload.Extractor{Name: e.Name, Path: e.Path, Value: e.Value, Key: e.Key, Transform: e.Transform}
	}
	return locations
}

// Image returns the image at a location for the evaluation of policies.
func Image(use workload.Use, ref image.Ref) policy.Image {
	return policy.Image{Container: use.Container, Role: string(use.Role), Pointer: use.Pointer, Ref: ref}
}

// Unreadable means that the images of an object cannot be read, which its author can cause.
type Unreadable struct{ error }

// Unwrap returns the cause.
func (u Unreadable) Unwrap() error { return u.error }

// InvalidAt returns the error for a text that is not an image reference.
func InvalidAt(use workload.Use, err error) Unreadable {
	return Unreadable{fmt.Errorf("%s: %w", use.Pointer, err)}
}
