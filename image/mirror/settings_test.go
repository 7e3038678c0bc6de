package mirror_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/image/mirror"
)

func route(t *testing.T, s *mirror.Set, ref string) *mirror.Route {
	t.Helper()
	r, err := s.Route(image.MustParse(ref), known())
	if err != nil || r == nil {
		t.Fatalf("%s: %v, %v", ref, r, err)
	}
	return r
}

// describe returns a route's settings except its candidates.
func describe(r *mirror.Route) string {
	parts := []string{r.Mirror, string(r.When), string(r.Otherwise), string(r.Resolve)}
	for _, e := range r.Evidence {
		parts = append(parts, e.String())
	}
	return strings.Join(append(parts, r.PullSecrets...), " ")
}

func TestSettings(t *testing.T) {
	const openshift = "apiVersion: config.openshift.io/v1\nkind: %KIND\nmetadata: {name: a}\nspec:\n  %LIST: [{source: quay.io/team, mirrors: [m.corp/team, n.corp], mirrorSourcePolicy: %POLICY}]\n"
	spell := func(kind, list, policy string) string {
		return strings.NewReplacer("%KIND", kind, "%LIST", list, "%POLICY", policy).Replace(openshift)
	}
	byTag, byDigest := "quay.io/team/x:1", "quay.io/team/x"+digest
	for _, test := range []struct{ reason, text, ref, want string }{
		{"the defaults", own("a", "{sources: [quay.io], targets: [{location: m.corp}, {location: n.corp}]}"), byTag,
			"RegistryMirror/a[0] Verified Source Source quay.io/team/x m.corp/team/x n.corp/team/x"},
		{"all else", own("a", "{sources: [ghcr.io], targets: [{location: m.corp}]}", "{sources: [quay.io], targets: [{location: m.corp}], when: Always, otherwise: Deny, resolve: Target, evidence: [Target, {repository: 'sigs.corp/{host}/{path}'}, {repository: sigs.corp/all}], pullSecrets: [p, q]}"), byTag,
			"RegistryMirror/a[1] Always Deny Target m.corp/team/x sigs.corp/quay.io/team/x sigs.corp/all p q"},
		{"evidence at the target's own name", own("a", "{sources: [quay.io], targets: [{location: m.corp}], evidence: [Target, {repository: 'm.corp/{path}'}]}"), byTag,
			"RegistryMirror/a[0] Verified Source Source m.corp/team/x"},
		{"pairs", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: ns}\ndata: {quay.io: m.corp/q}\n", byTag,
			"ConfigMap/ns/c[quay.io] Present Source Source quay.io/team/x m.corp/q/team/x"},
		{"by digest", spell("ImageDigestMirrorSet", "imageDigestMirrors", "AllowContactingSource"), byDigest,
			"ImageDigestMirrorSet/a[0] Present Source Source quay.io/team/x m.corp/team/x n.corp/x"},
		{"by digest, never the source", spell("ImageDigestMirrorSet", "imageDigestMirrors", "NeverContactSource"), byDigest,
			"ImageDigestMirrorSet/a[0] Present Deny Target m.corp/team/x n.corp/x"},
		{"by tag", spell("ImageTagMirrorSet", "imageTagMirrors", "AllowContactingSource"), byTag,
			"ImageTagMirrorSet/a[0] Present Source Target m.corp/team/x n.corp/x quay.io/team/x"},
		{"by tag, never the source", spell("ImageTagMirrorSet", "imageTagMirrors", "NeverContactSource"), byTag,
			"ImageTagMirrorSet/a[0] Present Deny Target m.corp/team/x n.corp/x"},
		{"the kind that came before", "apiVersion: operator.openshift.io/v1alpha1\nkind: ImageContentSourcePolicy\nmetadata: {name: a}\nspec: {repositoryDigestMirrors: [{source: quay.io/team, mirrors: [n.corp]}]}\n", byDigest,
			"ImageContentSourcePolicy/a[0] Present Source Source quay.io/team/x n.corp/x"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			if got := describe(route(t, set(t, test.text), test.ref)); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
	for reason, test := range map[string][2]string{
		"a set for digests leaves a tag":        {spell("ImageDigestMirrorSet", "imageDigestMirrors", "AllowContactingSource"), byTag},
		"a set for tags leaves a digest":        {spell("ImageTagMirrorSet", "imageTagMirrors", "AllowContactingSource"), byDigest},
		"a set for tags leaves tag with digest": {spell("ImageTagMirrorSet", "imageTagMirrors", "AllowContactingSource"), byTag + digest},
	} {
		if got := redirects(t, set(t, test[0]), test[1]); got != "none" {
			t.Errorf("%s: %s", reason, got)
		}
	}
}

func TestFill(t *testing.T) {
	r := route(t, set(t, own("a", "{sources: [quay.io], targets: [{location: m.corp, fill: ByTag}, {location: n.corp}]}")), "quay.io/x")
	if !r.Candidates[0].Fill || r.Candidates[1].Fill {
		t.Errorf("%+v", r.Candidates)
	}
}

func TestOriginSettings(t *testing.T) {
	s := set(t, own("a",
		"{sources: [quay.io], targets: [{location: m.corp/q}, {location: n.corp}], pullSecrets: [p], evidence: [Target, {repository: sigs.corp/all}]}",
		"{sources: [quay.io/team], targets: [{location: m.corp/q}], pullSecrets: [p, r]}"))
	origins := s.Origins(image.MustParse("m.corp/q/team/x:1"))
	if len(origins) != 1 {
		t.Fatalf("%v", origins)
	}
	o := origins[0]
	var where []string
	for _, e := range o.Evidence {
		where = append(where, e.String())
	}
	if want := []string{"m.corp/q/team/x", "sigs.corp/all", "quay.io/team/x"}; !reflect.DeepEqual(where, want) {
		t.Errorf("evidence: %v", where)
	}
	if o.Ref.String() != "quay.io/team/x:1" || o.Mirror != "RegistryMirror/a[0]" || !reflect.DeepEqual(o.PullSecrets, []string{"p", "r"}) {
		t.Errorf("%+v", o)
	}
}

func TestSelectors(t *testing.T) {
	const entry = "{sources: [quay.io], targets: [{location: m.corp}]"
	byNamespace := entry + ", namespaceSelector: {matchLabels: {team: shop}, matchExpressions: [{key: stage, operator: NotIn, values: [test]}]}}"
	byObject := entry + ", objectSelector: {matchExpressions: [{key: app, operator: Exists}, {key: stay, operator: DoesNotExist}, {key: app, operator: In, values: [a, b]}]}}"
	byOwner := entry + ", excludeOwners: [{group: postgresql.cnpg.io, kind: Cluster}]}"
	labels := func(pairs ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = pairs[i+1]
		}
		return m
	}
	namespace := func(pairs ...string) mirror.Subject {
		return mirror.Subject{NamespaceKnown: true, NamespaceLabels: labels(pairs...)}
	}
	object := func(pairs ...string) mirror.Subject { return mirror.Subject{Labels: labels(pairs...)} }
	owned := func(group, kind string) mirror.Subject {
		return mirror.Subject{Owners: []mirror.Owner{{Group: "apps", Kind: "ReplicaSet"}, {Group: group, Kind: kind}}}
	}
	for _, test := range []struct {
		reason, entry string
		about         mirror.Subject
		want          string
	}{
		{"the namespace", byNamespace, namespace("team", "shop"), "m.corp"},
		{"another namespace", byNamespace, namespace("team", "till"), "none"},
		{"a stage that is not meant", byNamespace, namespace("team", "shop", "stage", "test"), "none"},
		{"a namespace that is not known", byNamespace, mirror.Subject{}, "those are not known"},
		{"the object", byObject, object("app", "a"), "m.corp"},
		{"another object", byObject, object("app", "c"), "none"},
		{"an object that opts out", byObject, object("app", "a", "stay", ""), "none"},
		{"an object that is not known", byObject, mirror.Subject{Bare: true}, "those are not known"},
		{"no owner", byOwner, mirror.Subject{}, "m.corp"},
		{"another owner", byOwner, owned("example.com", "Cluster"), "m.corp"},
		{"an owner that compares pods", byOwner, owned("postgresql.cnpg.io", "Cluster"), "none"},
		{"owners that are not known", byOwner, mirror.Subject{Bare: true}, "those are not known"},
		{"the known part does not match", strings.Replace(byOwner, "excludeOwners", "namespaceSelector: {matchLabels: {a: b}}, excludeOwners", 1), mirror.Subject{Bare: true, NamespaceKnown: true}, "none"},
		{"an empty selector is for all", entry + ", namespaceSelector: {}, objectSelector: {}}", mirror.Subject{Bare: true}, "m.corp"},
		{"no selector is for all", entry + "}", mirror.Subject{Bare: true}, "m.corp"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			r, err := set(t, own("a", test.entry)).Route(image.MustParse("quay.io/x"), test.about)
			got := "none"
			if err != nil {
				got = err.Error()
			} else if r != nil {
				got = r.Candidates[0].Ref.Registry()
			}
			if got != test.want && !strings.Contains(got, test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
	s := set(t, own("a", byNamespace, "{sources: [quay.io], targets: [{location: n.corp}]}"))
	if got := redirects(t, s, "quay.io/x:1"); got != "n.corp/x:1" {
		t.Errorf("the next entry where the first does not match: %s", got)
	}
}

func TestCheck(t *testing.T) {
	const all = "{sources: [quay.io], targets: [{location: m.corp}]}"
	for _, test := range []struct{ reason, text, want string }{
		{"nothing", own("a", all), ""},
		{"shadowed", own("a", all) + own("b", "{sources: [quay.io], targets: [{location: n.corp}]}"), "RegistryMirror/b: spec.mirrors[0].sources[0]: RegistryMirror/a[0] maps quay.io for the same"},
		{"shadowed in one document", own("a", all, "{sources: [ghcr.io, quay.io], targets: [{location: n.corp}]}"), "spec.mirrors[1].sources[1]: RegistryMirror/a[0] maps quay.io"},
		{"shadowed by an equal selector", own("a", "{sources: [quay.io], targets: [{location: m.corp}], objectSelector: {matchLabels: {a: b}}}", "{sources: [quay.io], targets: [{location: n.corp}], objectSelector: {matchLabels: {a: b}}}"), "spec.mirrors[1].sources[0]: RegistryMirror/a[0] maps quay.io"},
		{"distinguished by a selector", own("a", "{sources: [quay.io], targets: [{location: m.corp}], objectSelector: {matchLabels: {a: b}}}", "{sources: [quay.io], targets: [{location: n.corp}]}"), ""},
		{"a longer prefix", own("a", all, "{sources: [quay.io/a], targets: [{location: n.corp}]}"), ""},
		{"a loop", own("a", "{sources: [quay.io], targets: [{location: m.corp/quay}]}", "{sources: [m.corp], targets: [{location: n.corp}]}"), "spec.mirrors[0].targets[0]: the target lies inside a source of RegistryMirror/a[1] (m.corp)"},
		{"a loop of its own", own("a", "{sources: [m.corp], targets: [{location: m.corp/cache}]}"), "inside a source of RegistryMirror/a[0] (m.corp)"},
		{"a source inside a target", own("a", "{sources: [quay.io], targets: [{location: m.corp}]}", "{sources: [m.corp/a], targets: [{location: n.corp}]}"), "spec.mirrors[1].sources[0]: m.corp/a lies inside a target of RegistryMirror/a[0]"},
		{"the source itself", own("a", "{sources: [quay.io], targets: [{location: m.corp}, {location: quay.io}]}"), "spec.mirrors[0].targets[1]: the target is the source quay.io itself"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			var got []string
			for _, f := range set(t, test.text).Check() {
				if f.Hint == "" {
					t.Errorf("%s: no hint", f.Message)
				}
				got = append(got, f.Where+": "+f.Message)
			}
			if text := strings.Join(got, "\n"); !strings.Contains(text, test.want) || (test.want == "") != (text == "") {
				t.Errorf("got %s, want %s", text, test.want)
			}
		})
	}
}
