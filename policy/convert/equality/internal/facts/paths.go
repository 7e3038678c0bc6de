package facts

import (
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Each means the elements of a list in a path.
const Each = "[]"

// Path leads to a value of an object, from its root.
type Path []string

// Key is the path as one text, for maps.
func (p Path) Key() string { return strings.Join(p, "\x00") }

// With returns the path with more names behind it.
func (p Path) With(more ...string) Path { return slices.Concat(p, more) }

// Facts are what policies read: the paths of objects, and the values that they compare.
type Facts struct {
	Paths  map[string]Path
	values map[string]any            // by their JSON
	Near   map[string]map[string]any // the values next to a path, by its key
	// Exact are the values with which a path itself is compared, Related the other paths of its expression.
	Exact      map[string]map[string]any
	Related    map[string][]Path
	Namespaces map[string]bool
	Users      map[string]bool
	// Own are the texts of patterns with operators: Kyverno takes a value that is one.
	Own map[string]bool
	// Home is the namespace of policies that have one: they match its objects alone. Empty for others.
	Home string
	// Lookups are the objects besides the request's own that policies read, change or copy.
	Lookups []Lookup
}

// Bounds of facts: policies are foreign, and each path is varied with each value.
const (
	maxPaths  = 400
	maxValues = 600
	maxDepth  = 24
	// maxLookups bounds the look-ups: policies have a few.
	maxLookups = 16
)

// New returns empty Facts.
func New() *Facts {
	return &Facts{
		Paths: map[string]Path{}, values: map[string]any{}, Near: map[string]map[string]any{},
		Exact: map[string]map[string]any{}, Related: map[string][]Path{},
		Namespaces: map[string]bool{}, Users: map[string]bool{}, Own: map[string]bool{},
	}
}

func (f *Facts) addPath(p Path) {
	if len(p) > 0 && len(p) <= maxDepth && len(f.Paths) < maxPaths {
		f.Paths[p.Key()] = p
	}
}

func (f *Facts) addValue(v any, to ...Path) {
	text, err := json.Marshal(v)
	if err != nil || len(text) >= 1024 || len(f.values) >= maxValues {
		return
	}
	f.values[string(text)] = v
	keep(f.Near, string(text), v, to)
}

// addExact adds a value that is compared with paths themselves.
func (f *Facts) addExact(v any, to ...Path) {
	text, err := json.Marshal(v)
	if err == nil && len(text) < 1024 {
		keep(f.Exact, string(text), v, to)
	}
}

func keep(in map[string]map[string]any, text string, v any, to []Path) {
	for _, p := range to {
		if in[p.Key()] == nil {
			in[p.Key()] = map[string]any{}
		}
		if len(in[p.Key()]) < maxValues {
			in[p.Key()][text] = v
		}
	}
}

// maxRelated bounds the paths of an expression that are related: each is with each.
const maxRelated = 12

// addRelated relates the paths of an expression that are next to each other.
func (f *Facts) addRelated(paths []Path) {
	paths = slices.DeleteFunc(slices.Clone(paths), func(p Path) bool { return len(p) == 0 })
	for i, p := range paths {
		for _, other := range paths[max(0, i-maxRelated):min(len(paths), i+maxRelated)] {
			key := p.Key()
			if len(f.Related[key]) < maxRelated && p.Key() != other.Key() && !slices.ContainsFunc(f.Related[key], func(q Path) bool { return slices.Equal(q, other) }) {
				f.Related[key] = append(f.Related[key], other)
			}
		}
	}
}

// Read collects the facts of a policy's document.
func (f *Facts) Read(document map[string]any) {
	f.addPath(Path{"metadata", "labels"})
	f.addPath(Path{"metadata", "annotations"})
	meta, _ := document["metadata"].(map[string]any)
	if namespace, _ := meta["namespace"].(string); namespace != "" && document["kind"] != "PolicyException" {
		f.Home = namespace
	}
	spec, _ := document["spec"].(map[string]any)
	f.node(spec, scope{})
}

// scope maps the names that expressions may read besides the object to the paths of their values.
type scope map[string][]Path

// node walks a part of a document. Variables that follow in a list are known to the fields behind them: they are
// collected first.
func (f *Facts) node(value any, in scope) {
	switch value := value.(type) {
	case map[string]any:
		in = f.declare(value, in)
		f.condition(value, in)
		f.reference(value)
		for _, key := range slices.Sorted(maps.Keys(value)) {
			f.member(key, value[key], in)
		}
	case []any:
		for _, one := range value {
			f.node(one, in)
		}
	case string:
		f.expression(value, in)
		if len(value) < 200 && !strings.Contains(value, "{{") {
			f.addValue(value)
		}
	case float64, bool, int64:
		f.addValue(value)
	}
}

// declare returns the scope with the variables that a node defines.
func (f *Facts) declare(node map[string]any, in scope) scope {
	in = maps.Clone(in)
	if list, ok := node["list"].(string); ok { // foreach
		for _, of := range f.expression(list, in) {
			if len(of) == 0 || of[len(of)-1] != Each { // else the list is of the elements
				of = of.With(Each)
			}
			in["element"] = append(in["element"], of)
		}
	}
	for _, key := range []string{"context", "variables"} {
		list, _ := node[key].([]any)
		for _, one := range list {
			entry, _ := one.(map[string]any)
			name, _ := entry["name"].(string)
			text, _ := entry["expression"].(string)
			if variable, ok := entry["variable"].(map[string]any); ok {
				path, _ := variable["jmesPath"].(string)
				value, _ := variable["value"].(string)
				text = cmp.Or(path, value)
			}
			switch found := f.lookup(entry, name, in); {
			case name == "":
			case found != nil:
				in[name] = found
			case f.called(text, Of+name):
				in[name] = append(f.expression(text, in), Path{Of + name})
			case text != "":
				in[name] = f.expression(text, in)
			}
		}
	}
	return in
}

// condition relates the two sides of a condition.
func (f *Facts) condition(node map[string]any, in scope) {
	key, _ := node["key"].(string)
	value, has := node["value"]
	if key == "" || !has {
		return
	}
	of := f.expression(key, in)
	list, isList := value.([]any)
	if !isList {
		list = []any{value}
	}
	if text, ok := value.(string); ok && strings.Contains(text, "{{") {
		other := f.expression(text, in)
		f.relate(of, other)
		f.relate(other, of)
		if !strings.Contains(key, "{{") {
			f.addValue(key, other...)
			f.addExact(key, other...)
		}
		f.addRelated(slices.Concat(of, other))
	}
	who := strings.Contains(key, "userInfo") || strings.Contains(key, "serviceAccount")
	for _, one := range list {
		f.addValue(one, of...)
		if !ofPart.MatchString(key) {
			f.addExact(one, of...)
		}
		if text, ok := one.(string); ok {
			f.circumstance(text, who, strings.Contains(key, "request.namespace"))
		}
	}
}

// ofPart matches an expression whose value is no part of an object, such as a length.
var ofPart = regexp.MustCompile(`\b(length|keys|size)\(`)

// relate makes the values next to paths those next to others, with which they are compared.
func (f *Facts) relate(of, to []Path) {
	for _, p := range of {
		for _, key := range slices.Sorted(maps.Keys(f.Near[p.Key()])) {
			f.addValue(f.Near[p.Key()][key], to...)
		}
	}
}

// circumstance keeps a text that is compared with the user or the namespace of a request.
func (f *Facts) circumstance(text string, isUser, isNamespace bool) {
	if isUser && len(f.Users) < maxCircumstances {
		f.Users[text] = true
	}
	if isNamespace && len(f.Namespaces) < maxCircumstances {
		f.Namespaces[text] = true
	}
}

// maxCircumstances bounds the users and the namespaces.
const maxCircumstances = 100

func (f *Facts) member(key string, value any, in scope) {
	switch key {
	case "pattern", "patchStrategicMerge":
		roots := in["element"]
		if len(roots) == 0 {
			roots = []Path{{}}
		}
		for _, root := range roots {
			f.pattern(value, root, in)
		}
	case "anyPattern":
		list, _ := value.([]any)
		for _, one := range list {
			f.member("pattern", one, in)
		}
	case "patchesJson6902":
		f.patches(value)
		f.node(value, in)
	case "match", "exclude":
		f.filters(value)
		f.node(value, in)
	case "matchLabels":
		labels, _ := value.(map[string]any)
		for name, one := range labels {
			f.addPath(Path{"metadata", "labels", name})
			f.addValue(one, Path{"metadata", "labels", name})
			f.addExact(one, Path{"metadata", "labels", name})
		}
	case "matchExpressions":
		f.requirements(value)
	case "message", "name", "url", "description", "reason", "expression", "messageExpression", "jmesPath", "list", "urlPath":
		if text, ok := value.(string); ok {
			f.expression(text, in)
		}
	default:
		f.node(value, in)
	}
}

// requirements collects the labels of a selector.
func (f *Facts) requirements(value any) {
	list, _ := value.([]any)
	for _, one := range list {
		requirement, _ := one.(map[string]any)
		name, _ := requirement["key"].(string)
		f.addPath(Path{"metadata", "labels", name})
		values, _ := requirement["values"].([]any)
		for _, v := range values {
			f.addValue(v, Path{"metadata", "labels", name})
			f.addExact(v, Path{"metadata", "labels", name})
			if text, ok := v.(string); ok {
				f.Namespaces[text] = true
			}
		}
	}
}

// filters collects the names and users that the filters of a rule select.
func (f *Facts) filters(value any) {
	switch value := value.(type) {
	case []any:
		for _, one := range value {
			f.filters(one)
		}
	case map[string]any:
		for key, one := range value {
			list, _ := one.([]any)
			switch key {
			case "namespaces":
				f.texts(list, func(text string) { f.Namespaces[text] = true })
			case "names":
				f.addPath(Path{"metadata", "name"})
				f.texts(list, func(text string) { f.addValue(text, Path{"metadata", "name"}) })
			case "name":
				f.addPath(Path{"metadata", "name"})
				f.addValue(one, Path{"metadata", "name"})
				f.texts([]any{one}, func(text string) { f.Users[text] = true })
			case "annotations":
				annotations, _ := one.(map[string]any)
				for name := range annotations {
					f.addPath(Path{"metadata", "annotations", name})
				}
			}
			f.filters(one)
		}
	}
}

func (f *Facts) texts(list []any, use func(string)) {
	for _, one := range list {
		if text, ok := one.(string); ok {
			use(text)
			f.addValue(text)
		}
	}
}

var anchor = regexp.MustCompile(`^(?:[<=X+^]?)\((.*)\)$`)

// isOperated reports whether the text of a pattern has operators.
func isOperated(text string) bool {
	return strings.ContainsAny(text, "|&") || strings.IndexAny(text, "<>!") == 0 || between.MatchString(text)
}

// pattern collects the paths and values of a pattern.
func (f *Facts) pattern(value any, at Path, in scope) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			name := key
			if found := anchor.FindStringSubmatch(key); found != nil {
				name = found[1]
			}
			if strings.ContainsAny(name, "*?") {
				for _, member := range Members(name) {
					f.pattern(value[key], at.With(member), in)
				}
				continue
			}
			f.pattern(value[key], at.With(name), in)
		}
	case []any:
		f.addPath(at)
		for _, one := range value {
			f.pattern(one, at.With(Each), in)
		}
	default:
		f.addPath(at)
		f.addValue(value, at)
		f.addExact(value, at)
		if text, ok := value.(string); ok {
			f.expression(text, in)
			if isOperated(text) && len(f.Own) < maxValues {
				f.Own[text] = true
			}
		}
	}
}
