package bundle_test

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy/bundle"
)

// TestFind: objects that a policy names are found wherever the dialects write them; a computed
// name is a gap.
func TestFind(t *testing.T) {
	for _, c := range []struct {
		reason, spec string
		maps, keys   []string
		gap          string
		user         bool
	}{
		{reason: "nothing", spec: `{rules: [{name: a}]}`},
		{reason: "a ConfigMap of a rule's context", spec: `{rules: [{context: [{name: c, configMap: {name: app, namespace: shop}}]}]}`, maps: []string{"shop/app"}},
		{reason: "without a namespace", spec: `{rules: [{context: [{configMap: {name: app}}]}]}`, maps: []string{"default/app"}},
		{reason: "a name that is made up", spec: `{rules: [{context: [{configMap: {name: "{{request.namespace}}", namespace: shop}}]}]}`, gap: "makes up the name of a ConfigMap"},
		{reason: "a namespace that is made up", spec: `{rules: [{context: [{configMap: {name: app, namespace: "{{request.namespace}}"}}]}]}`, gap: "makes up the name"},
		{reason: "a key in a Secret", spec: `{rules: [{verifyImages: [{attestors: [{entries: [{keys: {secret: {name: k, namespace: keys}}}]}]}]}]}`, keys: []string{"keys/k"}},
		{reason: "by a URI", spec: `{rules: [{verifyImages: [{attestors: [{entries: [{keys: {publicKeys: "k8s://keys/k"}}]}]}]}]}`, keys: []string{"keys/k"}},
		{reason: "of a ClusterImagePolicy", spec: `{authorities: [{key: {secretRef: {name: k}}}], policy: {configMapRef: {name: c, key: x}}}`, maps: []string{"cosign-system/c"}, keys: []string{"cosign-system/k"}},
		{reason: "an expression", spec: `{variables: [{expression: 'resource.Get("v1", "configmaps", "shop", "app").data.x'}]}`, maps: []string{"shop/app"}},
		{reason: "an expression of something else", spec: `{variables: [{expression: 'resource.Get("apps/v1", "deployments", "shop", "app")'}]}`, gap: "looks objects up"},
		{reason: "an expression of a name that is made up", spec: `{variables: [{expression: 'resource.Get("v1", "configmaps", namespaceObject.metadata.name, "app")'}]}`, gap: "looks objects up"},
		{reason: "a list", spec: `{variables: [{expression: 'resource.List("v1", "pods", "shop")'}]}`, gap: "looks objects up"},
		{reason: "a service", spec: `{variables: [{expression: 'http.Get("https://x.example")'}]}`, gap: "calls a service"},
		{reason: "a call", spec: `{rules: [{context: [{apiCall: {urlPath: /api/v1/pods}}]}]}`, gap: "apiCall"},
		{reason: "credentials", spec: `{credentials: {secrets: [pull]}}`, gap: "credentials"},
		{reason: "a part at an address", spec: `{policy: {remote: {url: "https://x.example", sha256sum: a}}}`, gap: "at an address"},
		{reason: "parameters", spec: `{validations: [], paramRef: {name: p, namespace: shop}}`, maps: []string{"shop/p"}, gap: "paramRef"},
		{reason: "a subject", spec: `{rules: [{match: {any: [{subjects: [{kind: User, name: a}]}]}}]}`, user: true},
		{reason: "a role", spec: `{rules: [{exclude: {any: [{clusterRoles: [admin]}]}}]}`, user: true},
		{reason: "a variable", spec: `{rules: [{mutate: {patchStrategicMerge: {x: "{{request.userInfo}}"}}}]}`, user: true},
	} {
		t.Run(c.reason, func(t *testing.T) {
			var document map[string]any
			if err := yaml.Unmarshal([]byte("spec: "+c.spec), &document); err != nil {
				t.Fatal(err)
			}
			found := bundle.Find(document, bundle.Defaults{})
			texts := func(list []bundle.Object) []string {
				var all []string
				for _, one := range list {
					all = append(all, one.String())
				}
				return all
			}
			if !slices.Equal(texts(found.ConfigMaps), c.maps) || !slices.Equal(texts(found.Secrets), c.keys) || found.AsksUser != c.user {
				t.Errorf("ConfigMaps %v, Secrets %v, user %t", found.ConfigMaps, found.Secrets, found.AsksUser)
			}
			if gaps := strings.Join(found.Gaps, "\n"); !strings.Contains(gaps, c.gap) || (gaps == "") != (c.gap == "") {
				t.Errorf("gaps %q, want %q", gaps, c.gap)
			}
		})
	}
}
