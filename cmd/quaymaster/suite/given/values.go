package given

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Values are the content of a values file. The zero value is empty.
type Values struct {
	// GlobalValues hold for every rule and object; keys are dotted paths of variables.
	GlobalValues map[string]any `json:"globalValues"`
	// Policies are values for the rules of one policy, and for it and one object.
	Policies []PolicyValues `json:"policies"`
	// NamespaceSelectors and Namespaces are the labels of namespaces.
	NamespaceSelectors []NamespaceLabels `json:"namespaceSelector"`
	Namespaces         []map[string]any  `json:"namespaces"`
	// Subresources define the kinds that are those of subresources.
	Subresources []Subresource `json:"subresources"`
	// Variables are accepted, and have no effect on the supported policies.
	Variables map[string]string `json:"variables"`
}

// PolicyValues are values for one policy.
type PolicyValues struct {
	Name      string           `json:"name"`
	Resources []ResourceValues `json:"resources"`
	Rules     []RuleValues     `json:"rules"`
}

// ResourceValues are values for the objects of a name.
type ResourceValues struct {
	Name   string         `json:"name"`
	Values map[string]any `json:"values"`
}

// RuleValues are values for one rule.
type RuleValues struct {
	Name   string         `json:"name"`
	Values map[string]any `json:"values"`
	// Foreach has a list for each key, with a value for each element; older files have
	// one such object for all foreach entries of the rule, newer ones a list of them.
	Foreach any `json:"foreachValues"`
}

// NamespaceLabels are the labels of a namespace.
type NamespaceLabels struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels"`
}

// Subresource defines a kind as that of a subresource of another kind.
type Subresource struct {
	Subresource Resource `json:"subresource"`
	Parent      Resource `json:"parentResource"`
}

// Resource is a kind with the name that the API server has for it, as in pods/exec.
type Resource struct {
	Name         string   `json:"name"`
	SingularName string   `json:"singularName"`
	Namespaced   bool     `json:"namespaced"`
	Group        string   `json:"group"`
	Version      string   `json:"version"`
	Kind         string   `json:"kind"`
	Verbs        []string `json:"verbs"`
	ShortNames   []string `json:"shortNames"`
	Categories   []string `json:"categories"`
}

// LoadValues reads a values file, in Kyverno's form or in its older one without spec.
func LoadValues(path string) (*Values, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file struct {
		APIVersion string          `json:"apiVersion"`
		Kind       string          `json:"kind"`
		Metadata   json.RawMessage `json:"metadata"`
		Spec       *Values         `json:"spec"`
		Values
	}
	if err := decode(text, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if file.Kind != "" && file.Kind != "Values" && file.Kind != "Value" {
		return nil, fmt.Errorf("%s: %s is no Values", path, file.Kind)
	}
	values := &file.Values
	if file.Spec != nil {
		values = file.Spec
	}
	return values, values.Check()
}

// Check refuses keys that are no paths.
func (v *Values) Check() error {
	var errs []error
	keys := func(of map[string]any) {
		for _, key := range slices.Sorted(maps.Keys(of)) {
			if _, err := split(key); err != nil {
				errs = append(errs, err)
			}
		}
	}
	keys(v.GlobalValues)
	for _, p := range v.Policies {
		for _, r := range p.Resources {
			keys(r.Values)
		}
		for _, r := range p.Rules {
			keys(r.Values)
			if _, err := foreachOf(r.Foreach, 0); err != nil {
				errs = append(errs, fmt.Errorf("policy %s, rule %s: %w", p.Name, r.Name, err))
			}
		}
	}
	return errors.Join(errs...)
}

// Set adds a value for every rule and object, as key=value.
func (v *Values) Set(pair string) error {
	key, value, ok := strings.Cut(pair, "=")
	if !ok || key == "" {
		return fmt.Errorf("%q: want key=value", pair)
	}
	if _, err := split(key); err != nil {
		return err
	}
	if v.GlobalValues == nil {
		v.GlobalValues = map[string]any{}
	}
	v.GlobalValues[key] = value
	return nil
}

// split cuts a key at its dots; a part in double quotes may hold some.
func split(key string) ([]string, error) {
	reader := csv.NewReader(strings.NewReader(key))
	reader.Comma = '.'
	parts, err := reader.Read()
	if err != nil || slices.Contains(parts, "") {
		return nil, fmt.Errorf("the key %q is no dotted path", key)
	}
	return parts, nil
}

// of returns the values for a policy and an object of a name, those for one object
// before those for all.
func (v *Values) of(policy, object string) map[string]any {
	all := maps.Clone(v.GlobalValues)
	if all == nil {
		all = map[string]any{}
	}
	for _, p := range v.Policies {
		if p.Name != policy {
			continue
		}
		for _, r := range p.Resources {
			if r.Name == object {
				maps.Copy(all, r.Values)
			}
		}
	}
	return all
}

// rule returns the values for one rule of a policy.
func (v *Values) rule(policy, rule string) RuleValues {
	for _, p := range v.Policies {
		if p.Name != policy {
			continue
		}
		for _, r := range p.Rules {
			if r.Name == rule {
				return r
			}
		}
	}
	return RuleValues{}
}

// NamespaceLabels returns the labels of a namespace, if the values have some.
func (v *Values) NamespaceLabels(name string) (map[string]string, bool) {
	for _, n := range v.Namespaces {
		meta, _ := n["metadata"].(map[string]any)
		if meta["name"] != name {
			continue
		}
		labels := map[string]string{}
		written, _ := meta["labels"].(map[string]any)
		for key, value := range written {
			labels[key] = fmt.Sprint(value)
		}
		return labels, true
	}
	for _, n := range v.NamespaceSelectors {
		if n.Name == name {
			return maps.Clone(n.Labels), true
		}
	}
	return nil, false
}

// Parent returns the parent kind of a subresource's kind, and the subresource's name.
func (v *Values) Parent(group, version, kind string) (parent Resource, subresource string, ok bool) {
	for _, s := range v.Subresources {
		if s.Subresource.Group == group && s.Subresource.Version == version && s.Subresource.Kind == kind {
			_, subresource, _ = strings.Cut(s.Subresource.Name, "/")
			return s.Parent, subresource, subresource != ""
		}
	}
	return Resource{}, "", false
}

// decode decodes YAML or JSON strictly.
func decode(text []byte, into any) error {
	data, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return err
	}
	strict, err := kjson.UnmarshalStrict(data, into)
	return errors.Join(append(slices.Clone(strict), err)...)
}

// put sets the value at a path of nested objects, and creates missing ones.
func put(into map[string]any, path []string, value any) {
	for _, part := range path[:len(path)-1] {
		next, ok := into[part].(map[string]any)
		if !ok {
			next = map[string]any{}
		}
		next = maps.Clone(next)
		into[part], into = next, next
	}
	into[path[len(path)-1]] = value
}

// Particular reports whether there are values for a policy and the objects of a name in
// particular.
func (v *Values) Particular(policy, object string) bool {
	return slices.ContainsFunc(v.Policies, func(p PolicyValues) bool {
		return p.Name == policy && slices.ContainsFunc(p.Resources, func(r ResourceValues) bool { return r.Name == object })
	})
}
