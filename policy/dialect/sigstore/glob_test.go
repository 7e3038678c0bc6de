package sigstore_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore"
)

const signedByKey = "  authorities: [{key: {data: $KEY}}]\n"

var digest = "sha256:" + strings.Repeat("a", 64)

// TestGlob: the globs of policy-controller, and no escape by spelling.
func TestGlob(t *testing.T) {
	for _, c := range []struct {
		glob, ref string
		want      bool
		reason    string
	}{
		{"*", "nginx", true, "* is the official images"},
		{"*", "docker.io/library/nginx:1", true, "in full"},
		{"*", "org/app", false, "* is no other image of Docker Hub"},
		{"*", "ghcr.io/app:v1", false, "* is nothing elsewhere"},
		{"*/*", "org/app:v1", true, "*/* is Docker Hub"},
		{"*/*", "nginx", true, "*/* is also the official images"},
		{"*/*", "ghcr.io/app:v1", false, "*/* is nothing elsewhere"},
		{"**", "ghcr.io/a/b/c:v1", true, "** is everything"},
		{"**", "nginx", true, "** is also Docker Hub"},
		{"index.docker.io/library/nginx:1", "nginx:1", true, "the name that policy-controller compares"},
		{"docker.io/library/nginx:1", "index.docker.io/library/nginx:1", true, "another name of Docker Hub"},
		{"docker.io/nginx:*", "nginx:1", true, "without library"},
		{"nginx*", "docker.io/library/nginx:1", true, "as it may be written, even if it is written otherwise"},
		{"nginx*", "ghcr.io/org/nginx:1", false, "elsewhere it is another image"},
		{"*.docker.io/library/nginx:1", "nginx:1", true, "a wildcard for the registry, which policy-controller calls index.docker.io"},
		{"registry-*.docker.io/org/*", "registry-1.docker.io/org/app:v1", true, "another name of Docker Hub"},
		{"registry-*.docker.io/org/*", "org/app:v1", true, "the same image by its usual name"},
		{"registry*/nginx:1", "nginx:1", true, "the same without library"},
		{"*.com/**", "registry.hub.docker.com/org/app:v1", true, "the name in another domain"},
		{"*.com/**", "registry.example/org/app:v1", false, "a registry of no such domain"},
		{"registry-*.docker.io/other/*", "registry-1.docker.io/org/app:v1", false, "another repository there"},
		{"ghcr.io/org/*", "ghcr.io/org/app:v1", true, "* and a tag"},
		{"ghcr.io/org/*", "ghcr.io/org/app@" + digest, true, "* and a digest"},
		{"ghcr.io/org/*", "ghcr.io/org/app:v1@" + digest, true, "* and both"},
		{"ghcr.io/org/*", "ghcr.io/org/team/app:v1", false, "* is no slash"},
		{"ghcr.io/org/**", "ghcr.io/org/team/app:v1", true, "** is slashes, too"},
		{"ghcr.io/org/**", "ghcr.io/organisation/app:v1", false, "a longer name is another one"},
		{"ghcr.io/org/**", "evil.io/ghcr.io/org/app:v1", false, "from the beginning"},
		{"ghcr.io/*/app:v1", "ghcr.io/org/app:v1", true, "* in the middle"},
		{"ghcr.io/*/app:v1", "ghcr.io/a/b/app:v1", false, "* in the middle is no slash"},
		{"GHCR.io/org/*", "ghcr.io/org/app:v1", true, "registries have no case"},
		{"ghcr.io/org/app", "ghcr.io/org/app:v1", true, "without a tag: every tag"},
		{"ghcr.io/org/app", "ghcr.io/org/app@" + digest, true, "without a tag: every digest"},
		{"ghcr.io/org/app", "ghcr.io/org/apps:v1", false, "without a tag: this name"},
		{"ghcr.io/org/app:*", "ghcr.io/org/app@" + digest, true, "every tag is every digest"},
		{"ghcr.io/org/app:v1", "ghcr.io/org/app:v1@" + digest, true, "the tag beside a digest"},
		{"ghcr.io/org/app:v1", "ghcr.io/org/app:v2", false, "another tag"},
		{"ghcr.io/org/app@" + digest, "ghcr.io/org/app:v1@" + digest, true, "the digest beside a tag"},
		{"ghcr.io/org/app*sha256:*", "ghcr.io/org/app@" + digest, true, "any digest, without the @"},
		{"ghcr.io/org/appsha256:v1", "ghcr.io/org/appsha256:v1", true, "a name like an algorithm"},
		{"ghcr.io/org/appsha256:v1", "ghcr.io/org/app:v1", false, "the name without its end"},
		{"ghcr.io/org/app@*", "ghcr.io/org/app@" + digest, true, "any digest"},
		{"**demo**", "registry.example:5000/team/demo-app@" + digest, true, "a name anywhere"},
		{"**demo**", "registry.example:5000/team/app:v1", false, "not that name"},
		{"ghcr.io/org/app**", "ghcr.io/org/app/server:v1", true, "** at the end"},
		{"images.*", "images.example/app:v1", false, "* for a registry is no slash"},
		{"ghcr.io/org/a.p:v1", "ghcr.io/org/axp:v1", false, "a dot is a dot"},
		{"ghcr.io:443/org/**", "ghcr.io/org/app:v1", true, "the port of TLS"},
		{"*:*/org/**", "registry.example:5000/org/app:v1", true, "a port of any host"},
		{"*:*/org/**", "ghcr.io:443/org/app:v1", false, "the port of TLS is none"},
		{"localhost:5000/app:*", "localhost:5000/app:v1", true, "a port"},
		{"1.dkr.ecr.eu-west-1.amazonaws.com/**", "1.dkr-ecr.eu-west-1.on.aws/app:v1", true, "another name of the registry by its form"},
		{"1.dkr.ecr.eu-west-1.amazonaws.com/**", "2.dkr-ecr.eu-west-1.on.aws/app:v1", false, "the other name of another registry"},
	} {
		p := compile(t, sigstore.Options{}, strings.Replace(head, "ghcr.io/org/**", `"`+c.glob+`"`, 1)+signedByKey)
		made := plan(t, pod("prod"), c.ref, p)
		if got := len(made.Checks) == 1; got != c.want {
			t.Errorf("%s: %s concerns %s: %t", c.reason, c.glob, c.ref, got)
		}
	}
}

// TestGlobIndex: what an index looks for is found.
func TestGlobIndex(t *testing.T) {
	for _, glob := range []string{"*", "nginx*", "index.docker.io/library/**", "*.docker.io/library/nginx:1", "**/nginx:1", "docker.io/nginx", "docker.io/library/nginx@sha256:*", "docker.io/library/n*sha256:*", "**sha256:*"} {
		policies := []*policy.Policy{compile(t, sigstore.Options{}, strings.Replace(head, "ghcr.io/org/**", `"`+glob+`"`, 1)+signedByKey)}
		for _, name := range strings.Fields(strings.Repeat("a ", 70)) {
			name += strings.Repeat("x", len(policies))
			policies = append(policies, compile(t, sigstore.Options{}, strings.Replace(head, "signed", name, 1)+"  authorities: [{static: {action: pass}}]\n"))
		}
		if made := plan(t, pod("prod"), "nginx:1", policies...); len(made.Checks) != 1 {
			t.Errorf("%s: %d checks among many policies", glob, len(made.Checks))
		}
	}
}

// TestLongGlob: a glob is compiled, so its length is bounded.
func TestLongGlob(t *testing.T) {
	for size, refused := range map[int]bool{4 << 10: false, 4<<10 + 1: true} {
		glob := "ghcr.io/" + strings.Repeat("*", size-len("ghcr.io/"))
		text := fill(t, strings.Replace(head, "ghcr.io/org/**", `"`+glob+`"`, 1)+signedByKey)
		_, err := sigstore.New(sigstore.Options{}).Compile([]byte(text), "test")
		if isLong := err != nil && strings.Contains(err.Error(), "spec.images[0].glob: 4097 bytes are more than 4096"); isLong != refused || !refused && err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

func TestGlobRefuses(t *testing.T) {
	for _, c := range []struct{ glob, want, reason string }{
		{"", "is empty", "nothing"},
		{"ghcr.io/{a,b}", "and no \"{\"", "braces"},
		{"ghcr.io/org/app?", "and no \"?\"", "a question mark is no wildcard here"},
		{"^ghcr.io/.+$", "and no \"^\"", "an expression"},
		{"https://ghcr.io/org/*", "leave out the scheme", "a scheme"},
		{"ghcr.io/Org/*", "lower case", "a name that no image has"},
		{"ghcr.io//app", "empty", "an empty part"},
	} {
		text := fill(t, strings.Replace(head, "ghcr.io/org/**", `"`+c.glob+`"`, 1)+signedByKey)
		_, err := sigstore.New(sigstore.Options{}).Compile([]byte(text), "test")
		if err == nil || !strings.Contains(err.Error(), "spec.images[0].glob: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.reason, err, c.want)
		}
	}
}
