package facts

import (
	"regexp"
	"strings"
)

// Lookup is an object that policies read besides that of the request: what a context names, a target, or a source of
// copies. Texts with variables are empty: any value. A Lookup without Name is a list.
type Lookup struct {
	Group, Version string
	// Kind or Resource is known.
	Kind, Resource  string
	Namespace, Name string
	// Key is the first element of the paths of its members in Facts.Paths; empty for none.
	Key string
}

// Of is the first element of a path in an object of a look-up.
const Of = "\x00lookup "

// lookup collects the object that an entry of a context reads, and returns the path of its value.
func (f *Facts) lookup(entry map[string]any, name string, in scope) []Path {
	key := Of + name
	root := []Path{{key}}
	if of, ok := entry["configMap"].(map[string]any); ok {
		f.addLookup(Lookup{Version: "v1", Kind: "ConfigMap", Namespace: fixed(of["namespace"]), Name: fixed(of["name"]), Key: key})
		return root
	}
	if of, ok := entry["imageRegistry"].(map[string]any); ok {
		reference, _ := of["reference"].(string)
		f.expression(reference, in)
		f.addLookup(ImageData(key))
		if text, ok := of["jmesPath"].(string); ok {
			return f.relative(text, in, root)
		}
		return root
	}
	call, ok := entry["apiCall"].(map[string]any)
	if !ok {
		return nil
	}
	path, _ := call["urlPath"].(string)
	f.expression(path, in)
	if of, ok := Requested(path); ok {
		of.Key = key
		f.addLookup(of)
	}
	if text, ok := call["jmesPath"].(string); ok {
		return f.relative(text, in, root)
	}
	return root
}

func (f *Facts) addLookup(of Lookup) {
	for _, known := range f.Lookups {
		if of.Key == "" {
			known.Key = ""
		}
		if known == of {
			return
		}
	}
	if len(f.Lookups) < maxLookups {
		f.Lookups = append(f.Lookups, of)
	}
}

// fixed returns a text without variables; others are empty.
func fixed(value any) string {
	text, _ := value.(string)
	if strings.ContainsAny(text, "{*?") {
		return ""
	}
	return text
}

var variable = regexp.MustCompile(`\{\{[^{}]*\}\}`)

// Requested returns the object or list of a path of the Kubernetes API.
func Requested(path string) (of Lookup, ok bool) {
	path, _, _ = strings.Cut(variable.ReplaceAllString(path, "{"), "?")
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		of.Version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		of.Group, of.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return of, false
	}
	if len(parts) >= 3 && parts[0] == "namespaces" {
		of.Namespace, parts = fixed(parts[1]), parts[2:]
	}
	of.Resource = parts[0]
	if len(parts) == 2 {
		of.Name = fixed(parts[1])
	}
	return of, true
}

var called = regexp.MustCompile(`resource\.(?:Get|List)\(\s*['"]([^'"]+)['"]\s*,\s*['"]([^'"]+)['"]`)

// called collects the objects that CEL looks up, and reports whether there are some.
func (f *Facts) called(text, key string) bool {
	all := called.FindAllStringSubmatch(text, maxLookups)
	for _, found := range all {
		group, version, ok := strings.Cut(found[1], "/")
		if !ok {
			group, version = "", found[1]
		}
		f.addLookup(Lookup{Group: group, Version: version, Resource: found[2], Key: key})
	}
	if strings.Contains(text, "image.GetMetadata(") || strings.Contains(text, "image.getMetadata(") {
		f.addLookup(ImageData(key))
		return true
	}
	return len(all) > 0
}

// reference collects the objects that a rule changes or copies.
func (f *Facts) reference(node map[string]any) {
	add := func(kind, from map[string]any) {
		version, _ := kind["apiVersion"].(string)
		name, _ := kind["kind"].(string)
		if version == "" || name == "" {
			return
		}
		group, version, ok := strings.Cut(version, "/")
		if !ok {
			group, version = "", group
		}
		f.addLookup(Lookup{Group: group, Version: version, Kind: name, Namespace: fixed(from["namespace"]), Name: fixed(from["name"])})
	}
	targets, _ := node["targets"].([]any)
	for _, one := range targets {
		if target, ok := one.(map[string]any); ok {
			add(target, target)
		}
	}
	if from, ok := node["clone"].(map[string]any); ok {
		add(node, from)
	}
	if list, ok := node["cloneList"].(map[string]any); ok {
		kinds, _ := list["kinds"].([]any)
		for _, one := range kinds {
			text, _ := one.(string)
			at := strings.LastIndex(text, "/")
			if at > 0 {
				add(map[string]any{"apiVersion": text[:at], "kind": text[at+1:]}, map[string]any{"namespace": list["namespace"]})
			}
		}
	}
}

// pointer matches the paths of JSON patches.
var pointer = regexp.MustCompile(`(?:^|[\s"':])(/(?:metadata|spec|data|[a-z][A-Za-z]+)(?:/[^\s"',}]*|/\{\{[^}]*\}\})*)`)

// patches collects the paths of JSON patches.
func (f *Facts) patches(value any) {
	switch value := value.(type) {
	case []any:
		for _, one := range value {
			f.patches(one)
		}
	case map[string]any:
		f.patches(value["path"])
	case string:
		for _, found := range pointer.FindAllStringSubmatch(variable.ReplaceAllString(value, "0"), maxLookups) {
			var at Path
			for part := range strings.SplitSeq(strings.Trim(found[1], "/"), "/") {
				part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
				if part == "-" || strings.Trim(part, "0123456789") == "" {
					part = Each
				}
				at = append(at, part)
			}
			if len(at) > 1 {
				f.addPath(at)
			}
		}
	}
}

// imagePaths are those of the images that expressions read as images.
func imagePaths() (all []Path) {
	for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
		all = append(all, Path{"spec", list, Each, "image"})
	}
	return all
}
