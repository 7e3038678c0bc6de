package policy

import "sync"

// Content is an object as decoded JSON, which is made of its text when the first
// rule reads it, since most rules never do. The zero Content is no object. It is
// safe for concurrent use where what it is made from is.
type Content struct{ from Decoder }

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
	return Content{decoded(object)}
}

// ContentFrom returns the Content of an object that is decoded when it is read.
func ContentFrom(object Decoder) Content { return Content{object} }

// IsZero reports whether there is no object.
func (c Content) IsZero() bool { return c.from == nil }

// Map returns the decoded object, nil for none. It is not to be changed.
func (c Content) Map() map[string]any {
	if c.from == nil {
		return nil
	}
	return c.from.Content()
}

// decoded is an object that is decoded already.
type decoded map[string]any

func (d decoded) Content() map[string]any { return d }

// rewritten is an object that is made of another when it is read.
type rewritten func() map[string]any

func (r rewritten) Content() map[string]any { return r() }

// rewrite returns the Content that a change makes of another, once.
func (c Content) rewrite(change func(map[string]any) map[string]any) Content {
	if c.IsZero() {
		return c
	}
	return Content{rewritten(sync.OnceValue(func() map[string]any { return change(c.Map()) }))}
}
