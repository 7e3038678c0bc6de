package attestor

import (
	"fmt"

	"github.com/quaymaster/quaymaster/policy/internal/field"
)

// FieldError says what is wrong with a document, and where in it.
type FieldError = field.Error

// one wants exactly one of several ways to say a thing.
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
