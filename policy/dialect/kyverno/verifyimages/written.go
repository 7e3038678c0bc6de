package verifyimages

import (
	"errors"
	"fmt"

	"github.com/quaymaster/quaymaster/policy/internal/document"
	"github.com/quaymaster/quaymaster/policy/internal/field"
)

// emptyLists refuses attestors and conditions of an entry that are written and
// empty.
func emptyLists(raw any, path string) error {
	const nobody = "is empty, so that no signer would be accepted: name signers, or omit the field"
	var errs []error
	if document.WrittenEmpty(raw, "attestors") {
		errs = append(errs, field.Fail(path+".attestors", nobody))
	}
	entry, _ := raw.(map[string]any)
	attestations, _ := entry["attestations"].([]any)
	for i, one := range attestations {
		members, _ := one.(map[string]any)
		if conditions, ok := members["conditions"]; ok {
			errs = append(errs, document.EmptyConditions(conditions, fmt.Sprintf("%s.attestations[%d].conditions", path, i)))
		}
	}
	validate, _ := entry["validate"].(map[string]any)
	deny, _ := validate["deny"].(map[string]any)
	if conditions := deny["conditions"]; conditions != nil {
		errs = append(errs, document.EmptyConditions(conditions, path+".validate.deny.conditions"))
	}
	return errors.Join(errs...)
}
