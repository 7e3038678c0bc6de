package cel

import (
	"fmt"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/quaymaster/quaymaster/policy/lang/cel/library"
)

// Texts reads a list of strings. Anything else is an error.
func Texts(value ref.Val) ([]string, error) {
	list, ok := value.(traits.Lister)
	if !ok {
		return nil, fmt.Errorf("a value of type %s is no list", value.Type().TypeName())
	}
	var texts []string
	for it := list.Iterator(); it.HasNext() == types.True; {
		item := it.Next()
		text, ok := item.(types.String)
		if !ok {
			return nil, fmt.Errorf("the list has an item of type %s, and may have strings only", item.Type().TypeName())
		}
		texts = append(texts, string(text))
	}
	return texts, nil
}

// Native converts a value to decoded JSON, with int64 for ints. It refuses values that JSON
// cannot represent, that are nested deeper than 256 or larger than 4 MiB.
func Native(value ref.Val) (any, error) { return library.Native(value) }
