package pattern_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/lang/pattern"
	"github.com/quaymaster/quaymaster/policy/lang/pattern/comparison"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// maker makes objects with the keys and values of policies and of known traps.
type maker struct{ random *rand.Rand }

func (m maker) pick(of ...string) string { return of[m.random.IntN(len(of))] }

func (m maker) scalar() any {
	switch m.random.IntN(6) {
	case 0:
		return nil
	case 1:
		return m.random.IntN(2) == 0
	case 2:
		return float64(m.random.IntN(9) - 4)
	case 3:
		return m.random.Float64()
	}
	return m.pick("x", "y", "x*", "?", "!x", "1-5", "1Gi", "1024Mi", "5m", "<3", ">=1 & <4", "a | b", "", "$(", "-", "|", "&")
}

func (m maker) object(depth int) map[string]any {
	object := map[string]any{}
	for range m.random.IntN(4) {
		key := m.pick("a", "b", "c", "metadata", "labels", "a b", "a.b/c", "(")
		switch n := m.random.IntN(4); {
		case n == 0 && depth > 0:
			object[key] = m.object(depth - 1)
		case n == 1 && depth > 0:
			// One element, for every element must match every item.
			object[key] = []any{m.object(depth - 1)}
		default:
			object[key] = m.scalar()
		}
	}
	return object
}

// anchored puts anchors around some keys.
func (m maker) anchored(value any, anchors ...string) any {
	switch v := value.(type) {
	case map[string]any:
		object := map[string]any{}
		for key, item := range v {
			switch anchor := m.pick(append(anchors, "", "")...); {
			case anchor == "":
				object[key] = m.anchored(item, anchors...)
			case anchor != "^" || isObjects(item):
				object[strings.TrimPrefix(anchor, "(")+"("+key+")"] = m.anchored(item, anchors...)
			}
		}
		return object
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = m.anchored(item, anchors...)
		}
		return list
	}
	return value
}

func isObjects(value any) bool {
	list, ok := value.([]any)
	return ok && len(list) > 0
}

func match(t *testing.T, of, resource any) pattern.Result {
	t.Helper()
	p, err := pattern.Compile(newEngine(t), of)
	if err != nil {
		t.Fatalf("%s: %v", text(of), err)
	}
	return p.Match(nil, resource)
}

func text(value any) string {
	out, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

func clone(t *testing.T, value any) any {
	t.Helper()
	return decode(t, text(value))
}

func TestProperties(t *testing.T) {
	for seed := range uint64(1000) {
		m := maker{rand.New(rand.NewPCG(seed, 1))}
		object := m.object(3)
		if r := match(t, object, object); !r.Held {
			t.Fatalf("%s is not as it is: %s at %s", text(object), r.Why, r.Path)
		}
		if r := match(t, m.anchored(object, "="), object); !r.Held {
			t.Fatalf("%s: =() wants more than the field: %s at %s", text(object), r.Why, r.Path)
		}

		other := m.object(3)
		before := clone(t, other)
		of := m.anchored(object, "=", "(", "X", "<", "^")
		r := match(t, of, other)
		if again := match(t, clone(t, of), clone(t, other)); !reflect.DeepEqual(r, again) {
			t.Fatalf("%s on %s: %v and then %v", text(of), text(other), r, again)
		}
		if !reflect.DeepEqual(other, before) {
			t.Fatalf("%s changed %s to %s", text(of), text(before), text(other))
		}
		if r.Err != nil && !errors.Is(r.Err, comparison.ErrIndeterminate) || r.Held && r.Skip || r.Partly && !r.Held || r.Err == nil && ((r.Held && !r.Partly) != (r.Path == "") || (r.Held && !r.Partly) != (r.Why == "")) {
			t.Fatalf("%s on %s: %#v", text(of), text(other), r)
		}
		other["not mentioned"] = m.object(2)
		if more := match(t, of, other); outcome(more) != outcome(r) || more.Path != r.Path || more.Why != r.Why {
			t.Fatalf("%s on %s: %v, though it is not mentioned, and not %v", text(of), text(other), more, r)
		}
	}
}

// TestFailuresStay: where a pattern fails, one that also asks for what a list or
// =() may leave out fails, too.
func TestFailuresStay(t *testing.T) {
	for seed := range uint64(1000) {
		m := maker{rand.New(rand.NewPCG(seed, 2))}
		object, of := m.object(3), m.object(3)
		if outcome(match(t, of, object)) != "fail" {
			continue
		}
		more := map[string]any{"zz": []any{map[string]any{"(a)": "x", "b": "y"}}, "=(zy)": map[string]any{"(a)": "x"}}
		object["zz"], object["zy"] = []any{m.object(1), map[string]any{"a": "n"}}, m.object(1)
		for key, value := range of {
			more[key] = value
		}
		if r := match(t, more, object); outcome(r) != "fail" {
			t.Fatalf("%s on %s: %s, though %s fails", text(more), text(object), outcome(r), text(of))
		}
	}
}

func FuzzMatch(f *testing.F) {
	for _, seed := range []struct{ pattern, resource string }{
		{notPrivileged, threeContainers},
		{`{"a": "{{ x }}", "(b)": "1-5", "<(c)": [{"X(d)": null}]}`, `{"a": "y", "b": 3, "c": [{"d": 1}]}`},
		{`{"metadata": {"labels": {"=(a*)": "$(/b)"}}, "b": "!x & >=1Gi | ?*"}`, `{"metadata": {"labels": {"ab": "x"}}, "b": "2Gi"}`},
		{`{"^(a)": [{"(b)": "x"}], "{{ x }}": [["a"]]}`, `{"a": [{"b": "x"}], "y": [["a", "b"]]}`},
		{`{"a": "{{ o }}"}`, `{"a": {"(b)": "1e9", "c": [1]}}`},
	} {
		f.Add(seed.pattern, seed.resource)
	}
	engine := newEngine(f)
	f.Fuzz(func(t *testing.T, of, resource string) {
		var p, object any
		if json.Unmarshal([]byte(of), &p) != nil || json.Unmarshal([]byte(resource), &object) != nil {
			return
		}
		compiled, err := pattern.Compile(engine, p)
		if err != nil {
			return
		}
		r := compiled.Match(variable.Context{"x": "y*", "o": object}, object)
		if r.Held && (r.Skip || r.Err != nil || r.Partly != (r.Why != "") || r.Partly != (r.Path != "")) || r.Skip && (r.Err != nil || r.Path == "") {
			t.Errorf("%s on %s: %#v", of, resource, r)
		}
	})
}
