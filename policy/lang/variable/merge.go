package variable

import (
	"errors"
	"maps"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
)

// Merge returns the value of an entry with the members of the former entry of the same name, at
// any depth, that it does not have. Kyverno merges the objects of all entries except variables,
// which replace the former value. An absent former value adds nothing.
func Merge(former, value any) (any, error) {
	if deferred, is := former.(*Deferred); is {
		found, err := deferred.Value()
		if _, absent := errors.AsType[*jmespath.UndefinedError](err); absent {
			return value, nil
		} else if err != nil {
			return nil, err
		}
		former = found
	}
	return merged(former, value), nil
}

// merged returns a new object where both values are objects, and the later value otherwise.
func merged(former, later any) any {
	below, isObject := former.(map[string]any)
	above, isAlso := later.(map[string]any)
	if !isObject || !isAlso {
		return later
	}
	both := maps.Clone(below)
	for name, value := range above {
		both[name] = merged(both[name], value)
	}
	return both
}
