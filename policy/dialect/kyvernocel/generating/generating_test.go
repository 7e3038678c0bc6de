package generating_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/generating"
	"github.com/quaymaster/quaymaster/policy/source"
)

const (
	ofNamespaces = "  matchConstraints:\n    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [namespaces]}]\n"
	ofMaps       = "  matchConstraints:\n    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}]\n"
	newNamespace = "{apiVersion: v1, kind: Namespace, metadata: {name: shop, uid: u, labels: {from: kube-system, pull: db}}}"
	newMap       = "{apiVersion: v1, kind: ConfigMap, metadata: {name: db, namespace: own}, data: {list: 'a,b'}}"
)

// written is a policy: of the cluster, or of the namespace own.
func written(own bool, spec string) string {
	kind, namespace := "GeneratingPolicy", ""
	if own {
		kind, namespace = "NamespacedGeneratingPolicy", ", namespace: own"
	}
	return "apiVersion: policies.kyverno.io/v1\nkind: " + kind + "\nmetadata: {name: test" + namespace + "}\nspec:\n" + spec
}

func compiled(own bool, spec string) (*policy.Policy, error) {
	return generating.New(kyvernocel.Options{Now: func() time.Time { return time.Unix(1_800_000_000, 0) }}).Compile([]byte(written(own, spec)), "test.yaml")
}

func generation(t testing.TB, own bool, spec string) policy.Generation {
	t.Helper()
	p, err := compiled(own, spec)
	if err != nil {
		t.Fatal(err)
	}
	return p.Generations[0]
}

func object(t testing.TB, text string) map[string]any {
	t.Helper()
	var o map[string]any
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

func subject(t testing.TB, text string) *policy.Subject {
	t.Helper()
	o := object(t, text)
	metadata := o["metadata"].(map[string]any)
	s := &policy.Subject{Object: policy.ContentOf(o), Version: "v1", Kind: o["kind"].(string), Name: metadata["name"].(string), Operation: "CREATE"}
	s.Namespace, _ = metadata["namespace"].(string)
	if s.Kind == "Namespace" {
		s.Namespace = s.Name
	}
	return s
}

// cluster has the sources of a test, by their resource.
type cluster struct {
	objects map[string][]map[string]any
	err     error
}

func (c cluster) EachSource(_ context.Context, of source.Ref, do func(map[string]any) error) error {
	by, err := labels.Parse(of.Labels)
	if err = errors.Join(err, c.err); err != nil {
		return err
	}
	for _, object := range c.objects[of.Resource] {
		metadata := object["metadata"].(map[string]any)
		set := labels.Set{}
		written, _ := metadata["labels"].(map[string]any)
		for key, value := range written {
			set[key], _ = value.(string)
		}
		if (of.Namespace == "" || metadata["namespace"] == of.Namespace) && (of.Name == "" || metadata["name"] == of.Name) && by.Matches(set) {
			if err := do(maps.Clone(object)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c cluster) Source(ctx context.Context, of source.Ref) (map[string]any, error) {
	var found map[string]any
	err := c.EachSource(ctx, of, func(object map[string]any) error { found = object; return nil })
	if err == nil && found == nil {
		err = source.ErrMissing
	}
	return found, err
}

func newCluster(t testing.TB) cluster {
	t.Helper()
	c := cluster{objects: map[string][]map[string]any{}}
	for resource, texts := range map[string][]string{
		"secrets": {
			`{apiVersion: v1, kind: Secret, metadata: {name: regcred, namespace: platform, uid: u1, resourceVersion: "3", finalizers: [a/b], ownerReferences: [{name: x}], labels: {copied: "yes"}}, data: {a: Yg==}}`,
			`{apiVersion: v1, kind: Secret, metadata: {name: other, namespace: platform}, data: {a: Yg==}}`,
			`{apiVersion: v1, kind: Secret, metadata: {name: db, namespace: kube-system}, data: {a: Yg==}}`,
			`{apiVersion: v1, kind: Secret, metadata: {name: db, namespace: own}, data: {a: Yg==}}`,
			`{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: token, namespace: platform}}`,
		},
		"configmaps": {`{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: platform}, data: {replicas: "3"}}`},
	} {
		for _, text := range texts {
			c.objects[resource] = append(c.objects[resource], object(t, text))
		}
	}
	return c
}

// names are the kinds, namespaces and names of objects.
func names(list []policy.Downstream) []string {
	var all []string
	for _, one := range list {
		metadata := one.Object["metadata"].(map[string]any)
		namespace, _ := metadata["namespace"].(string)
		all = append(all, fmt.Sprintf("%s %s/%s", one.Object["kind"], namespace, metadata["name"]))
	}
	return all
}

func expressions(list ...string) string {
	text := "  generate:\n"
	for _, e := range list {
		text += "  - expression: >-\n      " + e + "\n"
	}
	return text
}

const mapNamed = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made", "namespace": "ignored"}, "data": {"a": "b"}}`

func template(mode, text string) string {
	return "  generate:\n  - template:\n      interpolate: " + mode + "\n      value: |\n        " + strings.ReplaceAll(text, "\n", "\n        ") + "\n"
}

// TestGenerate: the objects that expressions and templates make.
func TestGenerate(t *testing.T) {
	for _, c := range []struct {
		reason string
		own    bool
		spec   string
		want   []string
		err    string // of an indeterminate result
	}{
		{reason: "an object, in the namespace of the call", spec: ofNamespaces + expressions(`generator.Apply(object.metadata.name, [`+mapNamed+`])`), want: []string{"ConfigMap shop/made"}},
		{reason: "by the other name", spec: ofNamespaces + expressions(`generator.apply("a", [`+mapNamed+`])`), want: []string{"ConfigMap a/made"}},
		{reason: "several expressions", spec: ofNamespaces + expressions(`generator.Apply("a", [`+mapNamed+`])`, `generator.Apply("b", [`+mapNamed+`])`), want: []string{"ConfigMap a/made", "ConfigMap b/made"}},
		{reason: "one place twice", spec: ofNamespaces + expressions(`generator.Apply("a", [`+mapNamed+`]) && generator.Apply("a", [`+mapNamed+`])`), want: []string{"ConfigMap a/made"}},
		{reason: "in a loop", spec: ofMaps + expressions(`object.data.list.split(",").all(n, generator.Apply(n, [`+mapNamed+`]))`), want: []string{"ConfigMap a/made", "ConfigMap b/made"}},
		{reason: "not in the branch that is not taken", spec: ofNamespaces + expressions(`object.metadata.name == "x" ? generator.Apply("a", [`+mapNamed+`]) : true`)},
		{reason: "an object of the cluster", spec: ofNamespaces + expressions(`generator.Apply("a", [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "made"}}])`), want: []string{"Namespace /made"}},
		{reason: "variables", spec: ofNamespaces + "  variables: [{name: m, expression: '[" + mapNamed + "]'}]\n" + expressions(`generator.Apply("a", variables.m)`), want: []string{"ConfigMap a/made"}},
		{reason: "conditions that do not hold", spec: ofNamespaces + "  matchConditions: [{name: c, expression: 'object.metadata.name == \"x\"'}]\n" + expressions(`generator.Apply("a", [`+mapNamed+`])`)},
		{reason: "a copy", spec: ofNamespaces + expressions(`generator.Apply("shop", [resource.Get("v1", "secrets", "platform", "regcred")])`), want: []string{"Secret shop/regcred"}},
		{reason: "a copy of itself", spec: ofNamespaces + expressions(`generator.Apply("platform", [resource.Get("v1", "secrets", "platform", "regcred")])`)},
		{reason: "a list, without the token", spec: ofNamespaces + expressions(`generator.Apply("shop", [resource.List("v1", "secrets", "platform")])`), want: []string{"Secret shop/other", "Secret shop/regcred"}},
		{reason: "the items of a list", spec: ofNamespaces + expressions(`generator.Apply("shop", resource.List("v1", "secrets", "platform").items)`), want: []string{"Secret shop/other", "Secret shop/regcred"}},
		{reason: "a list by labels", spec: ofNamespaces + expressions(`generator.Apply("shop", [resource.List("v1", "secrets", "platform", {"copied": "yes"})])`), want: []string{"Secret shop/regcred"}},
		{reason: "a field of a source", spec: ofNamespaces + expressions(`generator.Apply(resource.Get("v1", "configmaps", "platform", "settings").data.replicas == "3" ? "a" : "b", [`+mapNamed+`])`), want: []string{"ConfigMap a/made"}},
		{reason: "no name", spec: ofNamespaces + expressions(`generator.Apply("a", [{"apiVersion": "v1", "kind": "ConfigMap"}])`), err: "has no metadata.name"},
		{reason: "no kind", spec: ofNamespaces + expressions(`generator.Apply("a", [{"apiVersion": "v1", "metadata": {"name": "a"}}])`), err: "no apiVersion or kind"},
		{reason: "a field that is absent", spec: ofNamespaces + expressions(`generator.Apply(object.metadata.labels.none, [`+mapNamed+`])`), err: "no such key"},
		{reason: "too many objects", spec: ofNamespaces + expressions(`lists.range(1001).all(i, generator.Apply("n" + string(i), [`+mapNamed+`]))`), err: "more than 1000 objects"},
		{reason: "a Secret that the author of the trigger names", spec: ofNamespaces + expressions(`generator.Apply("shop", [resource.Get("v1", "secrets", object.metadata.labels.from, object.metadata.labels.pull)])`), err: "the policy does not name"},
		{reason: "Secrets by a label of the trigger", spec: ofNamespaces + expressions(`generator.Apply("shop", [resource.List("v1", "secrets", "platform", {"name": object.metadata.labels.pull})])`), err: "the policy does not name"},
		{reason: "a token of a service account", spec: ofNamespaces + expressions(`generator.Apply("shop", [resource.Get("v1", "secrets", "platform", "token")])`), err: "could act as its owner"},
		{reason: "in the namespace of the policy", own: true, spec: ofMaps + expressions(`generator.Apply([`+mapNamed+`])`), want: []string{"ConfigMap own/made"}},
		{reason: "a copy onto itself", own: true, spec: ofMaps + expressions(`generator.Apply([resource.Get("v1", "secrets", "db")])`)},
		{reason: "nothing of the cluster", own: true, spec: ofMaps + expressions(`generator.Apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "made"}}])`), err: "cannot generate Namespace made"},
		{reason: "a template", spec: ofNamespaces + template("none", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\ndata: {x: (( text ))}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: c}"), want: []string{"ConfigMap b/a", "Namespace /c"}},
		{reason: "a template with expressions", spec: ofNamespaces + template("cel", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a-(( object.metadata.name ))-(( 1 + 2 )), namespace: (( object.metadata.name )), labels: (( object.metadata.labels ))}"), want: []string{"ConfigMap shop/a-shop-3"}},
		{reason: "a template that is one expression", spec: ofNamespaces + template("cel", "(( "+strings.ReplaceAll(mapNamed, ": ", ":")+" ))"), want: []string{"ConfigMap ignored/made"}},
		{reason: "parentheses and texts in an expression", spec: ofNamespaces + template("cel", `{apiVersion: v1, kind: ConfigMap, metadata: {name: "(( (('a)') + \"((\").substring(0, 1) ))", namespace: b}}`), want: []string{"ConfigMap b/a"}},
		{reason: "an escaped parenthesis", spec: ofNamespaces + template("cel", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b}, data: {x: '\((y))'}}`), want: []string{"ConfigMap b/a"}},
		{reason: "an object within a text", spec: ofNamespaces + template("cel", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a-(( object.metadata )), namespace: b}"), err: "must be a text"},
		{reason: "a template of the policy's namespace", own: true, spec: ofMaps + template("none", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}"), want: []string{"ConfigMap own/a"}},
		{reason: "a template of another namespace", own: true, spec: ofMaps + template("cel", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: (( object.metadata.name ))}"), err: "cannot generate into namespace db"},
	} {
		trigger := newNamespace
		if c.own || strings.HasPrefix(c.spec, ofMaps) {
			trigger = newMap
		}
		got := generation(t, c.own, c.spec).Generate(t.Context(), policy.Case{Subject: subject(t, trigger), Sources: newCluster(t)})
		switch {
		case c.err != "":
			if got.Result != policy.Indeterminate || len(got.Objects) > 0 || !strings.Contains(got.Reasons[0].Message, c.err) {
				t.Errorf("%s: %+v, want an error with %q", c.reason, got, c.err)
			}
		case got.Result != policy.Pass && got.Result != policy.Skipped || !slices.Equal(names(got.Objects), c.want):
			t.Errorf("%s: %s %v, objects %q, want %q", c.reason, got.Result, got.Reasons, names(got.Objects), c.want)
		}
	}
}

// TestCopies: what a copy has of its source, and that it stays when the policy goes.
func TestCopies(t *testing.T) {
	got := generation(t, false, ofNamespaces+"  evaluation: {synchronize: {enabled: true}}\n"+
		expressions(`generator.Apply("shop", [resource.Get("v1", "secrets", "platform", "regcred"), `+mapNamed+`])`)).
		Generate(t.Context(), policy.Case{Subject: subject(t, newNamespace), Sources: newCluster(t)})
	if len(got.Objects) != 2 || len(got.Sources) != 1 {
		t.Fatalf("%+v", got)
	}
	clone, made := got.Objects[0], got.Objects[1]
	if metadata := clone.Object["metadata"].(map[string]any); len(metadata) != 3 || clone.Source.String() != "secrets platform/regcred" || !clone.Orphan || !clone.Synchronize {
		t.Errorf("%+v", clone)
	}
	if made.Source != (source.Ref{}) || made.Orphan {
		t.Errorf("%+v", made)
	}
}

// TestMissingSources: the objects of other entries are there; what cannot be read is not absent.
func TestMissingSources(t *testing.T) {
	const absent = `generator.Apply("shop", [resource.Get("v1", "secrets", "platform", "absent")])`
	about := policy.Case{Subject: subject(t, newNamespace), Sources: newCluster(t)}
	g := generation(t, false, ofNamespaces+expressions(absent, `generator.Apply("shop", [`+mapNamed+`])`))
	if got := g.Generate(t.Context(), about); got.Result != policy.Pass || len(got.Objects) != 1 || len(got.Missing) != 1 || got.Missing[0].Name != "absent" {
		t.Errorf("%+v", got)
	}
	without := generation(t, false, ofNamespaces+expressions(absent+` || true`)).Generate(t.Context(), about)
	if without.Result != policy.Pass || len(without.Missing) > 0 || len(without.Sources) != 1 {
		t.Errorf("an expression that does without it: %+v", without)
	}
	for reason, sources := range map[string]source.Objects{"no cluster": nil, "no permission": cluster{err: errors.New("forbidden")}} {
		about.Sources = sources
		if got := g.Generate(t.Context(), about); got.Result != policy.Indeterminate || len(got.Objects)+len(got.Missing) > 0 {
			t.Errorf("%s: %+v", reason, got)
		}
	}
}

// TestTerms: the settings.
func TestTerms(t *testing.T) {
	apply := expressions(`generator.Apply("a", [` + mapNamed + `])`)
	for settings, want := range map[string]policy.Terms{
		"": {SkipGenerated: true},
		"  evaluation: {synchronize: {enabled: true}, generateExisting: {enabled: true}}\n":                               {SkipGenerated: true, Synchronize: true, Existing: true},
		"  evaluation: {orphanDownstreamOnPolicyDelete: {enabled: true}, skipBackgroundRequests: false}\n":                {Orphan: true},
		"  useServerSideApply: true\n  webhookConfiguration: {timeoutSeconds: 5}\n":                                       {SkipGenerated: true, Apply: true},
		"  evaluation: {admission: {enabled: true}, synchronize: {enabled: false}, generateExisting: {enabled: false}}\n": {SkipGenerated: true},
	} {
		if got := generation(t, false, ofNamespaces+settings+apply).Terms(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %+v, want %+v", settings, got, want)
		}
	}
	deletions := strings.Replace(ofMaps, "[CREATE, UPDATE]", "[DELETE]", 1)
	g := generation(t, false, deletions+expressions(`generator.Apply("a", [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": oldObject.metadata.name}}])`))
	s := subject(t, newMap)
	if got := g.Generate(t.Context(), policy.Case{Subject: s}); got.Result != "" || g.Selects(s) {
		t.Errorf("a creation: %+v", got)
	}
	s.Operation, s.OldObject, s.Object = "DELETE", s.Object, policy.Content{}
	if got := g.Generate(t.Context(), policy.Case{Subject: s}); !g.Terms().Deletions || !g.Selects(s) || !slices.Equal(names(got.Objects), []string{"ConfigMap a/db"}) {
		t.Errorf("a deletion: %+v", got)
	}
}

// TestRefused: policies that would mean something else.
func TestRefused(t *testing.T) {
	apply := expressions(`generator.Apply("a", [` + mapNamed + `])`)
	for _, c := range []struct {
		reason     string
		own        bool
		spec, path string
	}{
		{"no triggers", false, apply, "spec.matchConstraints"},
		{"no entries", false, ofNamespaces + "  generate: []\n", "spec.generate: want 1 to"},
		{"an empty entry", false, ofNamespaces + "  generate: [{}]\n", "spec.generate[0]: want one of expression and template"},
		{"an expression and a template", false, ofNamespaces + "  generate: [{expression: 'true', template: {value: 'a: b'}}]\n", "spec.generate[0]: want one of"},
		{"an expression that is no boolean", false, ofNamespaces + expressions(`"a"`), "spec.generate[0].expression"},
		{"a misspelt function", false, ofNamespaces + expressions(`generator.Create("a", [])`), "spec.generate[0].expression"},
		{"a namespace, in a policy of one", true, ofMaps + apply, "spec.generate[0].expression"},
		{"no namespace, in a policy of the cluster", false, ofMaps + expressions(`generator.Apply([`+mapNamed+`])`), "spec.generate[0].expression"},
		{"resource.Get of another namespace, in a policy of one", true, ofMaps + expressions(`generator.Apply([resource.Get("v1", "secrets", "kube-system", "db")])`), "spec.generate[0].expression"},
		{"http in a policy of a namespace", true, ofMaps + expressions(`generator.Apply([http.Get("https://example.com")])`), "spec.generate[0].expression"},
		{"a misspelt field", false, ofNamespaces + "  sychronize: true\n" + apply, "spec.sychronize"},
		{"not at admission", false, ofNamespaces + "  evaluation: {admission: {enabled: false}}\n" + apply, "spec.evaluation.admission.enabled"},
		{"a timeout of nothing", false, ofNamespaces + "  webhookConfiguration: {timeoutSeconds: 0}\n" + apply, "spec.webhookConfiguration.timeoutSeconds"},
		{"connections", false, strings.Replace(ofNamespaces, "[CREATE, UPDATE]", "[CONNECT]", 1) + apply, "operations"},
		{"every resource", false, strings.Replace(ofNamespaces, "[namespaces]", "['*']", 1) + apply, "resources[0]"},
		{"a deletion and its requester", false, strings.Replace(ofMaps, "[CREATE, UPDATE]", "[DELETE]", 1) + expressions(`generator.Apply(request.userInfo.username, [`+mapNamed+`])`), "operations[0]"},
		{"a request for a subresource, kept in step", false, strings.Replace(ofMaps, "[configmaps]", "[pods/status]", 1) + "  evaluation: {synchronize: {enabled: true}}\n" + apply, "resources[0]"},
		{"an unknown interpolation", false, ofNamespaces + template("jmespath", "a: b"), "spec.generate[0].template.interpolate"},
		{"a template of nothing", false, ofNamespaces + template("none", "# nothing"), "spec.generate[0].template.value: has no document"},
		{"a template of a list", false, ofNamespaces + template("none", "[a]"), "spec.generate[0].template.value: document 1: want an object"},
		{"a template of a text with an expression", false, ofNamespaces + template("cel", "a (( 'b' ))"), "spec.generate[0].template.value: document 1: want an object"},
		{"a template that is no YAML", false, ofNamespaces + template("none", "a: b: c"), "spec.generate[0].template.value: document 1"},
		{"a field twice", false, ofNamespaces + template("none", "a: b\na: c"), "spec.generate[0].template.value: document 1"},
		{"an expression in a key", false, ofNamespaces + template("cel", "(( 'a' )): b"), "has an expression"},
		{"an expression without an end", false, ofNamespaces + template("cel", "a: (( object"), "is not closed"},
		{"an expression of nothing", false, ofNamespaces + template("cel", "a: (( ))"), "has no expression"},
		{"a parenthesis too many", false, ofNamespaces + template("cel", "a: (( object) ))"), "is not opened"},
		{"an expression that is none", false, ofNamespaces + template("cel", "a: (( object. ))"), "spec.generate[0].template.value"},
		{"a template that is nested too deep", false, ofNamespaces + template("cel", "a: "+strings.Repeat("[", 150)+strings.Repeat("]", 150)), "nested deeper"},
	} {
		if _, err := compiled(c.own, c.spec); err == nil || !strings.Contains(err.Error(), c.path) {
			t.Errorf("%s: %v, want %s", c.reason, err, c.path)
		}
	}
}

// TestBroken: a document that does not compile is about no request.
func TestBroken(t *testing.T) {
	c := generating.New(kyvernocel.Options{})
	p := c.Broken([]byte(written(false, ofNamespaces+"  generate: []\n")), "test.yaml", errors.New("wrong"))
	if p == nil || p.Broken == nil || len(p.Targets)+len(p.Mutations)+len(p.Validations) > 0 || !c.OnlyBackground(nil) {
		t.Errorf("%+v", p)
	}
}

// TestRequester: a policy that reads the requester has it recorded at the creation of its triggers.
func TestRequester(t *testing.T) {
	p, err := compiled(false, ofNamespaces+expressions(`generator.Apply(request.userInfo.username, [`+mapNamed+`])`))
	if err != nil || !p.Generations[0].NeedsRequester() || len(p.Targets) != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	p, err = compiled(false, ofNamespaces+expressions(`generator.Apply("a", [`+mapNamed+`])`))
	if err != nil || p.Generations[0].NeedsRequester() || len(p.Targets) > 0 {
		t.Errorf("%+v, %v", p, err)
	}
}

// FuzzTemplate: any template is refused or makes objects within the bounds.
func FuzzTemplate(f *testing.F) {
	f.Add("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: (( object.metadata.name )), namespace: b}")
	f.Add("a: (( '))' ))")
	f.Add(`\(((`)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := compiled(false, ofNamespaces+template("cel", text))
		if err != nil {
			return
		}
		for _, made := range p.Generations[0].Generate(t.Context(), policy.Case{Subject: subject(t, newNamespace)}).Objects {
			if made.Object["kind"] == "" || made.Object["apiVersion"] == "" {
				t.Errorf("%v", made.Object)
			}
		}
	})
}

// Example compiles a policy, and shows the object for a new Namespace.
func Example() {
	p, err := compiled(false, ofNamespaces+template("cel", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: (( object.metadata.name ))}"))
	if err != nil {
		fmt.Println(err)
		return
	}
	made := p.Generations[0].Generate(context.Background(), policy.Case{Subject: &policy.Subject{
		Version: "v1", Kind: "Namespace", Namespace: "shop", Name: "shop", Operation: "CREATE",
		Object: policy.ContentOf(map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "shop"}}),
	}})
	fmt.Println(made.Result, names(made.Objects))
	// Output: pass [ConfigMap shop/settings]
}
