package operation

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/quaymaster/quaymaster/policy/lang/patch/internal/jsonvalue"
)

// maxAligned bounds the pairs of elements that are compared to align two lists;
// longer lists are compared index by index.
const maxAligned = 40_000

// Operation is one operation of RFC 6902: add, remove or replace.
type Operation struct {
	Op   string
	Path string // a JSON pointer
	// Value is the value of add and replace, null included. It shares data with the object
	// that it is from.
	Value any
}

// MarshalJSON writes a value for add and replace alone.
func (o Operation) MarshalJSON() ([]byte, error) {
	if o.Op == "remove" {
		return json.Marshal(struct {
			Op   string `json:"op"`
			Path string `json:"path"`
		}{o.Op, o.Path})
	}
	return json.Marshal(struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}{o.Op, o.Path, o.Value})
}

// Diff returns the operations that turn before into after, none if they are equal. They
// are deterministic: members in the order of their names, elements of a list from the last
// to the first. Changes inside of a member or an element are made there; elements are
// matched by equality, or by their name. Above 10,000 operations, whole fields at the top
// are written instead.
func Diff(before, after map[string]any) []Operation {
	d := differ{}
	d.object(before, after)
	if len(d.operations) > jsonvalue.MaxOperations {
		d = differ{shallow: true}
		d.object(before, after)
	}
	return d.operations
}

type differ struct {
	operations []Operation
	path       []string
	shallow    bool // differences are not looked for inside of members
}

func (d *differ) emit(op, token string, value any) {
	d.operations = append(d.operations, Operation{Op: op, Path: Pointer(append(d.path, token)), Value: value})
}

// value compares the values at a token.
func (d *differ) value(token string, a, b any) {
	if d.shallow {
		if !jsonvalue.Equal(a, b) {
			d.emit("replace", token, b)
		}
		return
	}
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			d.path = append(d.path, token)
			d.object(x, y)
			d.path = d.path[:len(d.path)-1]
			return
		}
	case []any:
		if y, ok := b.([]any); ok {
			d.path = append(d.path, token)
			d.list(x, y)
			d.path = d.path[:len(d.path)-1]
			return
		}
	}
	if !jsonvalue.Equal(a, b) {
		d.emit("replace", token, b)
	}
}

func (d *differ) object(a, b map[string]any) {
	if jsonvalue.SameObject(a, b) {
		return
	}
	var changed, added []string
	for key, value := range a {
		if other, ok := b[key]; !ok || !identical(value, other) {
			changed = append(changed, key)
		}
	}
	for key := range b {
		if _, ok := a[key]; !ok {
			added = append(added, key)
		}
	}
	slices.Sort(changed)
	slices.Sort(added)
	for _, key := range changed {
		if value, ok := b[key]; ok {
			d.value(key, a[key], value)
		} else {
			d.emit("remove", key, nil)
		}
	}
	for _, key := range added {
		d.emit("add", key, b[key])
	}
}

// identical reports cheaply that two values are equal; it may miss it.
func identical(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && jsonvalue.SameObject(x, y)
	case []any:
		y, ok := b.([]any)
		return ok && jsonvalue.SameList(x, y)
	}
	return jsonvalue.Equal(a, b)
}

// list removes the common beginning and end, and aligns the rest.
func (d *differ) list(a, b []any) {
	if jsonvalue.SameList(a, b) {
		return
	}
	for len(a) > 0 && len(b) > 0 && jsonvalue.Equal(a[len(a)-1], b[len(b)-1]) {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	start := 0
	for start < len(a) && start < len(b) && jsonvalue.Equal(a[start], b[start]) {
		start++
	}
	d.align(a[start:], b[start:], start)
}

// Costs of turning one list into another, in quarters of an operation.
const (
	costOne     = 4 // an element is added, removed, or changed inside
	costText    = 5 // an element that is no object is replaced
	costGuess   = 6 // an element without identifying member is changed inside
	costReplace = 7 // an element is replaced by another one
)

// align finds the cheapest way to turn a into b, which start at an index. It emits
// operations from the end, so that earlier indices stay valid.
func (d *differ) align(a, b []any, start int) {
	if len(a) == 0 || len(b) == 0 || len(a)*len(b) > maxAligned {
		d.positions(a, b, start)
		return
	}
	width := len(b) + 1
	costs := make([]int, (len(a)+1)*width) // of a[:i] and b[:j], at i*width+j
	for i := range len(a) + 1 {
		for j := range width {
			costs[i*width+j] = cheapest(a, b, costs, i, j)
		}
	}
	for i, j := len(a), len(b); i > 0 || j > 0; {
		cost := costs[i*width+j]
		switch {
		case i > 0 && cost == costs[(i-1)*width+j]+costOne:
			i--
			d.emit("remove", strconv.Itoa(start+i), nil)
		case i > 0 && j > 0 && cost == costs[(i-1)*width+j-1]+pairCost(a[i-1], b[j-1]):
			i, j = i-1, j-1
			d.pair(start+i, a[i], b[j])
		default:
			j--
			d.emit("add", strconv.Itoa(start+i), b[j])
		}
	}
}

func cheapest(a, b []any, costs []int, i, j int) int {
	width := len(b) + 1
	switch {
	case i == 0:
		return j * costOne
	case j == 0:
		return i * costOne
	}
	return min(
		costs[(i-1)*width+j-1]+pairCost(a[i-1], b[j-1]),
		costs[(i-1)*width+j]+costOne,
		costs[i*width+j-1]+costOne,
	)
}

func pairCost(a, b any) int {
	x, ok := a.(map[string]any)
	y, both := b.(map[string]any)
	switch {
	case jsonvalue.Equal(a, b):
		return 0
	case !ok && !both:
		return costText
	case !ok || !both:
		return costReplace
	}
	named := false
	for _, name := range [...]string{"name", "key", "uid", "ip", "containerPort", "port", "mountPath", "devicePath", "topologyKey", "type"} {
		in, found := x[name]
		out, other := y[name]
		if found && other && jsonvalue.Equal(in, out) {
			return costOne
		}
		named = named || found || other
	}
	if named {
		return costReplace
	}
	return costGuess
}

// pair makes one element of another.
func (d *differ) pair(index int, a, b any) {
	if pairCost(a, b) == costReplace {
		d.emit("replace", strconv.Itoa(index), b)
		return
	}
	d.value(strconv.Itoa(index), a, b)
}

// positions compares lists index by index.
func (d *differ) positions(a, b []any, start int) {
	for i := len(a) - 1; i >= len(b); i-- {
		d.emit("remove", strconv.Itoa(start+i), nil)
	}
	for i := min(len(a), len(b)) - 1; i >= 0; i-- {
		d.value(strconv.Itoa(start+i), a[i], b[i])
	}
	for i := len(a); i < len(b); i++ {
		d.emit("add", strconv.Itoa(start+i), b[i])
	}
}
