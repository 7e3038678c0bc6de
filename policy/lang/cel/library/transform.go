package library

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

func transformFunctions() []cel.EnvOption {
	list := cel.ListType(cel.DynType)
	return function("list_of_object_to_map", []*cel.Type{list, list, cel.StringType, cel.StringType}, cel.MapType(cel.StringType, cel.DynType),
		cel.FunctionBinding(listObjToMap), "transform.listObjToMap", "listObjToMap")
}

// listObjToMap makes a map of two lists of objects: the keys are a field of the
// first's, the values one of the second's.
func listObjToMap(arguments ...ref.Val) ref.Val {
	keys, values := arguments[0].(traits.Lister), arguments[1].(traits.Lister)
	if keys.Size() != values.Size() {
		return types.NewErr("listObjToMap: the lists are of %v and %v items, and have to be equally long", keys.Size(), values.Size())
	}
	made := map[ref.Val]ref.Val{}
	value := values.Iterator()
	for key := keys.Iterator(); key.HasNext() == types.True; {
		name, _, err := fieldOf(key.Next(), arguments[2])
		if err != nil {
			return types.WrapErr(err)
		}
		if _, isText := name.(types.String); !isText {
			return types.NewErr("listObjToMap: an item has no text as its %v", arguments[2].Value())
		}
		item, found, err := fieldOf(value.Next(), arguments[3])
		if err != nil {
			return types.WrapErr(err)
		}
		if !found {
			item = types.NullValue
		}
		made[name] = item
	}
	return types.NewRefValMap(types.DefaultTypeAdapter, made)
}

func fieldOf(item, field ref.Val) (ref.Val, bool, error) {
	object, ok := item.(traits.Mapper)
	if !ok {
		return nil, false, fmt.Errorf("listObjToMap: an item is of type %s and no map", item.Type().TypeName())
	}
	value, found := object.Find(field)
	return value, found, nil
}
