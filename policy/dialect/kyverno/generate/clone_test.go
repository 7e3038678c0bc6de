package generate_test

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/source"
)

// cluster has the sources of a test.
type cluster struct {
	objects []map[string]any
	err     error // of every request; nil for none
}

func (c cluster) EachSource(_ context.Context, of source.Ref, do func(map[string]any) error) error {
	if c.err != nil {
		return c.err
	}
	by, err := labels.Parse(of.Labels)
	if err != nil {
		return err
	}
	for _, object := range c.objects {
		metadata, _ := object["metadata"].(map[string]any)
		set := labels.Set{}
		written, _ := metadata["labels"].(map[string]any)
		for key, value := range written {
			set[key], _ = value.(string)
		}
		if object["apiVersion"] == of.APIVersion && object["kind"] == of.Kind && metadata["namespace"] == of.Namespace &&
			(of.Name == "" || metadata["name"] == of.Name) && by.Matches(set) {
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

func newCluster(t *testing.T, objects ...string) cluster {
	t.Helper()
	var c cluster
	for _, text := range objects {
		c.objects = append(c.objects, decoded(t, text))
	}
	return c
}

const (
	newNamespace = "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {from: kube-system, pull: db}}}"
	pullSecret   = `{apiVersion: v1, kind: Secret, type: Opaque, data: {a: Yg==}, metadata: {name: regcred, namespace: platform, uid: u, resourceVersion: "7",
  generation: 1, creationTimestamp: "2026-01-01T00:00:00Z", managedFields: [{manager: kubectl}], finalizers: [a/b], ownerReferences: [{name: x}],
  labels: {copied: "yes", team: web, app.kubernetes.io/managed-by: Helm, generate.kyverno.io/rule-name: x},
  annotations: {note: kept, kubectl.kubernetes.io/last-applied-configuration: "{}", quaymaster.dev/generated-by: "{}", meta.helm.sh/release-name: r}}}`
	copiedSecret = `{apiVersion: v1, kind: Secret, type: Opaque, data: {a: Yg==}, metadata: {name: regcred, namespace: shop, labels: {copied: "yes", team: web}, annotations: {note: kept}}}`
	plainSecret  = "{apiVersion: v1, kind: Secret, data: {}, metadata: {name: other, namespace: platform}}"
	settings     = `{apiVersion: v1, kind: ConfigMap, data: {a: b}, metadata: {name: settings, namespace: platform, labels: {copied: "yes"}}}`
	token        = `{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, data: {token: eA==}, metadata: {name: token, namespace: platform, labels: {copied: "yes"}}}`
	dbSecret     = "{apiVersion: v1, kind: Secret, data: {}, metadata: {name: db, namespace: kube-system}}"
	ownSecret    = "{apiVersion: v1, kind: Secret, data: {}, metadata: {name: db, namespace: own}}"
)

const ofNamespaces = "name: r\nmatch: {any: [{resources: {kinds: [Namespace]}}]}\n"

// TestClones: which objects are copied, and what a copy has of its source.
func TestClones(t *testing.T) {
	const into = "generate: {apiVersion: v1, kind: Secret, name: regcred, namespace: '{{request.object.metadata.name}}', "
	all := []string{pullSecret, plainSecret, settings, token, dbSecret, ownSecret}
	for _, c := range []struct {
		reason, namespace, rule string
		want                    []string // the names of the copies
		missing                 string
		err                     string
	}{
		{reason: "one object", rule: into + "clone: {name: regcred, namespace: platform}}", want: []string{"Secret shop/regcred"}},
		{reason: "one that does not exist", rule: into + "clone: {name: absent, namespace: platform}}", missing: "Secret platform/absent"},
		{reason: "itself", rule: into + "clone: {name: regcred, namespace: shop}}"},
		{reason: "a list", rule: "generate: {namespace: '{{request.object.metadata.name}}', cloneList: {namespace: platform, kinds: [v1/Secret, v1/ConfigMap]}}",
			want: []string{"Secret shop/other", "Secret shop/regcred", "ConfigMap shop/settings"}},
		{reason: "a list by labels, without a token", rule: "generate: {namespace: shop, cloneList: {namespace: platform, kinds: [v1/Secret, v1/ConfigMap], selector: {matchLabels: {copied: 'yes'}}}}",
			want: []string{"Secret shop/regcred", "ConfigMap shop/settings"}},
		{reason: "a list of its own namespace", rule: "generate: {namespace: platform, cloneList: {namespace: platform, kinds: [v1/Secret]}}"},
		{reason: "a list of nothing", rule: "generate: {namespace: shop, cloneList: {namespace: empty, kinds: [v1/Secret]}}"},
		{reason: "a loop", rule: "generate: {foreach: [{list: \"['regcred', 'other', 'absent']\", apiVersion: v1, kind: Secret, name: '{{element}}', namespace: shop, clone: {name: '{{element}}', namespace: platform}}]}",
			want: []string{"Secret shop/regcred", "Secret shop/other"}, missing: "Secret platform/absent"},
		{reason: "a list in a loop", rule: "generate: {foreach: [{list: \"['shop', 'store']\", namespace: '{{element}}', cloneList: {namespace: platform, kinds: [v1/ConfigMap]}}]}",
			want: []string{"ConfigMap shop/settings", "ConfigMap store/settings"}},
		{reason: "data and copies in loops", rule: "generate: {foreach: [{list: \"['a']\", apiVersion: v1, kind: ConfigMap, name: made, namespace: shop, data: {}}, {list: \"['a']\", namespace: shop, cloneList: {namespace: platform, kinds: [v1/ConfigMap]}}]}",
			want: []string{"ConfigMap shop/made", "ConfigMap shop/settings"}},
		{reason: "a token of a service account", rule: into + "clone: {name: token, namespace: platform}}", err: "could act as its owner"},
		{reason: "a Secret that the author of the trigger names", rule: into + "clone: {name: '{{request.object.metadata.labels.pull}}', namespace: kube-system}}", err: "the policy does not name"},
		{reason: "a Secret of a namespace that the author of the trigger names", rule: into + "clone: {name: db, namespace: '{{request.object.metadata.labels.from}}'}}", err: "the policy does not name"},
		{reason: "Secrets of a namespace that the author of the trigger names", rule: "generate: {namespace: shop, cloneList: {namespace: '{{request.object.metadata.labels.from}}', kinds: [v1/Secret]}}", err: "the policy does not name"},
		{reason: "ConfigMaps of a namespace that the author of the trigger names, without any", rule: "generate: {namespace: shop, cloneList: {namespace: '{{request.object.metadata.labels.from}}', kinds: [v1/ConfigMap]}}"},
		{reason: "a name that is empty", rule: into + "clone: {name: \"{{request.object.metadata.labels.none || ''}}\", namespace: platform}}", err: "is empty once"},
		{reason: "a list from no namespace", rule: "generate: {namespace: shop, cloneList: {namespace: \"{{request.object.metadata.labels.none || ''}}\", kinds: [v1/ConfigMap]}}", err: "must not be empty"},
	} {
		got := generation(t, c.namespace, ofNamespaces+c.rule).Generate(t.Context(), policy.Case{Subject: subject(t, newNamespace, policy.User{}), Sources: newCluster(t, all...)})
		var names []string
		for _, made := range got.Objects {
			metadata := made.Object["metadata"].(map[string]any)
			names = append(names, made.Object["kind"].(string)+" "+metadata["namespace"].(string)+"/"+metadata["name"].(string))
			if metadata["name"] == "regcred" && !reflect.DeepEqual(made.Object, decoded(t, copiedSecret)) {
				t.Errorf("%s: copy %v", c.reason, made.Object)
			}
		}
		var missing []string
		for _, ref := range got.Missing {
			missing = append(missing, ref.String())
		}
		if c.err != "" {
			if got.Result != policy.Indeterminate || len(got.Objects) > 0 || !strings.Contains(got.Reasons[0].Message, c.err) {
				t.Errorf("%s: %+v, want an error with %q", c.reason, got, c.err)
			}
			continue
		}
		if got.Result != policy.Pass || !slices.Equal(names, c.want) || strings.Join(missing, " ") != c.missing {
			t.Errorf("%s: %s %v, copies %q, missing %q", c.reason, got.Result, got.Reasons, names, missing)
		}
	}
}

// TestClonesAreUndecided: what cannot be read does not count as absent, since copies would then be deleted.
func TestClonesAreUndecided(t *testing.T) {
	g := generation(t, "", ofNamespaces+"generate: {foreach: [{list: \"['a']\", apiVersion: v1, kind: ConfigMap, name: made, namespace: shop, data: {}}, {list: \"['a']\", apiVersion: v1, kind: ConfigMap, name: b, namespace: shop, clone: {name: settings, namespace: platform}}]}")
	about := policy.Case{Subject: subject(t, newNamespace, policy.User{})}
	for reason, sources := range map[string]source.Objects{
		"no cluster": nil, "no permission": cluster{err: errors.New("forbidden")},
	} {
		about.Sources = sources
		if got := g.Generate(t.Context(), about); got.Result != policy.Indeterminate || len(got.Objects)+len(got.Missing) > 0 {
			t.Errorf("%s: %+v", reason, got)
		}
	}
	about.Sources = newCluster(t, settings)
	if got := g.Generate(t.Context(), about); got.Result != policy.Pass || len(got.Objects) != 2 || len(got.Sources) != 1 {
		t.Errorf("%+v", got)
	}
}

// TestClonesOfAPolicy: a Policy neither reads nor writes beyond its namespace.
func TestClonesOfAPolicy(t *testing.T) {
	const trigger = "{apiVersion: v1, kind: ConfigMap, metadata: {name: db, namespace: own}, data: {from: kube-system, to: shop}}"
	const of = "name: r\nmatch: {any: [{resources: {kinds: [ConfigMap]}}]}\n"
	for _, c := range []struct{ reason, rule, err string }{
		{"within it", "generate: {apiVersion: v1, kind: Secret, name: copy, namespace: own, clone: {name: '{{request.object.metadata.name}}-x', namespace: own}}", "the policy does not name"},
		{"within it, by name", "generate: {apiVersion: v1, kind: Secret, name: copy, namespace: own, clone: {name: db, namespace: own}}", ""},
		{"from another", "generate: {apiVersion: v1, kind: ConfigMap, name: copy, namespace: own, clone: {name: db, namespace: '{{request.object.data.from}}'}}", "reads its own namespace alone"},
		{"into another", "generate: {apiVersion: v1, kind: Secret, name: copy, namespace: '{{request.object.data.to}}', clone: {name: db, namespace: own}}", "cannot generate into"},
		{"a list from another", "generate: {namespace: own, cloneList: {kinds: [v1/ConfigMap], namespace: '{{request.object.data.from}}'}}", "reads its own namespace alone"},
		{"a list into another", "generate: {namespace: '{{request.object.data.to}}', cloneList: {kinds: [v1/ConfigMap], namespace: own}}", "cannot generate into"},
	} {
		got := generation(t, "own", of+c.rule).Generate(t.Context(), policy.Case{Subject: subject(t, trigger, policy.User{}), Sources: newCluster(t, ownSecret, dbSecret)})
		switch {
		case c.err == "" && (got.Result != policy.Pass || len(got.Objects) != 1):
			t.Errorf("%s: %+v", c.reason, got)
		case c.err != "" && (got.Result != policy.Indeterminate || !strings.Contains(got.Reasons[0].Message, c.err)):
			t.Errorf("%s: %+v, want an error with %q", c.reason, got, c.err)
		}
	}
}

// TestClonesRefused: clones that could never be made.
func TestClonesRefused(t *testing.T) {
	const secret, list = "generate: {apiVersion: v1, kind: Secret, name: a, namespace: b, ", "generate: {namespace: b, cloneList: "
	for _, c := range []struct{ reason, namespace, rule, path string }{
		{"no name", "", secret + "clone: {namespace: c}}", "generate.clone.name: is empty"},
		{"no namespace", "", secret + "clone: {name: a}}", "generate.clone.namespace: is missing"},
		{"a namespace of an object that is in none", "", "generate: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: a, clone: {name: b, namespace: c}}", "generate.clone.namespace: a ClusterRole is in no namespace"},
		{"a misspelt field", "", secret + "clone: {name: a, nameSpace: c}}", "generate.clone.nameSpace"},
		{"a selector", "", secret + "clone: {name: a, namespace: c, selector: {}}}", "generate.clone.selector"},
		{"data, too", "", secret + "data: {}, clone: {name: a, namespace: c}}", "want one of data, clone and cloneList"},
		{"a clone and a list", "", secret + "cloneList: {namespace: c, kinds: [v1/Secret]}, clone: {name: a, namespace: c}}", "want one of data, clone and cloneList"},
		{"a variable that nothing defines", "", secret + "clone: {name: '{{ nowhere }}', namespace: c}}", "generate.clone: a variable reads nowhere"},
		{"no expression", "", secret + "clone: {name: '{{ a. }}', namespace: c}}", "generate.clone.name"},
		{"another namespace than the Policy's", "b", secret + "clone: {name: a, namespace: c}}", "generate.clone.namespace: a Policy in namespace b cannot copy objects of"},
		{"a list from another namespace than the Policy's", "b", list + "{namespace: c, kinds: [v1/Secret]}}", "generate.cloneList.namespace: a Policy in namespace b cannot"},
		{"a list into another namespace than the Policy's", "c", list + "{namespace: c, kinds: [v1/Secret]}}", "generate.namespace: a Policy in namespace c cannot"},
		{"a list without kinds", "", list + "{namespace: c}}", "generate.cloneList.kinds: want 1 to 50"},
		{"a list of too many kinds", "", list + "{namespace: c, kinds: [" + strings.Repeat("v1/Secret, ", 51) + "]}}", "generate.cloneList.kinds: want 1 to 50"},
		{"a list from nowhere", "", list + "{kinds: [v1/Secret]}}", "generate.cloneList.namespace: is missing"},
		{"a list into nowhere", "", "generate: {cloneList: {namespace: c, kinds: [v1/Secret]}}", "generate.namespace: is missing"},
		{"a list with a name", "", "generate: {name: a, namespace: b, cloneList: {namespace: c, kinds: [v1/Secret]}}", "generate.name: is of one object"},
		{"a kind without its version", "", list + "{namespace: c, kinds: [Secret]}}", "generate.cloneList.kinds[0]: \"Secret\": want VERSION/KIND"},
		{"every kind", "", list + "{namespace: c, kinds: ['*/*']}}", "generate.cloneList.kinds[0]"},
		{"a kind of no namespace", "", list + "{namespace: c, kinds: [v1/Namespace]}}", "generate.cloneList.kinds[0]: a Namespace, which is in no namespace"},
		{"a selector by the trigger", "", list + "{namespace: c, kinds: [v1/Secret], selector: {matchLabels: {a: '{{request.namespace}}'}}}}", "generate.cloneList.selector"},
		{"a selector by a pattern", "", list + "{namespace: c, kinds: [v1/Secret], selector: {matchLabels: {a: 'b*'}}}}", "generate.cloneList.selector"},
		{"a selector that no labels meet", "", list + "{namespace: c, kinds: [v1/Secret], selector: {matchExpressions: [{key: a, operator: Exists}, {key: a, operator: DoesNotExist}]}}}", "generate.cloneList.selector"},
	} {
		triggers := ofNamespaces
		if c.namespace != "" {
			triggers = ofMaps
		}
		if err := compileRule(t, c.namespace, triggers+c.rule); err == nil || !strings.Contains(err.Error(), c.path) {
			t.Errorf("%s: %v, want %s", c.reason, err, c.path)
		}
	}
}
