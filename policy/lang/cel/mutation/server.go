package mutation

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/cel-go/common/types/ref"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/policy/lang/cel/patchtype"
)

// PatchAsServer applies operations as the API server does, with the messages of its library, which
// replaces and copies values that are not there. The bounds are those of Patch, and 1,000 operations for
// a patch that Patch refuses.
func PatchAsServer(made ref.Val, about Target) (map[string]any, error) {
	after, refused := Patch(made, about)
	if _, exceeded := errors.AsType[*limit.ExceededError](refused); refused == nil || exceeded {
		return after, refused
	}
	operations, err := patchtype.Operations(made, maxSteps)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(about.Object)
	if err != nil {
		return nil, fmt.Errorf("JSON Patch: %w", err)
	}
	most := len(text) + maxWritten
	for i := range operations {
		text, err = step(&operations[i], text)
		switch {
		case errors.Is(err, jsonpatch.ErrTestFailed):
			return about.Object, nil
		case err != nil:
			return nil, fmt.Errorf("JSON Patch: %w", err)
		case len(text) > most: // a step at most doubles it
			return nil, &limit.ExceededError{What: "the patch's output", Most: maxWritten}
		}
	}
	var changed map[string]any
	if err := json.Unmarshal(text, &changed); err != nil {
		return nil, fmt.Errorf("JSON Patch: %w", err)
	}
	return changed, nil
}

// step applies one operation to the text of an object.
func step(o *patchtype.Operation, object []byte) ([]byte, error) {
	written := map[string]any{"op": o.Op, "path": o.Path}
	if o.From != "" {
		written["from"] = o.From
	}
	if o.HasValue {
		written["value"] = o.Value
	}
	text, err := json.Marshal([]any{written})
	if err != nil {
		return nil, err
	}
	patch, err := jsonpatch.DecodePatch(text)
	if err != nil {
		return nil, err
	}
	return patch.Apply(object)
}
