package engine

import (
	"testing"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
)

func TestExplain(t *testing.T) {
	ref := func(text string) image.Ref {
		parsed, err := image.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	written := policy.Image{Ref: ref("nginx:1")}
	resources := func() []string { return []string{"clusterpolicies.kyverno.io", "policies.kyverno.io"} }
	for _, c := range []struct{ reason, got, want string }{
		{"folders", ExplainFromFolders([]string{"p", "my policies"})("shop", written), "quaymaster explain --policy p --policy 'my policies' --namespace shop nginx:1"},
		{"no namespace", ExplainFromFolders([]string{"p"})("", written), "quaymaster explain --policy p nginx:1"},
		{"a namespace that is a command", ExplainFromFolders([]string{"p"})("$(id)", written), "quaymaster explain --policy p --namespace '$(id)' nginx:1"},
		{"a copy is named as it stands", ExplainFromFolders([]string{"p"})("shop", policy.Image{Ref: ref("nginx:1"), Copy: ref("mirror.example/nginx:1")}),
			"quaymaster explain --policy p --namespace shop mirror.example/nginx:1"},
		{"a cluster", ExplainFromCluster(resources)("shop", written),
			"kubectl get clusterpolicies.kyverno.io,policies.kyverno.io -A -o yaml | quaymaster explain --policy /dev/stdin --namespace shop nginx:1"},
		{"a copy is judged by its source's name, which the mirrors know", ExplainFromCluster(resources)("shop", policy.Image{Ref: ref("nginx:1"), Copy: ref("mirror.example/nginx:1")}),
			"kubectl get clusterpolicies.kyverno.io,policies.kyverno.io -A -o yaml | quaymaster explain --policy /dev/stdin" +
				" --mirrors <(kubectl get registrymirrors.quaymaster.dev -o yaml) --namespace shop mirror.example/nginx:1"},
	} {
		if c.got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.reason, c.got, c.want)
		}
	}
}

func TestQuote(t *testing.T) {
	for text, want := range map[string]string{
		"a/b:c@d": "a/b:c@d", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$(id)": "'$(id)'", "a\nb": "'a\nb'", "`id`": "'`id`'",
	} {
		if got := Quote(text); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}
