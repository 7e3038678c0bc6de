package gate

import (
	"cmp"
	"errors"
	"slices"

	"github.com/quaymaster/quaymaster/gate/internal/oldobject"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/extract"
	"github.com/quaymaster/quaymaster/policy/hint"
	"github.com/quaymaster/quaymaster/workload"
)

// images are the images of one object.
type images struct {
	memory *memory
	object workload.Object
	old    oldobject.Object
	list   []policy.Image // that have a verdict
	uses   []workload.Use // as in the object
	// reasons and warnings name the images that cannot be read.
	reasons, warnings []policy.Reason
}

// standard returns the images of a pod specification. One that cannot be read
// denies the object, and the others are judged all the same.
func (f *images) standard() ([]policy.Image, error) {
	uses, err := extract.Uses(f.object, nil)
	if err != nil {
		return nil, err
	}
	images := make([]policy.Image, 0, len(uses))
	for _, use := range uses {
		found, err := f.imageOf(use, f.old.Ran(use))
		switch {
		case err == nil:
			images = append(images, found)
		case found.Unchanged:
			f.warnings = append(f.warnings, policy.Reason{
				Code: policy.Unchanged, Path: use.Pointer, Message: "the image cannot be read, and the object had it before the update: " + err.Error(),
			})
		default:
			f.malformed(use.Pointer, err)
		}
	}
	f.list = images[:len(images):len(images)]
	return images, nil
}

// find returns the images at a rule's extractors. Only the rule declares that these fields
// hold images, so a reference that cannot be parsed is the rule's error.
func (f *images) find(extractors []policy.Extractor) ([]policy.Image, error) {
	uses, err := extract.Uses(f.object, extractors)
	if err != nil {
		return nil, err
	}
	old := f.old.At(extract.Locations(extractors))
	exact := make(map[string]policy.Extractor, len(extractors))
	for _, e := range extractors {
		if e.Ambiguous || e.Fresh {
			exact[e.Path] = e
		}
	}
	var images []policy.Image
	for _, use := range uses {
		text, stood := old[use.Pointer]
		found, err := f.imageOf(use, stood && text == use.Text && !exact[use.Pointer].Fresh)
		found.Ambiguous = exact[use.Pointer].Ambiguous
		if err != nil && !found.Unchanged {
			return nil, extract.InvalidAt(use, err)
		}
		if err == nil {
			images = append(images, found)
		}
	}
	return images, nil
}

// imageOf reads a use and notes it for pinning.
func (f *images) imageOf(use workload.Use, unchanged bool) (policy.Image, error) {
	ref, err := f.memory.parse(use.Image)
	if err == nil {
		f.uses = append(f.uses, use)
	}
	found := extract.Image(use, ref)
	found.Unchanged = unchanged
	return found, err
}

// add adds an image to the verdicts, each location once.
func (f *images) add(found policy.Image) {
	if !slices.ContainsFunc(f.list, func(i policy.Image) bool { return i.Pointer == found.Pointer }) {
		f.list = append(f.list, found)
	}
}

// malformed notes, once for each place, that an image cannot be read.
func (f *images) malformed(pointer string, err error) {
	if pointer != "" && slices.ContainsFunc(f.reasons, func(r policy.Reason) bool { return r.Path == pointer }) {
		return
	}
	text, advice := image.SplitAdvice(err)
	code := policy.Malformed
	if errors.Is(err, extract.ErrTooMany) {
		code, advice = policy.TooMuch, hint.SmallerObject
	}
	f.reasons = append(f.reasons, policy.Reason{Code: code, Path: pointer, Message: text, Hint: cmp.Or(advice, hint.Of(code))})
}
