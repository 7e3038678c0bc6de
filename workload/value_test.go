package workload_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/quaymaster/quaymaster/workload"
)

// reference reads an object as encoding/json does, and refuses what Parse promises
// to refuse.
func reference(raw []byte) (map[string]any, error) {
	if !jsontext.Value(raw).IsValid() { // its grammar, UTF-8, and names that stand twice
		return nil, fmt.Errorf("no valid JSON")
	}
	var content map[string]any
	if err := json.Unmarshal(raw, &content); err != nil {
		return nil, err
	}
	if deep(content) > workload.MaxDepth {
		return nil, fmt.Errorf("too deep")
	}
	metadata, isObject := content["metadata"].(map[string]any)
	if content["metadata"] != nil && !isObject {
		return nil, fmt.Errorf("metadata")
	}
	for _, value := range []any{content["kind"], content["apiVersion"], metadata["name"], metadata["namespace"], metadata["generateName"]} {
		if _, isText := value.(string); value != nil && !isText {
			return nil, fmt.Errorf("no text")
		}
	}
	for _, must := range []any{content["kind"], content["apiVersion"]} {
		if must == nil || must == "" {
			return nil, fmt.Errorf("no kind or apiVersion")
		}
	}
	return content, nil
}

// deep returns how deeply what a value holds is nested.
func deep(value any) int {
	most := 0
	switch v := value.(type) {
	case map[string]any:
		for _, member := range v {
			most = max(most, 1+deep(member))
		}
	case []any:
		for _, element := range v {
			most = max(most, 1+deep(element))
		}
	}
	return most
}

// compare holds Parse to the reference, and every way to read to the content.
func compare(t *testing.T, raw []byte) {
	t.Helper()
	want, refused := reference(raw)
	object, err := workload.Parse(raw)
	if (err == nil) != (refused == nil) {
		t.Fatalf("Parse says %v, the reference %v, of %q", err, refused, raw)
	}
	if err != nil {
		return
	}
	again, err := workload.ParseValue(raw)
	if err != nil {
		t.Fatal(err)
	}
	sameValue(t, again.Root(), want)
	for _, got := range []any{object.Content(), again.Content(), object.Root().Decoded()} {
		if !reflect.DeepEqual(got, any(want)) {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

// sameValue reads a value member by member.
func sameValue(t *testing.T, v workload.Value, want any) {
	t.Helper()
	switch want := want.(type) {
	case map[string]any:
		count := 0
		for name, member := range v.Members() {
			count++
			if member != v.Member(name) {
				t.Fatalf("the member %q is another", name)
			}
			sameValue(t, member, want[name])
		}
		if count != len(want) || !v.IsObject() {
			t.Fatalf("%d members, want %d", count, len(want))
		}
	case []any:
		count := 0
		for i, element := range v.Elements() {
			if i != count {
				t.Fatalf("element %d is numbered %d", count, i)
			}
			count++
			sameValue(t, element, want[i])
		}
		if count != len(want) || !v.IsList() {
			t.Fatalf("%d elements, want %d", count, len(want))
		}
	case string:
		if !v.IsText() || v.Text() != want {
			t.Fatalf("text %q, want %q", v.Text(), want)
		}
	default:
		if got := v.Decoded(); got != want || v.IsText() || v.Text() != "" || v.IsNull() != (want == nil) || v.IsTrue() != (want == true) {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

// writer writes random JSON, some of it wrong.
type writer struct {
	random *rand.Rand
	b      strings.Builder
}

func (w *writer) pick(list ...string) { w.b.WriteString(list[w.random.IntN(len(list))]) }

func (w *writer) space() { w.pick("", "", "", " ", "\n\t", "\r\n ") }

func (w *writer) name() {
	w.pick(`"a"`, `"b"`, `"\u0061"`, `"kind"`, `"a\"b"`, `""`, `"f:image"`, `"k:{\"name\":\"x\"}"`)
}

func (w *writer) value(depth int) {
	w.space()
	defer w.space()
	if depth > 5 {
		depth = 1000
	}
	switch w.random.IntN(8 + 1000/(depth+1)) {
	case 0, 1:
		w.pick("null", "true", "false")
	case 2, 3:
		w.pick("0", "-1", "1.5e3", "12345678901234567890", "1E-400", "1e999", "01", strings.Repeat("9", 310))
	case 4, 5, 6, 7:
		w.pick(`"x"`, `""`, `"{[,:"`, `"\\"`, `"\"\u00fc\n"`, `"ü"`, `"\ud83d\ude00"`, "\"\xff\"", `"\ud83d"`)
	default:
		w.holder(depth)
	}
}

func (w *writer) holder(depth int) {
	object := w.random.IntN(2) == 0
	opening, closing := "[", "]"
	if object {
		opening, closing = "{", "}"
	}
	w.b.WriteString(opening)
	for i := range w.random.IntN(4) * w.random.IntN(10) {
		if i > 0 {
			w.b.WriteString(",")
		}
		if object && w.random.IntN(4) > 0 {
			fmt.Fprintf(&w.b, `"m%d":`, i)
		} else if object {
			w.space()
			w.name()
			w.space()
			w.b.WriteString(":")
		}
		w.value(depth + 4)
	}
	w.b.WriteString(closing)
}

func (w *writer) object() []byte {
	w.b.Reset()
	w.b.WriteString(`{"kind":"A","apiVersion":"v1",`)
	w.pick(``, ``, `"metadata":{"name":"a","namespace":"b","labels":{}},`, `"metadata":null,`, `"metadata":[],`, `"metadata":{"name":1},`, `"kind":"B",`)
	w.b.WriteString(`"x":`)
	w.value(0)
	w.b.WriteString("}")
	return []byte(w.b.String())
}

// TestParseIsTheReference compares random objects, right and wrong ones.
func TestParseIsTheReference(t *testing.T) {
	w := writer{random: rand.New(rand.NewPCG(1, 2))}
	accepted := 0
	const all = 20_000
	for range all {
		raw := w.object()
		if _, err := reference(raw); err == nil {
			accepted++
		}
		compare(t, raw)
	}
	if accepted < all/10 || accepted > all*9/10 {
		t.Errorf("%d of %d were right ones", accepted, all)
	}
}

// TestContentOfManyReaders: who reads first makes it, for all.
func TestContentOfManyReaders(t *testing.T) {
	object, err := workload.Parse(storedPod(t))
	if err != nil {
		t.Fatal(err)
	}
	want := object.Root().Decoded()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if !reflect.DeepEqual(any(object.Content()), want) {
				t.Error("another content")
			}
			if uses, err := workload.Extract(object); err != nil || len(uses) != 8 {
				t.Errorf("%d uses, %v", len(uses), err)
			}
		})
	}
	group.Wait()
}

// TestParseMakesNoTree counts: the text, its index, and what is known of it; and of
// the identity, where the specification is.
func TestParseMakesNoTree(t *testing.T) {
	raw := []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","labels":{"a":"b","c":"d"}},"spec":{"containers":[{"name":"a","image":"b"}]}}`)
	object, err := workload.ParseValue(raw)
	if err != nil {
		t.Fatal(err)
	}
	for what, row := range map[string]struct {
		most float64
		do   func()
	}{
		"parse":    {3, func() { _, _ = workload.ParseValue(raw) }},
		"identity": {1, func() { _ = workload.IdentityOf(object) }},
		"read":     {0, func() { _ = object.Root().Member("metadata").Member("labels").Member("c").Text() }},
	} {
		if got := testing.AllocsPerRun(100, row.do); got > row.most {
			t.Errorf("%s: %v allocations, want %v", what, got, row.most)
		}
	}
}

func TestValueOfNothing(t *testing.T) {
	object, err := workload.Parse([]byte(`{"apiVersion":"v1","kind":"A","list":[1],"text":"x","none":null,"labels":{"a":"b","c":1}}`))
	if err != nil {
		t.Fatal(err)
	}
	root := object.Root()
	for what, v := range map[string]workload.Value{
		"the zero Object":      workload.Object{}.Root(),
		"no such member":       root.Member("missing"),
		"a member of a text":   root.Member("text").Member("x"),
		"a member of a list":   root.Member("list").Member("0"),
		"a member of null":     root.Member("none").Member("x"),
		"a member of nothing":  root.Member("missing").Member("x"),
		"a name in other case": root.Member("Text"),
	} {
		if v.Kind() != jsontext.KindInvalid || !v.IsNull() || v.Text() != "" || v.Decoded() != nil || len(v.Texts()) != 0 || v.IsObject() || v.IsList() || v.IsTrue() {
			t.Errorf("%s is %v", what, v.Decoded())
		}
	}
	if none := root.Member("none"); !none.IsNull() || none.Kind() != jsontext.KindNull {
		t.Errorf("null is %q", none.Kind())
	}
	if got := root.Member("labels").Texts(); !reflect.DeepEqual(got, map[string]string{"a": "b"}) {
		t.Errorf("texts %v", got)
	}
	var names []string
	for name := range root.Members() {
		names = append(names, name)
		if name == "list" {
			break
		}
	}
	if !slices.Equal(names, []string{"apiVersion", "kind", "list"}) {
		t.Errorf("members %q", names)
	}
}
