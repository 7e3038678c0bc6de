package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/image/mirror"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

// The rows of TestGaps from 9 on.

// secretText is a pull secret of the namespace shop.
func secretText(name string) string {
	return "apiVersion: v1\nkind: Secret\nmetadata: {name: " + name + ", namespace: shop}\ntype: kubernetes.io/dockerconfigjson\nstringData: {.dockerconfigjson: '{\"auths\":{}}'}\n"
}

func pullSecrets(t *testing.T, r *mirroredEnv) {
	copyTo(r.near, "signed", "v1", "1")
	r.write(t, "policies/secrets.yaml", secretText("a")+"---\n"+secretText("b"))
	g := r.open(t, ", pullSecrets: [a, b, absent]")
	a := g.create(t, with(t, podOf(r.signed.Name), func(o object) {
		o["spec"].(object)["imagePullSecrets"] = []any{object{"name": "own"}, object{"name": "b"}}
	}))
	admitted(t, "one is not there", a, at(r.near, r.signed), "absent")
	if got := fmt.Sprint(a.stored["spec"].(object)["imagePullSecrets"]); got != "[map[name:own] map[name:b] map[name:a]]" {
		t.Errorf("the pod has %s", got)
	}
	if alone := g.create(t, podOf("unmapped.example/app@"+r.signed.Manifest.Digest)); !alone.Allowed || len(alone.operations) != 0 {
		t.Errorf("a pod that is not redirected: allowed %t, %v", alone.Allowed, alone.operations)
	}
}

func dryRun(t *testing.T, r *mirroredEnv) {
	copyTo(r.near, "signed", "v1", "1")
	r.write(t, "tokens", ciToken+",ci\n")
	g := r.open(t, "", "endpoints: {api: {tokens: "+filepath.Join(r.folder, "tokens")+", users: [ci]}}\n")
	dry := func(request object) { request["dryRun"] = true }
	made, would := g.create(t, podOf(r.signed.Name)), g.admit(t, "/mutate", podOf(r.signed.Name), nil, dry)
	admitted(t, "a dry run", would, at(r.near, r.signed), "")
	same(t, "it is answered as the real one", would.stored, made.stored)
	admitted(t, "a dry run of a denied image", g.admit(t, "/mutate", podOf(r.unsigned.Name), nil, dry), "", "unsigned")
	for image, want := range map[string]string{r.signed.Name: `"target": "` + at(r.near, r.signed) + `"`, r.unsigned.Name: `"result": "deny"`} {
		if status, text := post(t, g.client, "https://"+g.address+config.APIPath, ciToken, apiQuery(image)); status != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%s: HTTP %d, want %s in %s", image, status, want, text)
		}
	}
}

func lint(t *testing.T, _ *mirroredEnv) {
	mapping := func(entries string) (*mirror.Set, error) {
		documents, err := mirror.ParseFile([]byte("apiVersion: quaymaster.dev/v1alpha1\nkind: RegistryMirror\nmetadata: {name: m}\nspec: {mirrors: ["+entries+"]}\n"), "m.yaml")
		if err != nil {
			return nil, err
		}
		return mirror.NewSet(documents...)
	}
	for _, row := range []struct{ reason, entries, finding, image, target string }{
		{"an alias", "{sources: [docker.io], targets: [{location: a.corp/hub}]}", "", "registry-1.docker.io/library/nginx:1", "a.corp/hub/library/nginx:1"},
		{"another", "{sources: [index.docker.io], targets: [{location: a.corp/hub}]}", "", "nginx:1", "a.corp/hub/library/nginx:1"},
		{"a third", "{sources: [docker.io], targets: [{location: a.corp/hub}]}", "", "registry.hub.docker.com/library/nginx:1", "a.corp/hub/library/nginx:1"},
		{"a port", "{sources: ['corp:5000'], targets: [{location: 'a.corp:5000/x'}]}", "", "corp:5000/a:1", "a.corp:5000/x/a:1"},
		{"the other port", "{sources: ['corp:5000'], targets: [{location: 'a.corp:5000/x'}]}", "", "corp:5001/a:1", ""},
		{"IPv6", "{sources: ['[2001:db8::1]:5000'], targets: [{location: a.corp/six}]}", "", "[2001:DB8:0::1]:5000/a:1", "a.corp/six/a:1"},
		{"the longest prefix", "{sources: [ghcr.io], targets: [{location: a.corp}]}, {sources: [ghcr.io/acme], targets: [{location: b.corp}]}", "", "ghcr.io/acme/x:1", "b.corp/acme/x:1"},
		{"in whole components", "{sources: [ghcr.io], targets: [{location: a.corp}]}, {sources: [ghcr.io/acme], targets: [{location: b.corp}]}", "", "ghcr.io/acme-tools/x:1", "a.corp/acme-tools/x:1"},
		{"a loop", "{sources: [a.corp], targets: [{location: b.corp}]}, {sources: [b.corp], targets: [{location: a.corp}]}", "copies there are recognised and left alone", "", ""},
		{"an entry that an earlier one shadows", "{sources: [a.corp], targets: [{location: b.corp}]}, {sources: [a.corp], targets: [{location: c.corp}]}", "and comes first", "", ""},
	} {
		set, err := mapping(row.entries)
		if err != nil {
			t.Errorf("%s: %v", row.reason, err)
			continue
		}
		if found := fmt.Sprint(set.Check()); !strings.Contains(found, row.finding) || row.finding == "" && found != "[]" {
			t.Errorf("%s: found %s, want %q", row.reason, found, row.finding)
		}
		if row.image == "" {
			continue
		}
		route, err := set.Route(image.MustParse(row.image), mirror.Subject{NamespaceKnown: true})
		target := ""
		if route != nil {
			target = route.Candidates[0].Ref.String()
		}
		if err != nil || target != row.target {
			t.Errorf("%s: %s leads to %q, want %q (%v)", row.reason, row.image, target, row.target, err)
		}
	}
	for reason, entries := range map[string]string{
		"a mapping that cannot be inverted":     "{sources: [a.corp], targets: [{location: b.corp, path: Template, template: all}]}",
		"a prefix that no reference can have":   "{sources: [a.corp/Upper], targets: [{location: b.corp}]}",
		"an unknown field":                      "{sources: [a.corp], target: [{location: b.corp}]}",
		"a scheme, which no reference can have": "{sources: ['https://a.corp'], targets: [{location: b.corp}]}",
	} {
		if _, err := mapping(entries); err == nil {
			t.Errorf("%s is accepted", reason)
		}
	}
}

func driftAvoided(t *testing.T, r *mirroredEnv) {
	copyTo(r.near, "signed", "v1", "1")
	deployment := func(image string) object {
		return reviewOf("Deployment", "shop", image)["request"].(object)["object"].(object)
	}
	owned := with(t, podOf(r.signed.Name), func(o object) {
		o["metadata"].(object)["ownerReferences"] = []any{object{"apiVersion": "postgresql.cnpg.io/v1", "kind": "Cluster", "name": "db", "uid": "1", "controller": true}}
	})
	g := r.open(t, ", excludeOwners: [{group: postgresql.cnpg.io, kind: Cluster}]")
	pod := g.create(t, podOf(r.signed.Name))
	admitted(t, "a Pod", pod, at(r.near, r.signed), "")
	for _, op := range pod.operations {
		if op.Path != "/spec/containers/0/image" && !strings.HasPrefix(op.Path, "/metadata/annotations") {
			t.Errorf("more than the image's text is touched: %+v", op)
		}
	}
	if a := g.create(t, deployment(r.signed.Name)); !a.Allowed || len(a.operations) != 0 {
		t.Errorf("a template: allowed %t, %v", a.Allowed, a.operations)
	}
	if a := g.validate(t, deployment(r.unsigned.Name), nil); a.Allowed {
		t.Error("a template of an unsigned image is admitted")
	}
	admitted(t, "an owner that compares its pods", g.create(t, owned), pinned(r.signed), "")
	if err := g.end(t); err != nil {
		t.Error(err)
	}
	g = r.open(t, "", "webhooks: {mutateControllers: [Deployment]}\n")
	if a := g.create(t, deployment(r.signed.Name)); !a.Allowed || !strings.Contains(string(a.Patch), at(r.near, r.signed)) {
		t.Errorf("a template by choice: allowed %t, %s", a.Allowed, a.Patch)
	}
}

func everyPlace(t *testing.T, r *mirroredEnv) {
	copyTo(r.near, "signed", "v1", "1")
	r.write(t, "policies/tasks.yaml", strings.NewReplacer(
		"name: signed", "name: tasks", "kinds: [Pod]", "kinds: [Task]",
		"      verifyImages:", "      imageExtractors: {Task: [{name: steps, path: /spec/podTemplate/spec/containers/*/image}]}\n      verifyImages:",
	).Replace(r.policy()))
	g := r.open(t, "")
	all := func(image string) object {
		return with(t, podOf(r.signed.Name), func(o object) {
			spec := o["spec"].(object)
			spec["initContainers"] = []any{object{"name": "init", "image": r.signed.Name}}
			spec["volumes"] = []any{object{"name": "data", "image": object{"reference": image}}}
		})
	}
	first := g.create(t, all(r.signed.Name))
	admitted(t, "container, init container and volume", first, at(r.near, r.signed), "")
	text, err := json.Marshal(first.stored["spec"])
	if n := strings.Count(string(text), at(r.near, r.signed)); err != nil || n != 3 {
		t.Errorf("%d places are redirected, want 3: %s", n, text)
	}
	admitted(t, "a volume of an unsigned image", g.create(t, all(r.unsigned.Name)), "", "unsigned")
	debug := func(image string) reply {
		now := with(t, first.stored, func(o object) {
			o["spec"].(object)["ephemeralContainers"] = []any{object{"name": "debug", "image": image}}
		})
		return g.admit(t, "/mutate", now, first.stored, func(request object) { request["subResource"] = "ephemeralcontainers" })
	}
	added := debug(r.signed.Name)
	if list := fmt.Sprint(added.stored["spec"].(object)["ephemeralContainers"]); !added.Allowed || !strings.Contains(list, at(r.near, r.signed)) {
		t.Errorf("an ephemeral container: allowed %t, %s, %s", added.Allowed, list, added.text())
	}
	admitted(t, "an ephemeral container of an unsigned image", debug(r.unsigned.Name), "", "unsigned")
	task := func(endpoint, image string) reply {
		o := object{
			"apiVersion": "example.com/v1", "kind": "Task", "metadata": object{"name": "app", "namespace": "shop"},
			"spec": object{"podTemplate": object{"spec": podOf(image)["spec"]}},
		}
		return g.admit(t, endpoint, o, nil, func(request object) {
			kind, resource := object{"group": "example.com", "version": "v1", "kind": "Task"}, object{"group": "example.com", "version": "v1", "resource": "tasks"}
			request["kind"], request["requestKind"], request["resource"], request["requestResource"] = kind, kind, resource, resource
		})
	}
	if a := task("/validate", pinned(r.signed)); !a.Allowed || len(a.operations) != 0 {
		t.Errorf("a custom resource: allowed %t, %v, %s", a.Allowed, a.operations, a.text())
	}
	if a := task("/mutate", r.signed.Name); !a.Allowed || !strings.Contains(string(a.Patch), pinned(r.signed)) {
		t.Errorf("a custom resource is pinned, and not redirected: allowed %t, %s", a.Allowed, a.Patch)
	}
	if a := task("/validate", r.signed.Name); a.Allowed || !strings.Contains(a.text(), "missing-digest") {
		t.Errorf("a custom resource that was not pinned: allowed %t, %s", a.Allowed, a.text())
	}
	if a := task("/validate", r.unsigned.Name); a.Allowed || !strings.Contains(a.text(), "unsigned") {
		t.Errorf("a custom resource of an unsigned image: allowed %t, %s", a.Allowed, a.text())
	}
}

// cache is a pull-through cache that is empty until a GET of its tag.
func cache(yard *gatetest.Yard, repository, tag string) {
	var filled atomic.Bool
	yard.Registry.SetFaults(registrytest.Fault{Kind: registrytest.Manifest, Repository: repository, Do: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if q.Method == http.MethodGet && strings.HasSuffix(q.URL.Path, "/"+tag) {
				filled.Store(true)
			}
			if !filled.Load() {
				http.NotFound(w, q)
				return
			}
			next.ServeHTTP(w, q)
		})
	}})
}

func filledByTag(t *testing.T, r *mirroredEnv) {
	copyTo(r.near, "signed", "v1", "1")
	cache(r.near, "hub/signed", "v1")
	location := r.near.Registry.Host() + "/hub"
	g := r.openTo(t, "{location: "+location+"}", "")
	admitted(t, "asked for the digest, it has none", g.create(t, podOf(pinned(r.signed))), pinned(r.signed), "not-mirrored")
	if err := g.end(t); err != nil {
		t.Error(err)
	}
	g = r.openTo(t, "{location: "+location+", fill: ByTag}", "")
	admitted(t, "asked for the tag first", g.create(t, podOf(pinned(r.signed))), at(r.near, r.signed), "")
	lag := r.build(t, "lag", "v1", "new")
	copyTo(r.near, "lag", "v1", "old")
	cache(r.near, "hub/lag", "v1")
	admitted(t, "it filled itself with other bytes", g.create(t, podOf(pinned(lag))), pinned(lag), "has another digest behind the tag")
}

func lagTold(t *testing.T, r *mirroredEnv) {
	image := r.build(t, "lag", "v1", "new")
	old := copyTo(r.near, "lag", "v1", "old")
	r.write(t, "tokens", ciToken+",ci\n")
	more := "endpoints: {api: {tokens: " + filepath.Join(r.folder, "tokens") + ", users: [ci]}}\nages: {tag: 1m, none: 1ms}\n"
	both := func(a reply, g *running) {
		t.Helper()
		_, text := post(t, g.client, "https://"+g.address+config.APIPath, ciToken, apiQuery(image.Name))
		for _, digest := range []string{image.Manifest.Digest, old.Manifest.Digest} {
			if !strings.Contains(a.text(), digest[:len("sha256:")+12]) || !strings.Contains(text, digest) {
				t.Errorf("not reported: %s: %s\n%s", digest, a.text(), text)
			}
		}
		if err := g.end(t); err != nil {
			t.Error(err)
		}
	}
	g := r.open(t, "", more)
	a := g.create(t, podOf(image.Name))
	admitted(t, "the source's tag counts", a, pinned(image), "mirror-differs")
	both(a, g)
	g = r.open(t, ", resolve: Target", more)
	admitted(t, "the mirror's counts, and is unsigned", g.create(t, podOf(image.Name)), "", "unsigned")
	r.sign(t, r.near, old)
	if err := g.end(t); err != nil {
		t.Error(err)
	}
	g = r.open(t, ", resolve: Target", more)
	a = g.create(t, podOf(image.Name))
	admitted(t, "the mirror's counts, and it is signed", a, r.near.Registry.Host()+"/hub/lag:v1@"+old.Manifest.Digest, "mirror-differs")
	both(a, g)
}
