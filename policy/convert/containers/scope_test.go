package containers_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy/convert"
	"github.com/quaymaster/quaymaster/policy/convert/internal/converttest"
)

// choice is the documented look-up of policy.json: the image itself, its
// repository, the namespaces above it, the registry, wildcards of its domain, and the
// default.
func choice(scopes []string, name, identity string) string {
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

// TestMostSpecific compares the policies that match an image with the scope that the source
// looks up, over sets of scopes that overlap in many ways.
func TestMostSpecific(t *testing.T) {
	pool := []string{
		"docker.io", "docker.io/library", "docker.io/library/nginx", "docker.io/library/nginx:1", "docker.io/library/nginx@" + converttest.Digest, "*.io",
		"example.com", "example.com:5000", "example.com/a", "example.com/a/b", "example.com/a/b:v1", "example.com/a/b/c", "example.com:5000/a",
		"*.example.com", "*.com", "r.example.com", "r.example.com/x", "*.r.example.com", "*.q.example.com", "s.r.example.com:5000/x/y",
	}
	images := map[string][2]string{ // name and identity as containers/image has them
		"nginx": {"docker.io/library/nginx", ":latest"}, "docker.io/nginx:1": {"docker.io/library/nginx", ":1"}, "nginx:1@" + converttest.Digest: {"docker.io/library/nginx", "@" + converttest.Digest},
		"acme/nginx": {"docker.io/acme/nginx", ":latest"}, "example.com/a/b:v1": {"example.com/a/b", ":v1"}, "example.com/a/b:v10": {"example.com/a/b", ":v10"},
		"example.com/a/b/c/d": {"example.com/a/b/c/d", ":latest"}, "example.com/ab": {"example.com/ab", ":latest"}, "example.com:5000/a:v1": {"example.com:5000/a", ":v1"},
		"r.example.com/x/y": {"r.example.com/x/y", ":latest"}, "r.example.com:5000/x": {"r.example.com:5000/x", ":latest"}, "s.r.example.com:5000/x/y/z": {"s.r.example.com:5000/x/y/z", ":latest"},
		"notexample.com/a": {"notexample.com/a", ":latest"}, "example.comx/a": {"example.comx/a", ":latest"}, "quay.io/example.com/a": {"quay.io/example.com/a", ":latest"},
	}
	m := testkit.Must(converttest.NewMatcher())(t)
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
		list := testkit.Must(converttest.Policies(string(text), convert.Options{}))(t)
		for image, as := range images {
			var got []string
			for _, p := range list {
				if testkit.Must(m.Matches(p, image))(t) {
					scope := strings.Trim(strings.TrimPrefix(p.Spec.Validations[0].Message, "the policy rejects images of the scope "), `"`)
					if scope == "" {
						scope = "default"
					}
					got = append(got, scope)
				}
			}
			want := choice(chosen, as[0], as[1])
			if !slices.Equal(got, []string{want}) {
				t.Errorf("round %d, scopes %q, image %s: policies for %q, want %q", round, chosen, image, got, want)
			}
		}
	}
}
