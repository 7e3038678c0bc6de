package imagevalidating

import (
	"context"
	"errors"
	"fmt"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// otherData is image data that the gate does not read.
type otherData struct {
	data map[string]any
	err  error
}

// otherData reads an image that spec.matchImageReferences exclude, or of no object, once for all
// evaluations. It uses the policy's registry credentials.
func (h *imageEvaluation) otherData(ctx context.Context, text string) (map[string]any, error) {
	if known, ok := h.others[text]; ok {
		return known.data, known.err
	}
	var found otherData
	switch images := h.rule.compiler.options.Images; {
	case images == nil:
		found.err = errors.New("no registry can be asked about an image that the policy does not verify")
	case len(h.others) >= maxOthers:
		found.err = &image.Error{Kind: image.Bound, Op: "read metadata", On: kyvernocel.Shorten(text),
			Err: fmt.Errorf("more than %d images that the policy does not verify", maxOthers)}
	default:
		found.data, found.err = images.ImageData(ctx, text, h.rule.credentials)
	}
	if found.err != nil {
		found.err = &cel.UnknownError{Gaps: []error{unproved{found.err}}}
	}
	if len(h.others) < maxOthers {
		h.others[text] = found
	}
	return found.data, found.err
}
