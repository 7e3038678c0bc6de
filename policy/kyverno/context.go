package kyverno

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/jmespath"
	"github.com/quaymaster/quaymaster/policy/variable"
)

// values are the entries of a rule's context, in their order.
type values struct {
	entries []value
	lookup  Lookup
}

// value is one entry: a ConfigMap or a variable.
type value struct {
	name string
	path string

	// of a ConfigMap
	configMap, namespace *variable.Template
	only                 string // the one namespace that it may be in; empty means any

	// of a variable
	literal, expression, fallback *variable.Template
	query                         *jmespath.Query // applied to literal
}

// reserved are the names that every rule's context has.
func reserved(name string) bool {
	switch name {
	case "request", "images", "serviceAccountName", "serviceAccountNamespace":
		return true
	}
	return false
}

func (p *policyCompiler) compileValues(doc []contextEntry, path string) (values, error) {
	v := values{lookup: p.options.Lookup}
	var errs []error
	for i, entry := range doc {
		place := path + "[" + strconv.Itoa(i) + "]"
		if entry.Name == "" || reserved(entry.Name) {
			errs = append(errs, fail(place+".name", "%q cannot be the name of a variable", entry.Name))
		}
		compiled, err := p.compileValue(entry, place)
		errs = append(errs, err)
		v.entries = append(v.entries, compiled)
	}
	return v, errors.Join(errs...)
}

func (p *policyCompiler) compileValue(entry contextEntry, path string) (value, error) {
	v := value{name: entry.Name, path: path, only: p.out.Namespace}
	switch {
	case entry.APICall != nil:
		return v, unsupported(path+".apiCall", "a call of the Kubernetes API or of a service")
	case entry.ImageRegistry != nil:
		return v, unsupported(path+".imageRegistry", "data of an image from its registry")
	case entry.GlobalReference != nil:
		return v, unsupported(path+".globalReference", "a global context entry")
	case (entry.ConfigMap == nil) == (entry.Variable == nil):
		return v, fail(path, "want one of configMap and variable")
	case entry.ConfigMap != nil:
		return v, p.compileConfigMap(&v, entry.ConfigMap)
	}
	return v, p.compileVariable(&v, entry.Variable)
}

func (p *policyCompiler) compileConfigMap(v *value, doc *configMapEntry) error {
	path := v.path + ".configMap"
	if doc.Name == "" {
		return fail(path+".name", "is empty")
	}
	namespace := doc.Namespace
	if namespace == "" {
		if namespace = "default"; v.only != "" {
			namespace = v.only
		}
	}
	var errs [3]error
	v.configMap, errs[0] = p.template(doc.Name, path+".name")
	v.namespace, errs[1] = p.template(namespace, path+".namespace")
	if errs[1] == nil && v.namespace.Plain() {
		errs[2] = v.allowed(namespace)
	}
	return errors.Join(errs[:]...)
}

// allowed keeps a namespaced Policy in its namespace, for whoever writes one
// need not be allowed to read elsewhere.
func (v value) allowed(namespace string) error {
	if v.only != "" && namespace != v.only {
		return fail(v.path+".configMap.namespace", "a Policy in namespace %s cannot read from namespace %s: use a ClusterPolicy", v.only, namespace)
	}
	return nil
}

func (p *policyCompiler) compileVariable(v *value, doc *variableEntry) error {
	path := v.path + ".variable"
	if doc.Value == nil && doc.JMESPath == "" && doc.Default == nil {
		return fail(path, "want a value, a jmesPath or a default")
	}
	var errs [3]error
	if doc.Value != nil {
		v.literal, errs[0] = p.template(doc.Value, path+".value")
	}
	if doc.Default != nil {
		v.fallback, errs[1] = p.template(doc.Default, path+".default")
	}
	switch {
	case doc.JMESPath == "":
	case doc.Value == nil:
		// The whole text is one expression; variables may be nested in it.
		v.expression, errs[2] = p.template("{{ "+doc.JMESPath+" }}", path+".jmesPath")
	case strings.Contains(doc.JMESPath, "{{"):
		errs[2] = unsupported(path+".jmesPath", "a variable in the jmesPath of a variable with a value")
	default:
		var err error
		v.query, err = p.options.Engine.Compile(doc.JMESPath)
		errs[2] = below(path+".jmesPath", err)
	}
	return errors.Join(errs[:]...)
}

func (p *policyCompiler) template(doc any, path string) (*variable.Template, error) {
	t, err := variable.Compile(p.options.Engine, doc)
	return t, below(path, err)
}

// context builds what the rule's expressions are evaluated on.
func (r *compiledRule) context(ctx context.Context, s *policy.Subject, images []policy.Image) (variable.Context, error) {
	request, err := requestOf(s, r.template)
	if err != nil {
		return nil, fmt.Errorf("the request: %w", err)
	}
	data := variable.Context{"request": request, "images": imagesOf(images)}
	if rest, ok := strings.CutPrefix(s.User.Name, "system:serviceaccount:"); ok {
		namespace, name, _ := strings.Cut(rest, ":")
		data["serviceAccountName"], data["serviceAccountNamespace"] = name, namespace
	} else {
		data["serviceAccountName"], data["serviceAccountNamespace"] = "", ""
	}
	for _, v := range r.values.entries {
		loaded, err := v.load(ctx, r.values.lookup, data)
		if err != nil {
			return nil, below(v.path, err)
		}
		data[v.name] = loaded
	}
	return data, nil
}

func requestOf(s *policy.Subject, template templateOf) (map[string]any, error) {
	request := map[string]any{
		"kind":      map[string]any{"group": s.Group, "version": s.Version, "kind": s.Kind},
		"namespace": s.Namespace, "name": s.Name, "operation": s.Operation, "subResource": s.Subresource, "dryRun": s.DryRun,
		"userInfo": map[string]any{"username": s.User.Name, "groups": s.User.Groups},
		"object":   nil, "oldObject": nil,
	}
	if s.User.RolesKnown {
		request["roles"], request["clusterRoles"] = s.User.Roles, s.User.ClusterRoles
	}
	if !s.Object.IsZero() {
		request["object"] = template.view(s.Object.Map())
	}
	if !s.OldObject.IsZero() {
		request["oldObject"] = template.view(s.OldObject.Map())
	}
	plain, err := jmespath.Normalize(request)
	if err != nil {
		return nil, err
	}
	return plain.(map[string]any), nil
}

// imagesOf builds Kyverno's images variable: group, name of the container, and
// the parts of the reference. Of an image that a mirror serves they are those of
// its source, and the parts of what stands in the object are under copy.
func imagesOf(images []policy.Image) map[string]any {
	groups := map[string]any{}
	for _, i := range images {
		group, name := groupAndName(i)
		members, ok := groups[group].(map[string]any)
		if !ok {
			members = map[string]any{}
			groups[group] = members
		}
		one := partsOf(i.Ref)
		if one["jsonPointer"] = i.Pointer; !i.Copy.IsZero() {
			one["copy"] = partsOf(i.Copy)
		}
		members[name] = one
	}
	return groups
}

func partsOf(ref image.Ref) map[string]any {
	path := ref.Repository().Path()
	if ref.Registry() == "docker.io" {
		path = strings.TrimPrefix(path, "library/")
	}
	base := ref.Registry() + "/" + path
	one := map[string]any{
		"registry": ref.Registry(), "path": path, "name": path[strings.LastIndexByte(path, '/')+1:],
		"reference": base + ":" + ref.Tag(), "referenceWithTag": base + ":" + ref.Tag(),
	}
	if tag := ref.Tag(); tag != "" {
		one["tag"] = tag
	}
	if digest := ref.Digest(); !digest.IsZero() {
		one["digest"], one["reference"] = digest.String(), base+"@"+digest.String()
	}
	return one
}

func groupAndName(i policy.Image) (group, name string) {
	switch i.Role {
	case "container":
		return "containers", i.Container
	case "init":
		return "initContainers", i.Container
	case "ephemeral":
		return "ephemeralContainers", i.Container
	case "volume":
		return "volumes", i.Container
	}
	if extractor, key, ok := strings.Cut(i.Container, "/"); ok {
		return extractor, key
	}
	return i.Container, i.Pointer
}

// load evaluates one entry of the context.
func (v value) load(ctx context.Context, lookup Lookup, data variable.Context) (any, error) {
	if v.configMap != nil {
		return v.loadConfigMap(ctx, lookup, data)
	}
	loaded, err := v.evaluate(data)
	if (err != nil || loaded == nil) && v.fallback != nil {
		return v.fallback.Execute(data)
	}
	return loaded, err
}

func (v value) evaluate(data variable.Context) (any, error) {
	switch {
	case v.expression != nil:
		return v.expression.Execute(data)
	case v.literal == nil:
		return nil, nil
	}
	literal, err := v.literal.Execute(data)
	if err != nil || v.query == nil {
		return literal, err
	}
	return v.query.Search(literal)
}

func (v value) loadConfigMap(ctx context.Context, lookup Lookup, data variable.Context) (any, error) {
	name, err := v.configMap.Execute(data)
	if err != nil {
		return nil, err
	}
	namespace, err := v.namespace.Execute(data)
	if err != nil {
		return nil, err
	}
	space, object := jmespath.Text(namespace), jmespath.Text(name)
	if err := v.allowed(space); err != nil {
		return nil, err
	}
	if lookup == nil {
		return nil, fmt.Errorf("ConfigMap %s/%s: there is no cluster to read it from; give the ConfigMap as a file", space, object)
	}
	found, err := lookup.ConfigMap(ctx, space, object)
	if err != nil {
		return nil, fmt.Errorf("ConfigMap %s/%s: %w", space, object, err)
	}
	loaded := map[string]any{"data": map[string]any{}, "metadata": map[string]any{}}
	for _, field := range []string{"data", "metadata"} {
		if found[field] != nil {
			loaded[field] = found[field]
		}
	}
	return jmespath.Normalize(loaded)
}
