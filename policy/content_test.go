package policy_test

import (
	"reflect"
	"sync/atomic"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
)

// counted counts how often it is decoded.
type counted struct{ times atomic.Int64 }

func (c *counted) Content() map[string]any {
	c.times.Add(1)
	return map[string]any{"kind": "Pod"}
}

func TestContent(t *testing.T) {
	for reason, row := range map[string]struct {
		content policy.Content
		kind    any
		isZero  bool
	}{
		"no object":            {policy.Content{}, nil, true},
		"no decoded object":    {policy.ContentOf(nil), nil, true},
		"an object of nothing": {policy.ContentOf(map[string]any{}), nil, false},
		"a decoded object":     {policy.ContentOf(map[string]any{"kind": "Pod"}), "Pod", false},
		"one to be decoded":    {policy.ContentFrom(&counted{}), "Pod", false},
	} {
		if got := row.content.Map()["kind"]; got != row.kind || row.content.IsZero() != row.isZero {
			t.Errorf("%s: kind %v, zero %v", reason, got, row.content.IsZero())
		}
	}
}

func TestContentIsDecodedWhenItIsRead(t *testing.T) {
	object := &counted{}
	subject := policy.Subject{Object: policy.ContentFrom(object)}
	if subject.Object.IsZero() || object.times.Load() != 0 {
		t.Errorf("decoded %d times before it is read", object.times.Load())
	}
	if subject.Object.Map()["kind"] != "Pod" || object.times.Load() != 1 {
		t.Errorf("decoded %d times", object.times.Load())
	}
}

// sized knows how long its text is.
type sized struct{ counted }

func (*sized) Size() int { return 12 }

func TestContentSize(t *testing.T) {
	for reason, row := range map[string]struct {
		content policy.Content
		want    int
	}{
		"read from a text": {policy.ContentFrom(&sized{}), 12},
		"from none":        {policy.ContentFrom(&counted{}), 0},
		"decoded already":  {policy.ContentOf(map[string]any{"kind": "Pod"}), 0},
		"no object":        {policy.Content{}, 0},
	} {
		if got := row.content.Size(); got != row.want {
			t.Errorf("%s: %d bytes, want %d", reason, got, row.want)
		}
	}
}

// TestWithText: a text is changed where one stands, and nothing else is.
func TestWithText(t *testing.T) {
	object := map[string]any{"a": []any{"x", "y"}, "b/c": "z", "n": 1.0}
	for pointer, want := range map[string]map[string]any{
		"/a/0":   {"a": []any{"x!", "y"}, "b/c": "z", "n": 1.0},
		"/a/1":   {"a": []any{"x", "y!"}, "b/c": "z", "n": 1.0},
		"/b~1c":  {"a": []any{"x", "y"}, "b/c": "z!", "n": 1.0},
		"/a/2":   object,
		"/a/-1":  object,
		"/a/x":   object,
		"/a":     object,
		"/n":     object,
		"/b/c":   object,
		"/a/0/0": object,
	} {
		if got := policy.WithText(object, pointer, func(s string) string { return s + "!" }); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, want %v", pointer, got, want)
		}
	}
}
