package requirement

import (
	"regexp"
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/celtext"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/jmespath"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/shape"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/term"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/internal/builtin"
	types "github.com/quaymaster/quaymaster/policy/internal/schema"
)

// nameForm is that of the names of variables in CEL.
var nameForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// entries declares the context of the rule as variables, with the names of the policy.
func (w *writer) entries() error {
	for i, entry := range w.rule.Context {
		at := source.Index("context", i)
		if !nameForm.MatchString(entry.Name) || entry.Name == deletedName || entry.Name == violatingName || strings.HasPrefix(entry.Name, "violatedBefore") {
			return &source.Unsupported{Path: source.Below(at, "name"), Found: "a name that no variable of CEL can have"}
		}
		made, err := w.entry(entry)
		if err != nil {
			return source.Located(at, err)
		}
		w.out.Variables = append(w.out.Variables, admission.Variable{Name: entry.Name, Expression: made.Text})
		w.scope = w.scope.With(entry.Name, jmespath.Binding{
			Text: "variables." + entry.Name, Shape: made.Shape, Missing: made.Missing, Null: made.Null, Fails: made.Fails, Guards: made.Guards,
		})
	}
	return nil
}

// entry writes the value of an entry.
func (w *writer) entry(entry rulecontext.Document) (jmespath.Expression, error) {
	cluster := entry.ConfigMap != nil || entry.APICall != nil || entry.GlobalReference != nil
	switch {
	case cluster && w.rule.Namespaced:
		return jmespath.Expression{}, &source.Unsupported{Found: "an entry that reads a cluster, in a policy of a namespace"}
	case entry.Variable != nil:
		return w.variable(entry)
	case entry.ConfigMap != nil:
		return w.configMap(entry)
	case entry.APICall != nil:
		return w.apiCall(entry)
	case entry.GlobalReference != nil:
		name := entry.GlobalReference.Name
		if strings.Contains(name, "{{") {
			return jmespath.Expression{}, &source.Unsupported{Path: "globalReference.name", Found: "a variable"}
		}
		global := value("globalContext.Get("+celtext.String(name)+", '')", shape.Unknown())
		return w.selected(global, entry.GlobalReference.JMESPath, nil, "globalReference")
	}
	return w.imageData(entry)
}

// imageData is an entry with a registry's data of an image.
func (w *writer) imageData(entry rulecontext.Document) (jmespath.Expression, error) {
	doc := entry.ImageRegistry
	if doc.ImageRegistryCredentials != nil {
		return jmespath.Expression{}, &source.Unsupported{Path: "imageRegistry.imageRegistryCredentials", Found: "credentials of an entry"}
	}
	reference, err := jmespath.Template(doc.Reference, w.scope)
	if err != nil {
		return reference, source.Located("imageRegistry.reference", err)
	}
	fields := map[string]shape.Shape{"manifest": shape.Unknown(), "configData": shape.Unknown()}
	for _, name := range []string{"image", "resolvedImage", "registry", "repository", "identifier"} {
		fields[name] = shape.OfText()
	}
	return w.selected(value("image.GetMetadata("+reference.Text+")", shape.OfFields(fields)), doc.JMESPath, nil, "imageRegistry")
}

// value is the value of a call.
func value(text string, of shape.Shape) jmespath.Expression {
	return jmespath.Expression{Term: term.Term{Text: text, Rank: term.Primary, Shape: of, Fails: true}}
}

// variable is an entry that is made of others.
func (w *writer) variable(entry rulecontext.Document) (jmespath.Expression, error) {
	v := entry.Variable
	switch {
	case v.Value != nil && v.JMESPath != "":
		on, err := jmespath.Value(v.Value, w.scope)
		if err != nil {
			return on, source.Located("variable.value", err)
		}
		return w.selected(on, v.JMESPath, v.Default, "variable")
	case v.Value != nil:
		made, err := jmespath.Value(v.Value, w.scope)
		return made, source.Located("variable.value", err)
	case v.JMESPath == "":
		made, err := jmespath.Value(v.Default, w.scope)
		return made, source.Located("variable.default", err)
	}
	made, err := jmespath.Compile(v.JMESPath, w.scope)
	if err != nil {
		return made, source.Located("variable.jmesPath", err)
	}
	return w.defaulted(made, v.Default, "variable")
}

// selected applies a jmesPath to what an entry has.
func (w *writer) selected(on jmespath.Expression, path string, fallback any, at string) (jmespath.Expression, error) {
	if path == "" {
		return w.defaulted(on, fallback, at)
	}
	made, err := jmespath.CompileOn(path, w.scope, on)
	if err != nil {
		return made, source.Located(at+".jmesPath", err)
	}
	made.Fails = made.Fails || on.Fails
	return w.defaulted(made, fallback, at)
}

// defaulted replaces null and a missing value. Without a default, a null entry is missing for its readers.
func (w *writer) defaulted(made jmespath.Expression, fallback any, at string) (jmespath.Expression, error) {
	if fallback == nil {
		made.Missing, made.Null = made.Missing || made.Null, false
		return made, nil
	}
	other, err := jmespath.Value(fallback, w.scope)
	if err == nil {
		made, err = made.Or(other)
	}
	return made, source.Located(at+".default", err)
}

// configMap is an entry with the data and the metadata of a ConfigMap.
func (w *writer) configMap(entry rulecontext.Document) (jmespath.Expression, error) {
	doc := entry.ConfigMap
	namespace := doc.Namespace
	if namespace == "" {
		namespace = "default"
	}
	from, err := jmespath.Template(namespace, w.scope)
	if err != nil {
		return from, source.Located("configMap.namespace", err)
	}
	name, err := jmespath.Template(doc.Name, w.scope)
	if err != nil {
		return name, source.Located("configMap.name", err)
	}
	known, _ := types.NewFinder().Types([]schema.GroupVersionKind{{Version: "v1", Kind: "ConfigMap"}})
	return value("resource.Get('v1', 'configmaps', "+from.Text+", "+name.Text+")", shape.Of(known).Only("data", "metadata")), nil
}

// apiCall is an entry with an answer of the API server.
func (w *writer) apiCall(entry rulecontext.Document) (jmespath.Expression, error) {
	doc := entry.APICall
	if doc.Service != nil || doc.URLPath == "" || doc.Method != "" && doc.Method != "GET" || //nolint:usestdlibvars // policies do not import net/http
		len(doc.Data) > 0 {
		return jmespath.Expression{}, &source.Unsupported{Path: "apiCall", Found: "a call that is no GET of the API server"}
	}
	of, err := w.requested(doc.URLPath)
	if err != nil {
		return jmespath.Expression{}, source.Located("apiCall.urlPath", err)
	}
	if doc.Default != nil {
		return jmespath.Expression{}, &source.Unsupported{Path: "apiCall.default", Found: "a default for a call that fails"}
	}
	return w.selected(of, doc.JMESPath, nil, "apiCall")
}

// requested writes the request of a path such as /apis/apps/v1/namespaces/NAMESPACE/deployments/NAME.
func (w *writer) requested(path string) (jmespath.Expression, error) {
	refused := &source.Unsupported{Found: "a path that is no object and no list of the API server"}
	parts, ok := segments(path)
	if !ok || len(parts) < 3 {
		return jmespath.Expression{}, refused
	}
	group, parts := "", parts
	switch parts[0] {
	case "api":
		parts = parts[1:]
	case "apis":
		group, parts = parts[1], parts[2:]
	default:
		return jmespath.Expression{}, refused
	}
	version, parts := parts[0], parts[1:]
	namespace := ""
	if len(parts) > 2 && parts[0] == "namespaces" {
		namespace, parts = parts[1], parts[2:]
	}
	if len(parts) == 0 || len(parts) > 2 || strings.ContainsAny(group+version+parts[0], "{?*") {
		return jmespath.Expression{}, refused
	}
	resource := strings.ToLower(parts[0])
	apiVersion := strings.TrimPrefix(group+"/"+version, "/")
	in, err := w.segment(namespace)
	if err != nil {
		return in, err
	}
	arguments := []string{celtext.String(apiVersion), celtext.String(resource), in.Text}
	object := objectOf(group, version, resource)
	if len(parts) == 1 {
		list := shape.OfFields(map[string]shape.Shape{"items": shape.OfList(object)})
		return value("resource.List("+strings.Join(arguments, ", ")+")", list), nil
	}
	name, err := w.segment(parts[1])
	if err != nil {
		return name, err
	}
	return value("resource.Get("+strings.Join(append(arguments, name.Text), ", ")+")", object), nil
}

// segment writes a part of a path. A variable that is empty would make another path.
func (w *writer) segment(text string) (jmespath.Expression, error) {
	made, err := jmespath.Template(text, w.scope)
	if err == nil && strings.Contains(text, "{{") && (!made.Sure() || !made.Is(shape.Text)) {
		return made, &source.Unsupported{Found: "a variable that may be missing"}
	}
	return made, err
}

// segments separates the parts of a path; a variable is in one of them.
func segments(path string) ([]string, bool) {
	var parts []string
	depth, start := 0, 0
	for i := range len(path) + 1 {
		switch {
		case i == len(path) || path[i] == '/' && depth == 0:
			if i > start {
				parts = append(parts, path[start:i])
			}
			start = i + 1
		case path[i] == '{':
			depth++
		case path[i] == '}':
			depth--
		}
	}
	return parts, strings.HasPrefix(path, "/") && depth == 0 && !strings.Contains(path, "?")
}

// objectOf is the shape of the objects of a resource.
func objectOf(group, version, resource string) shape.Shape {
	all := builtin.Resources()
	at := slices.IndexFunc(all, func(r builtin.Resource) bool { return r.Group == group && r.Name == resource })
	if at < 0 {
		return shape.Of(nil)
	}
	known, ok := types.NewFinder().Types([]schema.GroupVersionKind{{Group: group, Version: version, Kind: all[at].Kind}})
	if !ok {
		return shape.Of(nil)
	}
	return shape.Of(known)
}
