package convert_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"go.yaml.in/yaml/v3"

	"github.com/quaymaster/quaymaster/policy/cel"
	"github.com/quaymaster/quaymaster/policy/convert"
)

// written is what these tests read of a policy that was written.
type written struct {
	Kind     string
	Metadata struct{ Name, Namespace string }
	Spec     struct {
		MatchImageReferences []struct{ Glob, Expression string } `yaml:"matchImageReferences"`
		Validations          []struct{ Expression, Message string }
	}
}

// policies reads what was written; text is the policy of the other system.
func policies(t testing.TB, text string, options convert.Options) []written {
	t.Helper()
	out, err := convert.Convert([]byte(text), options)
	if err != nil {
		t.Fatal(err)
	}
	var list []written
	for decoder := yaml.NewDecoder(bytes.NewReader(out)); ; {
		var one written
		if err := decoder.Decode(&one); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, out)
		}
		if one.Kind != "" {
			list = append(list, one)
		}
	}
}

// matcher evaluates the expressions of matchImageReferences as the dialect does.
type matcher struct {
	scope    *cel.Scope
	programs map[string]*cel.Program
}

func newMatcher(t testing.TB) *matcher {
	t.Helper()
	env, err := cel.NewEnv(cel.Options{Variables: []cel.Variable{{Name: "ref", Type: celgo.StringType}}})
	if err != nil {
		t.Fatal(err)
	}
	scope, err := env.NewScope()
	if err != nil {
		t.Fatal(err)
	}
	return &matcher{scope: scope, programs: map[string]*cel.Program{}}
}

// speaks reports whether a policy speaks of a reference, spelt as it is.
func (m *matcher) speaks(t testing.TB, p written, ref string) bool {
	t.Helper()
	for _, one := range p.Spec.MatchImageReferences {
		program, known := m.programs[one.Expression]
		if !known {
			var err error
			if program, err = m.scope.Compile("expression", one.Expression, celgo.BoolType); err != nil {
				t.Fatalf("policy %s: %v", p.Metadata.Name, err)
			}
			m.programs[one.Expression] = program
		}
		held, err := program.Bool(context.Background(), m.scope.NewActivation(cel.Inputs{Variables: map[string]any{"ref": ref}}))
		if err != nil {
			t.Fatalf("policy %s of %s: %v", p.Metadata.Name, ref, err)
		}
		if held {
			return true
		}
	}
	return false
}

// names returns the names of the policies that speak of a reference.
func (m *matcher) names(t testing.TB, list []written, ref string) []string {
	t.Helper()
	names := []string{}
	for _, p := range list {
		if m.speaks(t, p, ref) {
			names = append(names, p.Metadata.Name)
		}
	}
	return names
}

const digest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

// connaisseurName is the name that Connaisseur compares with its patterns.
func connaisseurName(ref string) string {
	rest, digest, _ := strings.Cut(ref, "@")
	name, tag := rest, ""
	if i := strings.LastIndexByte(rest, ':'); i > strings.LastIndexByte(rest, '/') {
		name, tag = rest[:i], rest[i:]
	}
	host, _, ok := strings.Cut(name, "/")
	switch {
	case !ok:
		name = "index.docker.io/library/" + name
	case host == "docker.io" || host == "index.docker.io":
		path := name[len(host)+1:]
		if !strings.Contains(path, "/") {
			path = "library/" + path
		}
		name = "index.docker.io/" + path
	case !strings.ContainsAny(host, ".:") && host != "localhost":
		name = "index.docker.io/" + name
	}
	if digest != "" {
		return name + tag + "@" + digest
	}
	if tag == "" {
		tag = ":latest"
	}
	return name + tag
}

// connaisseurChoice is Connaisseur's documented algorithm: of the patterns that fit,
// the one with most parts; then, from left to right, the longest beginning in common
// with the image's part; then, from left to right, the longest part. It returns all
// that are best.
func connaisseurChoice(patterns []string, name string) []string {
	rank := func(pattern string) []int {
		parts, of := strings.Split(pattern, "/"), strings.Split(name, "/")
		out := []int{len(parts)}
		for i, part := range parts {
			n := 0
			for n < len(part) && n < len(of[i]) && part[n] == of[i][n] {
				n++
			}
			out = append(out, n)
		}
		for _, part := range parts {
			out = append(out, len(part))
		}
		return out
	}
	var best []string
	for _, pattern := range patterns {
		quoted := strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(regexp.QuoteMeta(pattern))
		if !regexp.MustCompile(`^.*` + quoted + `.*$`).MatchString(name) {
			continue
		}
		switch {
		case len(best) == 0 || slices.Compare(rank(pattern), rank(best[0])) > 0:
			best = []string{pattern}
		case slices.Compare(rank(pattern), rank(best[0])) == 0:
			best = append(best, pattern)
		}
	}
	return best
}

// TestConnaisseurMostSpecific compares which policies speak of an image with which
// rule Connaisseur chooses, over sets of patterns that overlap in many ways.
func TestConnaisseurMostSpecific(t *testing.T) {
	pool := []string{
		"*:*", "*", "*/*", "docker*/*", "*/*/*", "*/*/image:v1", "*/sam*/*", "docker.i*/s*", "docker.io/*", "docker.io/library/*", "docker.io/library/nginx",
		"index.docker.io/library/*", "index.docker.io/lib*/nginx:1*", "library/nginx", "nginx:1.27", "nginx:?.27", "ghcr.io/*", "ghcr.io/acme/*", "ghcr.io/ac*/tools/*", "ghcr.io/acme/tools/a*",
		"ghcr.io/acme/*app", "ghcr.io/acme/a*p", "*@sha256:*", "*:v1", "registry.k8s.io/pause", "localhost:5000/*", "*.io/acme/app*", "acme/app:v?", "g*/acme/app", "gh*/ac/*",
	}
	images := []string{
		"nginx", "nginx:1.27", "library/nginx:1.27", "docker.io/nginx@" + digest, "index.docker.io/library/nginx:1.2", "docker.io/library/nginx:1.27@" + digest,
		"ghcr.io/acme/app", "ghcr.io/acme/app:v1", "ghcr.io/acme/tools/app:v1", "ghcr.io/acme/tools/b@" + digest, "ghcr.io/ac/tools/x", "registry.k8s.io/pause:3.9",
		"localhost:5000/app", "localhost:5000/ghcr.io/acme/app:v1", "quay.io/docker.io/library/nginx:1", "samples/image:v1", "docker.io/sample/image:v1", "quay.io/acme/app:v2", "gcr.io/acme/app",
	}
	m := newMatcher(t)
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 60 {
		var patterns []string
		for _, i := range random.Perm(len(pool))[:1+random.IntN(8)] {
			patterns = append(patterns, pool[i])
		}
		config := map[string]any{"validators": []any{map[string]any{"name": "default", "type": "static", "approve": false}}}
		var rules []any
		for _, p := range patterns {
			rules = append(rules, map[string]any{"pattern": p})
		}
		config["policy"] = rules
		text, err := json.Marshal(config)
		if err != nil {
			t.Fatal(err)
		}
		list := policies(t, string(text), convert.Options{})
		for _, image := range images {
			var got []string
			for _, p := range list {
				if !m.speaks(t, p, image) {
					continue
				}
				pattern, ok := strings.CutPrefix(p.Spec.Validations[0].Message, "the policy denies images of ")
				if !ok {
					pattern = "unmatched"
				}
				got = append(got, pattern)
			}
			want := connaisseurChoice(patterns, connaisseurName(image))
			if len(want) == 0 {
				want = []string{"unmatched"}
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("round %d, patterns %q, image %s (%s): policies for %q, want %q", round, patterns, image, connaisseurName(image), got, want)
			}
		}
	}
}

// containersChoice is the documented look-up of policy.json: the image itself, its
// repository, the namespaces above it, the registry, wildcards of its domain, and the
// default.
func containersChoice(scopes []string, name, identity string) string {
	tries := []string{name + identity}
	for rest := name; ; {
		tries = append(tries, rest)
		i := strings.LastIndexByte(rest, '/')
		if i < 0 {
			break
		}
		rest = rest[:i]
	}
	host, _, _ := strings.Cut(name, "/")
	host, _, _ = strings.Cut(host, ":")
	for {
		_, parent, ok := strings.Cut(host, ".")
		if !ok {
			break
		}
		host = parent
		tries = append(tries, "*."+host)
	}
	for _, try := range tries {
		if slices.Contains(scopes, try) {
			return try
		}
	}
	return "default"
}

func TestContainersMostSpecific(t *testing.T) {
	pool := []string{
		"docker.io", "docker.io/library", "docker.io/library/nginx", "docker.io/library/nginx:1", "docker.io/library/nginx@" + digest, "*.io",
		"example.com", "example.com:5000", "example.com/a", "example.com/a/b", "example.com/a/b:v1", "example.com/a/b/c", "example.com:5000/a",
		"*.example.com", "*.com", "r.example.com", "r.example.com/x", "*.r.example.com", "*.q.example.com", "s.r.example.com:5000/x/y",
	}
	images := map[string][2]string{ // name and identity as containers/image has them
		"nginx": {"docker.io/library/nginx", ":latest"}, "docker.io/nginx:1": {"docker.io/library/nginx", ":1"}, "nginx:1@" + digest: {"docker.io/library/nginx", "@" + digest},
		"acme/nginx": {"docker.io/acme/nginx", ":latest"}, "example.com/a/b:v1": {"example.com/a/b", ":v1"}, "example.com/a/b:v10": {"example.com/a/b", ":v10"},
		"example.com/a/b/c/d": {"example.com/a/b/c/d", ":latest"}, "example.com/ab": {"example.com/ab", ":latest"}, "example.com:5000/a:v1": {"example.com:5000/a", ":v1"},
		"r.example.com/x/y": {"r.example.com/x/y", ":latest"}, "r.example.com:5000/x": {"r.example.com:5000/x", ":latest"}, "s.r.example.com:5000/x/y/z": {"s.r.example.com:5000/x/y/z", ":latest"},
		"notexample.com/a": {"notexample.com/a", ":latest"}, "example.comx/a": {"example.comx/a", ":latest"}, "quay.io/example.com/a": {"quay.io/example.com/a", ":latest"},
	}
	m := newMatcher(t)
	random := rand.New(rand.NewPCG(3, 4))
	for round := range 60 {
		scopes := map[string]any{}
		var chosen []string
		for _, i := range random.Perm(len(pool))[:random.IntN(9)] {
			chosen = append(chosen, pool[i])
			scopes[pool[i]] = []any{map[string]any{"type": "reject"}}
		}
		text, err := json.Marshal(map[string]any{"default": []any{map[string]any{"type": "reject"}}, "transports": map[string]any{"docker": scopes}})
		if err != nil {
			t.Fatal(err)
		}
		list := policies(t, string(text), convert.Options{})
		for image, as := range images {
			var got []string
			for _, p := range list {
				if m.speaks(t, p, image) {
					scope := strings.Trim(strings.TrimPrefix(p.Spec.Validations[0].Message, "the policy rejects images of the scope "), `"`)
					if scope == "" {
						scope = "default"
					}
					got = append(got, scope)
				}
			}
			want := containersChoice(chosen, as[0], as[1])
			if !slices.Equal(got, []string{want}) {
				t.Errorf("round %d, scopes %q, image %s: policies for %q, want %q", round, chosen, image, got, want)
			}
		}
	}
}

// TestWhichPolicies says for the policies of testdata which of those that were
// written speak of an image: none where the source admits unseen.
func TestWhichPolicies(t *testing.T) {
	m := newMatcher(t)
	for file, table := range map[string]map[string][]string{
		"connaisseur.yaml": {
			"nginx:1.10": {"connaisseur-docker-io-library-any"}, "nginx:1.27": {"connaisseur-docker-io-library-nginx-1-2-any"},
			"registry.k8s.io/pause:3": {}, "evil.example/registry.k8s.io/pause:3": {}, "ghcr.io/acme/app": {"connaisseur-ghcr-io-acme-any"},
			"ghcr.io/acme/tools/app": {"connaisseur-ghcr-io-ac-any-tools-any"}, "quay.io/x/y": {"connaisseur-any-any"},
		},
		"notation.json": {
			"registry.acme-rockets.io/software/net-monitor:v1": {"notation-wabbit-images"}, "redis": {"notation-wabbit-images"},
			"registry.acme-rockets.io/software/net-monitor/x": {"notation-unmatched"}, "registry.acme-rockets.io/software/tools@" + digest: {"notation-builders"},
			"registry.acme-rockets.io/software/unsigned/net-utils": {}, "quay.io/redis": {"notation-unmatched"},
		},
		"notation-global.json": {"registry.acme-rockets.io/software/tools": {}, "nginx": {"notation-everything-else"}},
		"containers.json": {
			"registry.example.com/app": {"containers-registry-example-com"}, "registry.example.com/tools/x": {},
			"registry.example.com/tools/shell:stable": {"containers-registry-example-com-tools-shell-stable"}, "registry.example.com/tools/shell:stable@" + digest: {},
			"a.corp.example.com/locked/x": {"containers-a-corp-example-com-locked"}, "a.corp.example.com/x": {"containers-any-corp-example-com"}, "nginx": {"containers-default"},
		},
		"openshift.yaml": {
			"quay.io/acme/app": {"acme"}, "quay.io/acme/tools/x": {"acme-tools"}, "r.acme.example.com/x": {"acme"}, "quay.io/x": {"team"}, "nginx": {},
		},
		"ratify-cosign.yaml":   {"ghcr.io/acme/x": {"ratify-keyed"}, "ghcr.io/other/app:v1": {"ratify-keyed"}, "ghcr.io/other/app:v2": {"ratify-keyless"}},
		"ratify-notation.yaml": {"nginx": {"ratify-default"}},
		"ratify-executor.yaml": {
			"ghcr.io/acme/app": {"app"}, "ghcr.io/acme/app/x": {"registries"}, "a.azurecr.io/x": {"registries"}, "a.b.azurecr.io/x": {"ratify-unmatched"}, "nginx": {"ratify-unmatched"},
		},
		"sigstore.yaml": {
			"nginx": {"acme"}, "acme/nginx": {"sigstore-unmatched"}, "ghcr.io/acme/app:v1@" + digest: {"acme"}, "ghcr.io/acme/app/x": {"sigstore-unmatched"},
			"registry.k8s.io/a/b": {}, "quay.io/old/a/b": {"never"}, "registry.example.com/a/b/c": {"acme"},
		},
	} {
		list := policies(t, string(input(t, file)), rooted())
		for image, want := range table {
			if got := m.names(t, list, image); !slices.Equal(got, want) {
				t.Errorf("%s: the policies %q speak of %s, want %q", file, got, image, want)
			}
		}
	}
}

// TestKyvernoImages compares patterns with what policy/reference says of them.
func TestKyvernoImages(t *testing.T) {
	m := newMatcher(t)
	for _, c := range []struct {
		references, skip string
		image            string
		want             bool
	}{
		{`["ghcr.io/acme/*"]`, `["ghcr.io/acme/test:*"]`, "ghcr.io/acme/app", true},
		{`["ghcr.io/acme/*"]`, `["ghcr.io/acme/test:*"]`, "ghcr.io/acme/test:v1", false},
		{`["ghcr.io/acme/*"]`, `["ghcr.io/acme/test:*"]`, "ghcr.io/acme/test@" + digest, true},
		{`["ghcr.io/acme/*"]`, `["ghcr.io/acme/test*"]`, "ghcr.io/acme/test@" + digest, false},
		{`["ghcr.io/acme/*"]`, `["ghcr.io/acme/test"]`, "ghcr.io/acme/test:v1", true},
		{`["nginx"]`, `["x"]`, "docker.io/library/nginx:1", true},
		{`["nginx*"]`, `["x"]`, "nginx@" + digest, true},
		{`["docker.io/nginx:1.*"]`, `["x"]`, "nginx:1.27", true},
		{`["docker.io/nginx:1.*"]`, `["docker.io/nginx:1.27"]`, "index.docker.io/library/nginx:1.27", false},
		{`["*"]`, `["quay.io/*"]`, "quay.io/x/y:1", false},
		{`["*"]`, `["quay.io/*"]`, "evil.example/quay.io/x", true},
		{`["registry.example.com/app:*"]`, `["x"]`, "registry.example.com/app@" + digest, true},
		{`["registry.example.com/app"]`, `["x"]`, "registry.example.com/app/x:1", false},
	} {
		text := fmt.Sprintf(`{"apiVersion":"kyverno.io/v1","kind":"ClusterPolicy","metadata":{"name":"p"},"spec":{"rules":[{"name":"r","match":{"resources":{"kinds":["Pod"]}},
			"verifyImages":[{"imageReferences":%s,"skipImageReferences":%s,"required":false}]}]}}`, c.references, c.skip)
		if got := m.speaks(t, policies(t, text, convert.Options{})[0], c.image); got != c.want {
			t.Errorf("%s without %s: speaks of %s: %v, want %v", c.references, c.skip, c.image, got, c.want)
		}
	}
}
