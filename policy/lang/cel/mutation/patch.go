package mutation

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/types/ref"

	"github.com/quaymaster/quaymaster/internal/integer"
	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/policy/lang/cel/patchtype"
)

var (
	errMissing = errors.New("there is nothing at the place")
	errTest    = errors.New("the test fails")
)

// Patch applies the operations of an expression, a list of JSONPatch{...}. If a test fails, the object
// stays unchanged. At most 10,000 operations and 3 MiB are written.
func Patch(made ref.Val, about Target) (map[string]any, error) {
	operations, err := patchtype.Operations(made, maxOperations)
	if err != nil {
		return nil, err
	}
	var object any = about.Object
	p := patcher{left: maxWritten, own: map[uintptr]map[string]any{}}
	for i := range operations {
		o := &operations[i]
		object, err = p.carryOut(o, object)
		if errors.Is(err, errTest) {
			return about.Object, nil
		}
		if err != nil {
			return nil, fmt.Errorf("the operation %d, %s %s: %w", i, o.Op, o.Path, err)
		}
	}
	changed, _ := object.(map[string]any)
	return changed, nil
}

// patcher applies the operations of one patch.
type patcher struct {
	left int
	own  map[uintptr]map[string]any // the maps that the patch made, by their addresses
}

// carryOut applies an operation to an object.
func (p *patcher) carryOut(o *patchtype.Operation, object any) (any, error) {
	path, err := pointer(o.Path)
	if err != nil {
		return nil, err
	}
	switch o.Op {
	case "add", "replace", "test":
		if !o.HasValue {
			return nil, errors.New("it has no value")
		}
		value, err := plain(o.Value)
		if err != nil {
			return nil, err
		}
		if o.Op == "test" {
			return object, test(object, path, value)
		}
		if err := charge(value, &p.left, 0); err != nil {
			return nil, err
		}
		if o.Op == "replace" {
			return p.edit(object, path, replaced(value))
		}
		return p.edit(object, path, added(value))
	case "remove":
		return p.edit(object, path, removed)
	case "move", "copy":
		from, err := pointer(o.From)
		if err != nil {
			return nil, fmt.Errorf("from: %w", err)
		}
		value, err := at(object, from)
		if err != nil {
			return nil, fmt.Errorf("from %s: %w", o.From, err)
		}
		if err := integer.Exact(value); err != nil {
			return nil, fmt.Errorf("from %s: %w", o.From, err)
		}
		if o.Op == "copy" {
			if err := charge(value, &p.left, 0); err != nil {
				return nil, err
			}
			clear(p.own) // those in the value are at two places now
		} else {
			object, err = p.edit(object, from, removed)
			if err != nil {
				return nil, fmt.Errorf("from %s: %w", o.From, err)
			}
		}
		return p.edit(object, path, added(value))
	}
	return nil, fmt.Errorf("%q is no operation: want add, remove, replace, move, copy or test", o.Op)
}

// pointer reads a JSON pointer (RFC 6901) to less than the whole object.
func pointer(text string) ([]string, error) {
	if !strings.HasPrefix(text, "/") {
		return nil, fmt.Errorf("%q is no JSON pointer to a field: it begins with /", text)
	}
	tokens := strings.Split(text[1:], "/")
	if len(tokens) > maxDepth {
		return nil, &limit.ExceededError{What: "the parts of a pointer", Most: maxDepth}
	}
	for i, token := range tokens {
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
	}
	return tokens, nil
}

// at returns the value at a place.
func at(value any, path []string) (any, error) {
	for _, token := range path {
		switch v := value.(type) {
		case map[string]any:
			member, ok := v[token]
			if !ok {
				return nil, errMissing
			}
			value = member
		case []any:
			i, err := index(token, len(v)-1)
			if err != nil {
				return nil, err
			}
			value = v[i]
		default:
			return nil, errMissing
		}
	}
	return value, nil
}

// index reads the index of an element, at most the last one.
func index(token string, last int) (int, error) {
	i, err := strconv.Atoi(token)
	if err != nil || i < 0 || strconv.Itoa(i) != token {
		return 0, fmt.Errorf("%q is no index of a list", token)
	}
	if i > last {
		return 0, errMissing
	}
	return i, nil
}

// test compares. A missing value is null, if its parent exists.
func test(object any, path []string, want any) error {
	if _, err := at(object, path[:len(path)-1]); err != nil {
		return err
	}
	found, err := at(object, path)
	if err != nil && !errors.Is(err, errMissing) {
		return err
	}
	if !reflect.DeepEqual(found, want) {
		return errTest
	}
	return integer.Exact(found)
}

// change returns the changed form of the map or list that holds a place. It may modify that
// holder.
type change func(holder any, token string) (any, error)

// edit applies a change at a place, on copies of the parents: one of each map for the patch.
func (p *patcher) edit(value any, path []string, does change) (any, error) {
	var holder any
	switch v := value.(type) {
	case map[string]any:
		holder = p.mine(v)
	case []any:
		holder = slices.Clone(v)
	default:
		return nil, errMissing
	}
	if len(path) == 1 {
		return does(holder, path[0])
	}
	member, err := at(value, path[:1])
	if err != nil {
		return nil, err
	}
	member, err = p.edit(member, path[1:], does)
	if err != nil {
		return nil, err
	}
	return replaced(member)(holder, path[0])
}

// mine returns a map that the patch may modify.
func (p *patcher) mine(of map[string]any) map[string]any {
	if made, ok := p.own[reflect.ValueOf(of).Pointer()]; ok {
		return made
	}
	made := maps.Clone(of)
	p.own[reflect.ValueOf(made).Pointer()] = made
	return made
}

func added(value any) change {
	return func(holder any, token string) (any, error) {
		switch h := holder.(type) {
		case map[string]any:
			h[token] = value
			return h, nil
		case []any:
			if token == "-" {
				return append(h, value), nil
			}
			i, err := index(token, len(h))
			if err != nil {
				return nil, err
			}
			return slices.Insert(h, i, value), nil
		}
		return nil, errMissing
	}
}

func replaced(value any) change {
	return func(holder any, token string) (any, error) {
		switch h := holder.(type) {
		case map[string]any:
			if _, ok := h[token]; !ok {
				return nil, errMissing
			}
			h[token] = value
			return h, nil
		case []any:
			i, err := index(token, len(h)-1)
			if err != nil {
				return nil, err
			}
			h[i] = value
			return h, nil
		}
		return nil, errMissing
	}
}

func removed(holder any, token string) (any, error) {
	switch h := holder.(type) {
	case map[string]any:
		if _, ok := h[token]; !ok {
			return nil, errMissing
		}
		delete(h, token)
		return h, nil
	case []any:
		i, err := index(token, len(h)-1)
		if err != nil {
			return nil, err
		}
		return slices.Delete(h, i, i+1), nil
	}
	return nil, errMissing
}

// charge subtracts the cost of a value from the remaining budget.
func charge(value any, left *int, depth int) error {
	if depth > maxDepth {
		return &limit.ExceededError{What: "the depth of the patch's output", Most: maxDepth}
	}
	text, _ := value.(string)
	*left -= valueCost + len(text)
	if *left < 0 {
		return &limit.ExceededError{What: "the patch's output", Most: maxWritten}
	}
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			if err := charge(item, left, depth+1); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, item := range v {
			*left -= len(key)
			if err := charge(item, left, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// plain converts an expression's value for objects: float64 for numbers, base64 for bytes. The
// value is its own, and is changed. An integer that would be written as another one is an error.
func plain(value any) (any, error) {
	switch v := value.(type) {
	case int64:
		return written(float64(v), strconv.FormatInt(v, 10))
	case uint64:
		return written(float64(v), strconv.FormatUint(v, 10))
	case []byte:
		return base64.StdEncoding.EncodeToString(v), nil
	case []any:
		for i := range v {
			item, err := plain(v[i])
			if err != nil {
				return nil, err
			}
			v[i] = item
		}
	case map[string]any:
		for key := range v {
			member, err := plain(v[key])
			if err != nil {
				return nil, err
			}
			v[key] = member
		}
	}
	return value, nil
}

func written(number float64, digits string) (any, error) {
	if strconv.FormatFloat(number, 'f', -1, 64) != digits {
		return nil, fmt.Errorf("the integer %s is too large to be written exactly", digits)
	}
	return number, nil
}
