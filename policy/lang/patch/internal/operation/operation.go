// Package operation applies operations of RFC 6902, and computes those between two
// objects.
package operation

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/internal/integer"
	"github.com/quaymaster/quaymaster/policy/lang/patch/internal/jsonvalue"
)

var (
	errMissing = errors.New("there is nothing here")

	// ErrWhole reports a pointer to the whole object.
	ErrWhole = errors.New("the whole object cannot be replaced: name a field")
	// ErrTestFailed is wrapped by the error about an operation `test` that fails.
	ErrTestFailed = errors.New("the test failed")
)

// Step is one operation that can be applied.
type Step struct {
	Op         string
	Path, From []string // as Tokens returns them
	Value      any
}

// Tokens reads a JSON pointer. That of a whole object is refused.
func Tokens(pointer string) ([]string, error) {
	if pointer == "" {
		return nil, ErrWhole
	}
	if pointer[0] != '/' {
		return nil, fmt.Errorf("%q is no JSON pointer: it starts with /", pointer)
	}
	parts := strings.Split(pointer[1:], "/")
	if len(parts) > jsonvalue.MaxDepth {
		return nil, fmt.Errorf("%d parts of a pointer: %w of %d", len(parts), jsonvalue.ErrTooLarge, jsonvalue.MaxDepth)
	}
	for i, part := range parts {
		if !strings.Contains(part, "~") {
			continue
		}
		if strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(part), "~") {
			return nil, fmt.Errorf("%q is no JSON pointer: ~ is written ~0, and / in a name ~1", pointer)
		}
		parts[i] = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
	}
	return parts, nil
}

// Pointer is the inverse of Tokens.
func Pointer(tokens []string) string {
	var out strings.Builder
	for _, token := range tokens {
		out.WriteByte('/')
		out.WriteString(jsonvalue.Escape(token))
	}
	return out.String()
}

// position reads the index of an element. The element after the last, and `-`, are
// allowed to those that add one. A negative index counts from the end, as in Kyverno: -1 is the
// last element, or for those that add one the position after it.
func position(token string, size int, adds bool) (int, error) {
	if token == "-" && adds {
		return size, nil
	}
	index, err := strconv.Atoi(token)
	if err != nil || strconv.Itoa(index) != token {
		return 0, fmt.Errorf("%q is no index of a list", token)
	}
	end := size
	if adds {
		end++
	}
	if index < 0 {
		index += end
	}
	if index < 0 || index >= end {
		return 0, fmt.Errorf("%w: the list has %d elements", errMissing, size)
	}
	return index, nil
}

// Run applies steps one after the other, as long as they may write, and returns the pointer
// of the one that fails. An object that they do not change comes back as the same map.
func Run(steps []Step, object map[string]any, left *jsonvalue.Budget) (result map[string]any, at string, err error) {
	var whole any = object
	for _, s := range steps {
		whole, err = s.apply(whole, left)
		if err != nil {
			return nil, Pointer(s.Path), fmt.Errorf("%s: %w", s.Op, err)
		}
	}
	if jsonvalue.Equal(object, whole) {
		return object, "", nil
	}
	return whole.(map[string]any), "", nil
}

func (s Step) apply(whole any, left *jsonvalue.Budget) (any, error) {
	switch s.Op {
	case "add":
		return s.add(whole, s.Value, left)
	case "remove":
		result, err := edit(whole, s.Path, change{what: "remove"})
		if errors.Is(err, errMissing) {
			return whole, nil
		}
		return result, err
	case "replace":
		if err := left.Charge(s.Value, len(s.Path)); err != nil {
			return nil, err
		}
		return edit(whole, s.Path, change{what: "replace", value: s.Value})
	case "move":
		return s.move(whole, left)
	case "copy":
		value, err := find(whole, s.From)
		if err != nil {
			return nil, fmt.Errorf("from %s: %w", Pointer(s.From), err)
		}
		return s.add(whole, value, left)
	}
	return whole, s.test(whole)
}

func (s Step) add(whole, value any, left *jsonvalue.Budget) (any, error) {
	if err := left.Charge(value, len(s.Path)); err != nil {
		return nil, err
	}
	return edit(whole, s.Path, change{what: "add", value: value})
}

func (s Step) move(whole any, left *jsonvalue.Budget) (any, error) {
	if len(s.Path) > len(s.From) && slices.Equal(s.Path[:len(s.From)], s.From) {
		return nil, fmt.Errorf("%s cannot be moved into itself", Pointer(s.From))
	}
	value, err := find(whole, s.From)
	if err != nil {
		return nil, fmt.Errorf("from %s: %w", Pointer(s.From), err)
	}
	whole, err = edit(whole, s.From, change{what: "remove"})
	if err != nil {
		return nil, err
	}
	return s.add(whole, value, left)
}

// test treats a missing value as null, as Kyverno does.
func (s Step) test(whole any) error {
	found, err := find(whole, s.Path)
	if err != nil && !errors.Is(err, errMissing) {
		return err
	}
	if !jsonvalue.Equal(found, s.Value) {
		return fmt.Errorf("%w: want %s, found %s", ErrTestFailed, jsonvalue.Show(s.Value), jsonvalue.Show(found))
	}
	return integer.Exact(found)
}

func find(value any, path []string) (any, error) {
	for _, token := range path {
		switch v := value.(type) {
		case map[string]any:
			item, ok := v[token]
			if !ok {
				return nil, errMissing
			}
			value = item
		case []any:
			index, err := position(token, len(v), false)
			if err != nil {
				return nil, err
			}
			value = v[index]
		case nil:
			return nil, errMissing
		default:
			return nil, fmt.Errorf("%s has no member %q", jsonvalue.KindOf(value), token)
		}
	}
	return value, nil
}

// change is the action at the end of a path.
type change struct {
	what  string // add, replace or remove
	value any
}

// makes reports whether parents that are missing are made.
func (c change) makes() bool { return c.what == "add" }

// object changes a member of a copy.
func (c change) object(parent map[string]any, key string) error {
	if _, ok := parent[key]; !ok && !c.makes() {
		return errMissing
	}
	if c.what == "remove" {
		delete(parent, key)
		return nil
	}
	parent[key] = c.value
	return nil
}

// list changes an element of a copy.
func (c change) list(parent []any, token string) ([]any, error) {
	index, err := position(token, len(parent), c.makes())
	if err != nil {
		return nil, err
	}
	switch c.what {
	case "add":
		return slices.Insert(parent, index, c.value), nil
	case "remove":
		return slices.Delete(parent, index, index+1), nil
	}
	parent[index] = c.value
	return parent, nil
}

// edit copies the containers along a path and changes the last of them.
func edit(value any, path []string, c change) (any, error) {
	token, rest := path[0], path[1:]
	switch v := value.(type) {
	case map[string]any:
		return editObject(v, token, rest, c)
	case []any:
		return editList(v, token, rest, c)
	case nil:
		if !c.makes() {
			return nil, errMissing
		}
		if _, err := strconv.Atoi(token); err == nil || token == "-" {
			return editList(nil, token, rest, c)
		}
		return editObject(nil, token, rest, c)
	}
	return nil, fmt.Errorf("%s has no member %q", jsonvalue.KindOf(value), token)
}

func editObject(object map[string]any, token string, rest []string, c change) (any, error) {
	if len(rest) > 0 {
		item, err := edit(object[token], rest, c)
		if err != nil {
			return nil, err
		}
		result := cloneObject(object)
		result[token] = item
		return result, nil
	}
	result := cloneObject(object)
	return result, c.object(result, token)
}

func editList(list []any, token string, rest []string, c change) (any, error) {
	if len(rest) == 0 {
		return c.list(slices.Clone(list), token)
	}
	// Only the last index of a path adds an element after the last one as -1: before it, -1 is the
	// last element of a list that exists.
	adds := c.makes() && (list == nil || token == "-" || !strings.HasPrefix(token, "-"))
	index, err := position(token, len(list), adds)
	if err != nil {
		return nil, err
	}
	var item any
	if index < len(list) {
		item = list[index]
	}
	item, err = edit(item, rest, c)
	if err != nil {
		return nil, err
	}
	result := slices.Clone(list)
	if index == len(result) {
		return append(result, item), nil
	}
	result[index] = item
	return result, nil
}

func cloneObject(object map[string]any) map[string]any {
	if object == nil {
		return make(map[string]any, 1)
	}
	return maps.Clone(object)
}
