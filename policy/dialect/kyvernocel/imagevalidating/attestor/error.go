package attestor

import (
	"fmt"

	"github.com/quaymaster/quaymaster/policy/internal/field"
)

// FieldError is a fault of a document with its path.
type FieldError = field.Error

// one requires exactly one of several alternative fields.
func one(path, names string, ways ...bool) error {
	said := 0
	for _, is := range ways {
		if is {
			said++
		}
	}
	if said != 1 {
		return field.Fail(path, "want one of %s, found %d", names, said)
	}
	return nil
}

func tooLong(found, most int) error { return fmt.Errorf("%d bytes are more than %d", found, most) }
