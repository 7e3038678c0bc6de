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
		if err, failed := item.(*types.Err); failed {
			return nil, err
		}
		if !ok {
			return nil, fmt.Errorf("an item is of type %s, and only strings are allowed", item.Type().TypeName())
		}
		texts = append(texts, string(text))
	}
	return texts, nil
}

// textMap reads an argument that is a map of strings; without one it returns nil. The library
// checks the types of one entry alone.
func textMap(arguments []ref.Val) (map[string]string, error) {
	if len(arguments) == 0 {
		return nil, nil
	}
	of, texts := arguments[0].(traits.Mapper), map[string]string{}
	for it := of.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		pair, err := Texts(types.NewRefValList(types.DefaultTypeAdapter, []ref.Val{key, of.Get(key)}))
		if err != nil {
			return nil, err
		}
		texts[pair[0]] = pair[1]
	}
	return texts, nil
}

// Native converts a value to decoded JSON, with int64 for ints. It refuses values that JSON
// cannot represent, that are nested deeper than 256 or larger than 4 MiB.
func Native(value ref.Val) (any, error) { return library.Native(value) }
