package patch_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/patch"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

func newEngine(tb testing.TB) *jmespath.Engine {
	tb.Helper()
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: bytes.NewReader(nil)})
	if err != nil {
		tb.Fatal(err)
	}
	return engine
}

// object reads YAML, or JSON.
func object(tb testing.TB, text string) map[string]any {
	tb.Helper()
	value, ok := read(tb, text).(map[string]any)
	if !ok {
		tb.Fatalf("%s is no object", text)
	}
	return value
}

func read(tb testing.TB, text string) any {
	tb.Helper()
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return value
}

func text(tb testing.TB, value any) string {
	tb.Helper()
	written, err := json.Marshal(value)
	if err != nil {
		tb.Fatal(err)
	}
	return string(written)
}

func isSame(a, b map[string]any) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

// applier is a Merge or a JSON.
type applier interface {
	Apply(data variable.Context, object map[string]any) (map[string]any, error)
}

// apply checks that the object is left alone, and that the same map comes back
// exactly if nothing changed.
func apply(t *testing.T, p applier, data variable.Context, object map[string]any) (map[string]any, error) {
	t.Helper()
	before, context := text(t, object), text(t, data)
	result, err := p.Apply(data, object)
	if after := text(t, object); after != before {
		t.Errorf("the object was modified: %s became %s", before, after)
	}
	if after := text(t, data); after != context {
		t.Errorf("the context was modified: %s became %s", context, after)
	}
	if same := isSame(result, object); same != (text(t, result) == before) {
		t.Errorf("same map %v: %s became %s", same, before, text(t, result))
	}
	if err != nil && !isSame(result, object) {
		t.Errorf("with the error %v the object changed", err)
	}
	return result, err
}

func mustMerge(tb testing.TB, value any) *patch.Merge {
	tb.Helper()
	merge, err := patch.CompileMerge(newEngine(tb), value)
	if err != nil {
		tb.Fatalf("%v: %v", value, err)
	}
	return merge
}
