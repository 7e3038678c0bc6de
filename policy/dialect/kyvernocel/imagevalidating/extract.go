package imagevalidating

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/traits"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// categories are the lists of images that every policy has, of the standard places
// of a pod specification.
func categories() []string {
	return []string{"containers", "initContainers", "ephemeralContainers", "imageVolumes"}
}

// category returns the list of an image by its role; empty for one that an extractor
// found.
func category(i policy.Image) string {
	switch i.Role {
	case "container":
		return "containers"
	case "init":
		return "initContainers"
	case "ephemeral":
		return "ephemeralContainers"
	case "volume":
		return "imageVolumes"
	}
	if name, _, _ := strings.Cut(i.Container, "/"); slices.Contains(categories(), name) {
		return name // a standard place, read as one of several
	}
	return ""
}

// extractor is an entry of spec.images: an expression that names images.
type extractor struct {
	name    string
	program *cel.Program
	// places are the fields of the extracted images, if they can be derived; those of a pod
	// specification need not be listed.
	places []policy.Extractor
}

// images compiles spec.images.
func (b *builder) images(p *program) error {
	if len(b.spec.ImageExtractors) > maxEntries {
		return field.Fail("spec.images", "%d are more than %d", len(b.spec.ImageExtractors), maxEntries)
	}
	p.categories = categories()
	var errs []error
	for i, doc := range b.spec.ImageExtractors {
		path := "spec.images[" + strconv.Itoa(i) + "]"
		switch {
		case doc.Name == "":
			errs = append(errs, field.Fail(path+".name", "is empty"))
		case slices.Contains(p.categories, doc.Name):
			errs = append(errs, field.Fail(path+".name", "%q is the name of other images", doc.Name))
		}
		e := extractor{name: doc.Name}
		var err error
		e.program, err = p.scope.Compile(path+".expression", doc.Expression, celgo.ListType(celgo.StringType), celgo.DynType, celgo.ListType(celgo.DynType))
		if err == nil {
			e.places, err = placesOf(doc.Name, doc.Expression)
		}
		errs = append(errs, err)
		p.extractors, p.categories = append(p.extractors, e), append(p.categories, doc.Name)
	}
	return errors.Join(errs...)
}

// texts evaluates the expression: the references that it names, as they are written.
func (e *extractor) texts(ctx context.Context, activation *cel.Activation) ([]string, error) {
	value, err := e.program.Eval(ctx, activation)
	if err != nil {
		return nil, err
	}
	list, ok := value.(traits.Lister)
	if !ok {
		return nil, field.Fail(e.program.Path(), "yields %s, and no list of texts", value.Type().TypeName())
	}
	var texts []string
	for it := list.Iterator(); it.HasNext() == types.True; {
		text, ok := it.Next().(types.String)
		if !ok {
			return nil, field.Fail(e.program.Path(), "yields a list that holds more than texts")
		}
		if len(texts) == maxEntries {
			return nil, field.Fail(e.program.Path(), "names more than %d images", maxEntries)
		}
		texts = append(texts, string(text))
	}
	return texts, nil
}

// filed returns the categories of each image. An image that an expression names must be in a
// field that is searched for images: an image elsewhere could neither be verified nor pinned, and
// is an error.
func (p *program) filed(ctx context.Context, images []policy.Image, activation *cel.Activation) ([][]string, error) {
	all := make([][]string, len(images))
	for i, image := range images {
		if c := category(image); c != "" {
			all[i] = append(all[i], c)
		}
	}
	for n := range p.extractors {
		e := &p.extractors[n]
		texts, err := e.texts(ctx, activation)
		if err != nil {
			return nil, err
		}
		for _, text := range texts {
			found := false
			for i, image := range images {
				if image.Ref.Written() == text {
					found = true
					if !slices.Contains(all[i], e.name) {
						all[i] = append(all[i], e.name)
					}
				}
			}
			if !found && text != "" {
				return nil, field.Fail(e.program.Path(),
					"names the image %s, which stands at no place where images are looked for: name them by a path, as in object.spec.steps.map(s, s.image)", text)
			}
		}
	}
	return all, nil
}
