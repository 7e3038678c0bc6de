package mirror_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/image/mirror"
)

const (
	hex64  = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	digest = "@sha256:" + hex64
)

// set reads documents of a stream, as a Set.
func set(t testing.TB, text string) *mirror.Set {
	t.Helper()
	documents, err := mirror.ParseFile([]byte(text), "test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, err := mirror.NewSet(documents...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// own writes a RegistryMirror with the entries that are given.
func own(name string, entries ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "---\napiVersion: quaymaster.dev/v1alpha1\nkind: RegistryMirror\nmetadata: {name: %s}\nspec:\n  mirrors:\n", name)
	for _, e := range entries {
		fmt.Fprintf(&b, "    - %s\n", e)
	}
	return b.String()
}

func file(t testing.TB, elements ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// known is a subject of which everything is known.
func known() mirror.Subject {
	return mirror.Subject{Namespace: "shop", NamespaceKnown: true}
}

// redirects returns the candidates of a reference, joined, or the reason for none.
func redirects(t *testing.T, s *mirror.Set, ref string) string {
	t.Helper()
	parsed, err := image.Parse(ref)
	if err != nil {
		t.Fatal(err)
	}
	route, err := s.Route(parsed, known())
	switch {
	case err != nil:
		return "error: " + err.Error()
	case route == nil:
		return "none"
	}
	var all []string
	for _, c := range route.Candidates {
		all = append(all, c.Ref.String())
	}
	return strings.Join(all, " ")
}

func originsOf(s *mirror.Set, ref string) string {
	var all []string
	for _, o := range s.Origins(image.MustParse(ref)) {
		all = append(all, o.Ref.String())
	}
	return strings.Join(all, " ")
}

// TestNormalisation has the rows of the table of names that a redirection by
// patterns over text gets wrong, with the outcome here.
func TestNormalisation(t *testing.T) {
	const ecr = "000000000000.dkr.ecr.eu-west-1.amazonaws.com"
	s := set(t, file(t, "../../examples/mirrors/hub.yaml")+"\n---\n"+file(t, "../../examples/mirrors/ecr-region.yaml")+
		own("ports", "{sources: ['localhost:5000'], targets: [{location: "+ecr+"/local}]}",
			"{sources: ['reg.corp:5000'], targets: [{location: "+ecr+"/corp}]}",
			"{sources: ['[2001:DB8::1]:5000'], targets: [{location: "+ecr+"/six}]}"))
	for _, test := range []struct{ reason, ref, want string }{
		{"a short name", "nginx", ecr + "/docker-hub/library/nginx:latest"},
		{"library/ written", "library/nginx", ecr + "/docker-hub/library/nginx:latest"},
		{"registry and library/ written", "docker.io/library/nginx", ecr + "/docker-hub/library/nginx:latest"},
		{"registry without library/", "docker.io/nginx", ecr + "/docker-hub/library/nginx:latest"},
		{"a user's", "user/x:1", ecr + "/docker-hub/user/x:1"},
		{"tag and digest are both kept", "nginx:1.2" + digest, ecr + "/docker-hub/library/nginx:1.2" + digest},
		{"an alias of Docker Hub", "index.docker.io/library/nginx", ecr + "/docker-hub/library/nginx:latest"},
		{"another", "registry-1.docker.io/library/nginx", ecr + "/docker-hub/library/nginx:latest"},
		{"and another", "registry.hub.docker.com/library/nginx", ecr + "/docker-hub/library/nginx:latest"},
		{"an alias, with case and port", "Index.Docker.io:443/nginx", ecr + "/docker-hub/library/nginx:latest"},
		{"a port, on localhost", "localhost:5000/x", ecr + "/local/x:latest"},
		{"a port", "reg.corp:5000/x", ecr + "/corp/x:latest"},
		{"another port is another registry", "reg.corp:5001/x", "none"},
		{"no port is another registry", "reg.corp/x", "none"},
		{"IPv6", "[2001:db8:0::1]:5000/x", ecr + "/six/x:latest"},
		{"another region: the pin is kept", "111111111111.dkr.ecr.us-east-1.amazonaws.com/r:v1" + digest, "111111111111.dkr.ecr.eu-west-1.amazonaws.com/r:v1" + digest},
		{"another region, by digest alone", "111111111111.dkr.ecr.us-east-1.amazonaws.com/r" + digest, "111111111111.dkr.ecr.eu-west-1.amazonaws.com/r" + digest},
		{"the same region", "111111111111.dkr.ecr.eu-west-1.amazonaws.com/r:v1", "none"},
		{"FIPS is another name of a registry", "111111111111.dkr.ecr-fips.us-east-1.amazonaws.com/r:v1", "111111111111.dkr.ecr.eu-west-1.amazonaws.com/r:v1"},
		{"so is the one with IPv6", "111111111111.dkr-ecr.us-east-1.on.aws/r:v1", "111111111111.dkr.ecr.eu-west-1.amazonaws.com/r:v1"},
		{"the same region with IPv6", "111111111111.dkr-ecr.eu-west-1.on.aws/r:v1", "none"},
		{"another partition is another registry to list", "111111111111.dkr.ecr.us-east-1.amazonaws.com.cn/r:v1", "none"},
		{"another mirror", "gcr.io/a/b:1", "my-registry-proxy.example.com/gcr/a/b:1"},
		{"a registry that is not listed", "example.com/a/b", "none"},
		{"a copy is left alone", ecr + "/docker-hub/library/nginx:1", "none"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			if got := redirects(t, s, test.ref); got != test.want {
				t.Errorf("%s: got %s, want %s", test.ref, got, test.want)
			}
		})
	}
}

func TestPrecedence(t *testing.T) {
	s := set(t, own("a",
		"{sources: [quay.io], targets: [{location: m.corp/quay}]}",
		"{sources: [quay.io/team], targets: [{location: m.corp/team, path: ReplacePrefix}]}",
		"{sources: [quay.io/team/app], targets: [{location: m.corp/the-app, path: ReplacePrefix}]}",
		"{sources: ['*.corp'], targets: [{location: 'm.corp/short/{wildcard}'}]}",
		"{sources: ['*.b.corp'], targets: [{location: 'm.corp/long/{wildcard}'}]}",
		"{sources: ['*.b.corp/deep'], targets: [{location: 'm.corp/deep/{wildcard}'}]}",
		"{sources: [a.b.corp], targets: [{location: m.corp/exact}]}",
		"{sources: ['*.corp:5000'], targets: [{location: 'm.corp/port/{wildcard}'}]}",
	))
	for _, test := range []struct{ reason, ref, want string }{
		{"the registry", "quay.io/other/x:1", "m.corp/quay/other/x:1"},
		{"a prefix before the registry", "quay.io/team/x:1", "m.corp/team/x:1"},
		{"the longest prefix, which is a repository", "quay.io/team/app:1", "m.corp/the-app:1"},
		{"and the repositories below it", "quay.io/team/app/sub:1", "m.corp/the-app/sub:1"},
		{"never inside a component", "quay.io/teamx/x:1", "m.corp/quay/teamx/x:1"},
		{"the shorter suffix", "x.corp/r:1", "m.corp/short/x/r:1"},
		{"the longer suffix", "x.b.corp/r:1", "m.corp/long/x/r:1"},
		{"a prefix under a suffix", "x.b.corp/deep/r:1", "m.corp/deep/x/deep/r:1"},
		{"the host before a suffix with a longer prefix", "a.b.corp/deep/r:1", "m.corp/exact/deep/r:1"},
		{"a suffix wants something before it", "b.corp/r:1", "m.corp/short/b/r:1"},
		{"the suffix is no name itself", "corp.example/r:1", "none"},
		{"a suffix with a port", "x.corp:5000/r:1", "m.corp/port/x/r:1"},
		{"* may hold a dot", "x.y.corp/r:1", "m.corp/short/x.y/r:1"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			if got := redirects(t, s, test.ref); got != test.want {
				t.Errorf("%s: got %s, want %s", test.ref, got, test.want)
			}
		})
	}
}

func TestPaths(t *testing.T) {
	for _, test := range []struct{ reason, entry, ref, want string }{
		{"keep is the default", "{sources: [quay.io/team], targets: [{location: 'm.corp:5000'}]}", "quay.io/team/x:1", "m.corp:5000/team/x:1"},
		{"a template", "{sources: [docker.io], targets: [{location: m.corp, path: Template, template: 'docker-hub/{path}'}]}", "nginx:1", "m.corp/docker-hub/library/nginx:1"},
		{"an explicit template", "{sources: [docker.io], targets: [{location: m.corp, template: 'docker-hub/{path}'}]}", "nginx:1", "m.corp/docker-hub/library/nginx:1"},
		{"the rest alone", "{sources: [quay.io/team], targets: [{location: m.corp, template: 'a/{rest}/b'}]}", "quay.io/team/x:1", "m.corp/a/x/b:1"},
		{"no rest", "{sources: [quay.io/team], targets: [{location: m.corp, template: 'a/{rest}/b'}]}", "quay.io/team:1", "m.corp/a/b:1"},
		{"the host in the path", "{sources: [docker.io, quay.io], targets: [{location: 'm.corp/{host}'}]}", "quay.io/x/y:1", "m.corp/quay.io/x/y:1"},
		{"the host in the host", "{sources: ['*.corp'], targets: [{location: '{host}.cache.example'}]}", "a.corp/x:1", "a.corp.cache.example/x:1"},
		{"the wildcard inside a component", "{sources: ['*.corp'], targets: [{location: 'm.example/of-{wildcard}-here'}]}", "a.corp/x:1", "m.example/of-a-here/x:1"},
		{"targets in order", "{sources: [quay.io], targets: [{location: a.corp}, {location: b.corp/q}]}", "quay.io/x:1", "a.corp/x:1 b.corp/q/x:1"},
		{"one target may be the source", "{sources: [quay.io], targets: [{location: a.corp}, {location: quay.io}]}", "quay.io/x:1", "a.corp/x:1"},
		{"443 is no port", "{sources: ['reg.corp:443'], targets: [{location: 'M.corp:443/a'}]}", "reg.corp/x:1", "m.corp/a/x:1"},
		{"443 of a wildcard", "{sources: ['*.corp:443'], targets: [{location: '{wildcard}.m.example:443'}]}", "a.corp/x:1", "a.m.example/x:1"},
		{"an alias as a source", "{sources: [registry-1.docker.io], targets: [{location: m.corp/hub}]}", "nginx:1", "m.corp/hub/library/nginx:1"},
		{"an organisation of Docker Hub", "{sources: [docker.io/bitnami], targets: [{location: m.corp/hub, path: ReplacePrefix}]}", "bitnami/redis:1", "m.corp/hub/redis:1"},
		{"is not an official image", "{sources: [docker.io/bitnami], targets: [{location: m.corp/hub, path: ReplacePrefix}]}", "bitnami:1", "none"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			s := set(t, own("a", test.entry))
			if got := redirects(t, s, test.ref); got != test.want {
				t.Errorf("%s: got %s, want %s", test.ref, got, test.want)
			}
			if test.want == "none" {
				return
			}
			for copied := range strings.FieldsSeq(test.want) {
				if got := redirects(t, s, copied); got != "none" {
					t.Errorf("the copy %s is redirected to %s", copied, got)
				}
				if got := originsOf(s, copied); !slices.Contains(strings.Fields(got), image.MustParse(test.ref).String()) {
					t.Errorf("%s comes from %q", copied, got)
				}
				if !s.IsCopy(image.MustParse(copied), image.MustParse(test.ref)) {
					t.Errorf("%s is no copy of %s", copied, test.ref)
				}
			}
		})
	}
}

// TestHiddenCopies writes a copy in every way that its registry would serve too.
func TestHiddenCopies(t *testing.T) {
	const ecr = "000000000000.dkr.ecr.eu-west-1.amazonaws.com"
	s := set(t, own("a",
		"{sources: [docker.io], targets: [{location: "+ecr+"/hub}, {location: docker.io/mirror}, {location: 'm.corp/{host}'}]}",
		"{sources: [quay.io], targets: [{location: '10.0.0.5:5000/quay'}]}",
		"{sources: [ghcr.io, ghcr.example], targets: [{location: m.corp/github}]}",
		"{sources: [quay.io/team], targets: [{location: m.corp/team, path: ReplacePrefix}], namespaceSelector: {matchLabels: {a: b}}}",
		"{sources: [m.corp/team], targets: [{location: outer.corp}]}",
		"{sources: ['*.io'], targets: [{location: 'w.corp/{host}'}]}",
		"{sources: [docker.io], targets: [{location: gcr.io/proj/hub}]}",
	))
	for _, test := range []struct{ reason, ref, want string }{
		{"Google's", "gcr.io/proj/hub/library/nginx:1", "docker.io/library/nginx:1"},
		{"Google's newer name", "us-docker.pkg.dev/proj/gcr.io/hub/library/nginx:1", "docker.io/library/nginx:1"},
		{"library/ left to the proxy at Google's newer name", "us-docker.pkg.dev/proj/gcr.io/hub/nginx:1", "docker.io/library/nginx:1"},
		{"Google's name in Europe is no copy", "europe-docker.pkg.dev/proj/gcr.io/hub/library/nginx:1", ""},
		{"Google's newer name of another location is no copy", "us-docker.pkg.dev/proj/us.gcr.io/hub/library/nginx:1", ""},
		{"Google's newer name of another project is no copy", "us-docker.pkg.dev/other/gcr.io/hub/library/nginx:1", ""},
		{"plain", ecr + "/hub/library/nginx:1", "docker.io/library/nginx:1"},
		{"case and port", strings.ToUpper(ecr) + ":443/hub/library/nginx:1", "docker.io/library/nginx:1"},
		{"library/ left to the proxy", ecr + "/hub/nginx:1", "docker.io/library/nginx:1"},
		{"FIPS", "000000000000.dkr.ecr-fips.eu-west-1.amazonaws.com/hub/a/b:1", "docker.io/a/b:1"},
		{"the name with IPv6", "000000000000.dkr-ecr.eu-west-1.on.aws/hub/a/b:1", "docker.io/a/b:1"},
		{"both", "000000000000.dkr-ecr-fips.eu-west-1.on.aws/hub/a/b:1", "docker.io/a/b:1"},
		{"another region is no copy", "000000000000.dkr.ecr.eu-west-2.amazonaws.com/hub/a/b:1", ""},
		{"a mirror at Docker Hub, in short", "mirror/a/b:1", "docker.io/a/b:1"},
		{"a mirror at Docker Hub, under an alias", "index.docker.io/mirror/library/nginx:1", "docker.io/library/nginx:1"},
		{"the host in the path", "m.corp/docker.io/library/nginx:1", "docker.io/library/nginx:1"},
		{"an alias in the path", "m.corp/index.docker.io/library/nginx:1", "docker.io/library/nginx:1"},
		{"an alias as the value of *", "w.corp/index.docker.io/nginx:1", "docker.io/library/nginx:1"},
		{"the value of *", "w.corp/gcr.io/nginx:1", "gcr.io/nginx:1"},
		{"IPv4 as IPv6", "[::ffff:10.0.0.5]:5000/quay/a:1", "quay.io/a:1"},
		{"and in digits", "[::ffff:a00:5]:5000/quay/a:1", "quay.io/a:1"},
		{"with the digest", "m.corp/github/a:1" + digest, "ghcr.io/a:1" + digest + " ghcr.example/a:1" + digest},
		{"whatever the selectors say, and though a longer prefix would win", "10.0.0.5:5000/quay/team/x:1", "quay.io/team/x:1"},
		{"a copy of a copy", "outer.corp/team/x:1", "m.corp/team/x:1 quay.io/team/x:1"},
		{"beside the prefix", ecr + "/hubx/library/nginx:1", ""},
		{"the prefix alone", ecr + "/hub:1", ""},
		{"not a mirror", "example.com/hub/nginx:1", ""},
	} {
		t.Run(test.reason, func(t *testing.T) {
			if got := originsOf(s, test.ref); got != test.want {
				t.Errorf("%s comes from %q, want %q", test.ref, got, test.want)
			}
			if got := redirects(t, s, test.ref); test.want != "" && got != "none" {
				t.Errorf("%s is redirected to %s", test.ref, got)
			}
		})
	}
}

// TestOtherNamesOfARegistry maps between names that are one registry, or become one.
func TestOtherNamesOfARegistry(t *testing.T) {
	for _, test := range []struct{ reason, source, location, ref, want string }{
		{"one registry's other name is no copy", "*.dkr.ecr-fips.eu-west-1.amazonaws.com", "{wildcard}.dkr.ecr.eu-west-1.amazonaws.com", "1.dkr.ecr-fips.eu-west-1.amazonaws.com/x:1", "1.dkr.ecr.eu-west-1.amazonaws.com/x:1"},
		{"the wildcard becomes part of such a name", "*.of.example", "{wildcard}.amazonaws.com", "1.dkr.ecr-fips.eu-west-1.of.example/x:1", "1.dkr.ecr-fips.eu-west-1.amazonaws.com/x:1"},
		{"and ends within it", "*.too.example", "{wildcard}.ecr-fips.eu-west-2.amazonaws.com", "1.dkr.too.example/x:1", "1.dkr.ecr-fips.eu-west-2.amazonaws.com/x:1"},
		{"the target is spelled in the other way", "quay.io", "1.dkr-ecr.eu-west-3.on.aws", "quay.io/x:1", "1.dkr-ecr.eu-west-3.on.aws/x:1"},
		{"the public one", "quay.io", "ecr-public.aws.com/alias", "quay.io/x:1", "ecr-public.aws.com/alias/x:1"},
		{"Google's newer name", "quay.io", "us-docker.pkg.dev/p/gcr.io/hub", "quay.io/x:1", "us-docker.pkg.dev/p/gcr.io/hub/x:1"},
		{"in Europe", "quay.io", "europe-docker.pkg.dev/p/eu.gcr.io/hub", "quay.io/x:1", "europe-docker.pkg.dev/p/eu.gcr.io/hub/x:1"},
		{"a project of a domain", "quay.io", "us-docker.pkg.dev/example.com/p/gcr.io/hub", "quay.io/x:1", "us-docker.pkg.dev/example.com/p/gcr.io/hub/x:1"},
		{"Google's newer name behind a wildcard", "*.of.example", "{wildcard}.pkg.dev/p/gcr.io", "us-docker.of.example/x:1", "us-docker.pkg.dev/p/gcr.io/x:1"},
		{"an address behind a wildcard", "*.of.example", "10.0.0.{wildcard}:5000", "5.of.example/x:1", "10.0.0.5:5000/x:1"},
		{"in China", "quay.io", "1.dkr-ecr.cn-north-1.on.amazonwebservices.com.cn", "quay.io/x:1", "1.dkr-ecr.cn-north-1.on.amazonwebservices.com.cn/x:1"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			s := set(t, own("a", fmt.Sprintf("{sources: ['%s'], targets: [{location: '%s'}]}", test.source, test.location)))
			if got := redirects(t, s, test.ref); got != test.want {
				t.Errorf("%s: got %s, want %s", test.ref, got, test.want)
			}
			holds(t, s, image.MustParse(test.ref))
			plain := strings.NewReplacer("ecr-fips", "ecr", "ecr-public.aws.com", "public.ecr.aws", "dkr-ecr.eu-west-3.on.aws", "dkr.ecr.eu-west-3.amazonaws.com", "dkr-ecr.cn-north-1.on.amazonwebservices", "dkr.ecr.cn-north-1.amazonaws",
				"us-docker.pkg.dev/p/gcr.io", "gcr.io/p", "europe-docker.pkg.dev/p/eu.gcr.io", "eu.gcr.io/p", "us-docker.pkg.dev/example.com/p/gcr.io", "gcr.io/example.com/p", "10.0.0.5", "[::ffff:10.0.0.5]").Replace(test.want)
			if len(s.Origins(image.MustParse(plain))) == 0 {
				t.Errorf("%s is not recognised", plain)
			}
		})
	}
}

// TestOtherNamesOfASource: an entry applies by each name of its source, so that none evades Deny.
func TestOtherNamesOfASource(t *testing.T) {
	s := set(t, own("a",
		"{sources: [gcr.io/proj, europe-docker.pkg.dev/p/eu.gcr.io/team, public.ecr.aws, '10.0.0.5'], targets: [{location: 'near.corp/{host}'}], otherwise: Deny}",
		"{sources: ['[::ffff:10.0.0.6]:5000'], targets: [{location: near.corp/six}], otherwise: Deny}",
		"{sources: ['*.dkr.ecr.us-east-1.amazonaws.com'], targets: [{location: 'near.corp/{wildcard}'}], otherwise: Deny}",
		"{sources: ['*.com'], targets: [{location: 'far.corp/{host}'}]}",
		"{sources: [us-docker.pkg.dev/proj/gcr.io/own], targets: [{location: own.corp}]}"))
	for _, test := range []struct{ reason, ref, want string }{
		{"Google's", "gcr.io/proj/a:1", "near.corp/gcr.io/proj/a:1"},
		{"Google's newer name", "us-docker.pkg.dev/proj/gcr.io/a:1", "near.corp/gcr.io/proj/a:1"},
		{"Google's newer name of another project", "us-docker.pkg.dev/other/gcr.io/a:1", "none"},
		{"Google's newer name in another location", "asia-docker.pkg.dev/proj/gcr.io/a:1", "none"},
		{"Google's older name", "eu.gcr.io/p/team/a:1", "near.corp/europe-docker.pkg.dev/p/eu.gcr.io/team/a:1"},
		{"Google's older name, beside the prefix", "eu.gcr.io/p/teams/a:1", "none"},
		{"ECR Public", "public.ecr.aws/a:1", "near.corp/public.ecr.aws/a:1"},
		{"ECR Public's other name, before a wildcard for this one", "ecr-public.aws.com/a:1", "near.corp/public.ecr.aws/a:1"},
		{"a name like it", "ecr-private.aws.com/a:1", "far.corp/ecr-private.aws.com/a:1"},
		{"IPv4 as IPv6", "[::ffff:10.0.0.5]/a:1", "near.corp/10.0.0.5/a:1"},
		{"IPv4 as IPv6, with a port", "[::ffff:10.0.0.5]:5000/a:1", "none"},
		{"IPv4 for IPv6 with it", "10.0.0.6:5000/a:1", "near.corp/six/a:1"},
		{"another IPv4", "10.0.0.7:5000/a:1", "none"},
		{"ECR", "1.dkr.ecr.us-east-1.amazonaws.com/a:1", "near.corp/1/a:1"},
		{"ECR with IPv6", "1.dkr-ecr.us-east-1.on.aws/a:1", "near.corp/1/a:1"},
		{"ECR with FIPS and IPv6", "1.dkr-ecr-fips.us-east-1.on.aws/a:1", "near.corp/1/a:1"},
		{"ECR with FIPS, before the shorter wildcard", "1.dkr.ecr-fips.us-east-1.amazonaws.com/a:1", "near.corp/1/a:1"},
		{"ECR of another region", "1.dkr-ecr.us-east-2.on.aws/a:1", "far.corp/1.dkr.ecr.us-east-2.amazonaws.com/a:1"},
		{"ECR of another region, in the order of the names", "1.dkr.ecr-fips.us-east-2.amazonaws.com/a:1", "far.corp/1.dkr.ecr-fips.us-east-2.amazonaws.com/a:1"},
		{"the source as written, before its other name", "us-docker.pkg.dev/proj/gcr.io/own/a:1", "own.corp/proj/gcr.io/own/a:1"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			ref := image.MustParse(test.ref)
			if got := redirects(t, s, test.ref); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if holds(t, s, ref) != (test.want != "none") {
				t.Error("it is redirected, or not")
			}
			if r, err := s.Route(ref, known()); err != nil || r != nil && r.Evidence[0] != ref.Repository() {
				t.Errorf("the source is asked as %+v, %v", r, err)
			}
		})
	}
}

func TestIsCopy(t *testing.T) {
	s := set(t, own("a", "{sources: [docker.io], targets: [{location: a.corp/hub}, {location: b.corp/hub}]}", "{sources: [gcr.io], targets: [{location: a.corp/google}]}"))
	for _, test := range []struct {
		reason, copied, ref string
		want                bool
	}{
		{"the first target", "a.corp/hub/library/nginx", "nginx:1", true},
		{"the second", "b.corp/hub/library/nginx:2", "nginx:1", true},
		{"of another image", "b.corp/hub/library/redis", "nginx", false},
		{"not as a target is written", "b.corp/hub/nginx", "nginx", false},
		{"no target", "c.corp/hub/library/nginx", "nginx", false},
		{"itself", "nginx", "nginx", false},
		{"of a name of Docker Hub", "a.corp/hub/library/nginx", "index.docker.io/nginx", true},
		{"of another name of its source", "a.corp/google/p/app", "us-docker.pkg.dev/p/gcr.io/app", true},
		{"of another project of that name", "a.corp/google/p/app", "us-docker.pkg.dev/q/gcr.io/app", false},
	} {
		if got := s.IsCopy(image.MustParse(test.copied), image.MustParse(test.ref)); got != test.want {
			t.Errorf("%s: %t", test.reason, got)
		}
	}
}

func TestTooLong(t *testing.T) {
	long := "quay.io/" + strings.Repeat("abcd/", 49) + "abcd"
	s := set(t, own("a", "{sources: [quay.io], targets: [{location: a.corp/"+strings.Repeat("p", 20)+"}, {location: b.corp}]}"))
	if got := redirects(t, s, long); got != "b.corp"+strings.TrimPrefix(long, "quay.io")+":latest" {
		t.Errorf("the target that can hold the name: %s", got)
	}
	s = set(t, own("a", "{sources: [quay.io], targets: [{location: a.corp/"+strings.Repeat("p", 20)+"}]}"))
	if got := redirects(t, s, long); !strings.Contains(got, "RegistryMirror/a[0] has no target") || !strings.Contains(got, "255") {
		t.Errorf("no target can: %s", got)
	}
	if got := redirects(t, s, "quay.io/x"); !strings.HasPrefix(got, "a.corp/ppp") {
		t.Errorf("a short name: %s", got)
	}
}

func TestCircle(t *testing.T) {
	// Each way back makes the name longer, by either of two names.
	s := set(t, own("a",
		"{sources: [a.corp/x, a.corp/yy], targets: [{location: b.corp, path: ReplacePrefix}]}",
		"{sources: [b.corp], targets: [{location: a.corp}]}"))
	if got := len(s.Origins(image.MustParse("b.corp/n"))); got != 256 {
		t.Errorf("%d origins", got)
	}
	if got := redirects(t, s, "b.corp/n"); !strings.Contains(got, "circle") {
		t.Errorf("a copy with too many names: %s", got)
	}
	if _, err := s.Trace(image.MustParse("b.corp/n")); err == nil {
		t.Error("a copy with too many names is judged by some of them")
	}
	if origins, err := set(t, own("a", "{sources: [quay.io], targets: [{location: a.corp}]}")).Trace(image.MustParse("a.corp/n")); err != nil || len(origins) != 1 {
		t.Errorf("a copy with one name: %v %v", origins, err)
	}
}

func TestSetIsStable(t *testing.T) {
	a, b := own("a", "{sources: [quay.io], targets: [{location: a.corp}]}"), own("b", "{sources: [quay.io], targets: [{location: b.corp}], otherwise: Deny}")
	one, two := set(t, a+b), set(t, b+a)
	if one.Hash() != two.Hash() || one.Hash() == set(t, a).Hash() {
		t.Error("equal sets have equal hashes, and others have not")
	}
	if got := redirects(t, two, "quay.io/x:1"); got != "a.corp/x:1" {
		t.Errorf("the first by name: %s", got)
	}
	if got := two.Registries(); !slices.Equal(got, []string{"a.corp", "b.corp"}) {
		t.Errorf("registries: %v", got)
	}
	if names := two.Documents(); len(names) != 2 || names[0].Name != "a" || names[0].Kind != "RegistryMirror" || names[0].Source != "test.yaml" {
		t.Errorf("documents: %v", names)
	}
	if !one.Denies() || set(t, a).Denies() {
		t.Error("only one of them denies")
	}
	first, err := mirror.Parse([]byte(a), "one")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mirror.NewSet(first, first); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("a document that is there twice: %v", err)
	}
	status, err := mirror.Parse([]byte(a+"status: {conditions: []}\n"), "one")
	if err != nil || status.Hash != first.Hash {
		t.Errorf("the status is no content: %v", err)
	}
}

func TestNilSet(t *testing.T) {
	var s *mirror.Set
	ref := image.MustParse("nginx")
	route, err := s.Route(ref, known())
	if route != nil || err != nil || s.Origins(ref) != nil || s.IsCopy(ref, ref) || s.Denies() || s.Registries() != nil || s.Documents() != nil || s.Hash() != "" || s.Check() != nil {
		t.Error("a nil set returns an entry")
	}
}
