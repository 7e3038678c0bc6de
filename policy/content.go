package policy

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Content is an object as decoded JSON. The text is decoded when the first rule reads it, because
// most rules never do. The zero Content is no object. It is safe for concurrent use if its source
// is.
type Content struct {
	from    Decoder
	assumed bool
}

// Decoder makes decoded JSON, the same each time; a workload.Object is one.
type Decoder interface {
	// Content returns maps, lists, texts, float64, true, false and nil; it is not to
	// be changed.
	Content() map[string]any
}

// ContentOf returns a decoded object as Content; nil is no object.
func ContentOf(object map[string]any) Content {
	if object == nil {
		return Content{}
	}
	return Content{from: decoded(object)}
}

// ContentFrom returns the Content of an object that is decoded when it is read.
func ContentFrom(object Decoder) Content { return Content{from: object} }

// AssumedFrom returns the Content of an old object that did not come with an update:
// expressions read it, and it is no state of the object before.
func AssumedFrom(object Decoder) Content { return Content{from: object, assumed: true} }

// IsAssumed reports whether the object was made by AssumedFrom.
func (c Content) IsAssumed() bool { return c.assumed }

// IsZero reports whether there is no object.
func (c Content) IsZero() bool { return c.from == nil }

// Map returns the decoded object, nil for none. It is not to be changed.
func (c Content) Map() map[string]any {
	if c.from == nil {
		return nil
	}
	return c.from.Content()
}

// Size is how long the text is that it is read from, in bytes; 0 where there is none.
func (c Content) Size() int {
	if text, ok := c.from.(interface{ Size() int }); ok {
		return text.Size()
	}
	return 0
}

// decoded is an object that is decoded already.
type decoded map[string]any

func (d decoded) Content() map[string]any { return d }

// rewritten is an object that is made of another when it is read.
type rewritten func() map[string]any

func (r rewritten) Content() map[string]any { return r() }

// Rewrite returns the Content that a change makes of another, once.
func (c Content) Rewrite(change func(map[string]any) map[string]any) Content {
	if c.IsZero() {
		return c
	}
	return Content{from: rewritten(sync.OnceValue(func() map[string]any { return change(c.Map()) }))}
}

// WithText returns a decoded object with change applied to the text at the pointer (RFC 6901), if
// there is one. The parents of the text are copied and the rest is shared.
func WithText(object map[string]any, pointer string, change func(string) string) map[string]any {
	changed, _ := withText(object, strings.Split(strings.TrimPrefix(pointer, "/"), "/"), change).(map[string]any)
	return changed
}

func withText(value any, path []string, change func(string) string) any {
	if len(path) == 0 {
		if text, ok := value.(string); ok {
			return change(text)
		}
		return value
	}
	switch value := value.(type) {
	case map[string]any:
		key := strings.NewReplacer("~1", "/", "~0", "~").Replace(path[0])
		if member, ok := value[key]; ok {
			value = maps.Clone(value)
			value[key] = withText(member, path[1:], change)
		}
		return value
	case []any:
		if i, err := strconv.Atoi(path[0]); err == nil && i >= 0 && i < len(value) {
			value = slices.Clone(value)
			value[i] = withText(value[i], path[1:], change)
		}
		return value
	}
	return value
}
