package mirror_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/image/mirror"
)

// TestParseRefuses has documents with one thing wrong, and the path and reason.
func TestParseRefuses(t *testing.T) {
	entry := func(s string) string { return own("a", s) }
	for _, test := range []struct{ reason, text, want string }{
		{"no YAML", "a: [", "yaml"},
		{"a key twice", entry("{sources: [quay.io], sources: [ghcr.io], targets: [{location: m.corp}]}"), "sources"},
		{"another kind", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n", "kind: Secret"},
		{"another version", strings.Replace(entry("{}"), "v1alpha1", "v1", 1), "kind: RegistryMirror of \"quaymaster.dev/v1\""},
		{"no name", "apiVersion: quaymaster.dev/v1alpha1\nkind: RegistryMirror\nspec: {}\n", "metadata.name"},
		{"a namespace", "apiVersion: quaymaster.dev/v1alpha1\nkind: RegistryMirror\nmetadata: {name: a, namespace: b}\nspec: {}\n", "metadata.namespace: a RegistryMirror is in no namespace"},
		{"no specification", "apiVersion: quaymaster.dev/v1alpha1\nkind: RegistryMirror\nmetadata: {name: a}\n", "nothing in it"},
		{"no entries", "apiVersion: quaymaster.dev/v1alpha1\nkind: RegistryMirror\nmetadata: {name: a}\nspec: {mirrors: []}\n", "spec.mirrors: want at least one"},
		{"an unknown field at the top", entry("{sources: [quay.io], targets: [{location: m.corp}]}") + "mirrors: []\n", "mirrors: unknown field"},
		{"an unknown field of an entry", entry("{sources: [quay.io], targets: [{location: m.corp}], then: x}"), "spec.mirrors[0].then: unknown field"},
		{"an unknown field of a target", entry("{sources: [quay.io], targets: [{location: m.corp, Path: Keep}]}"), "spec.mirrors[0].targets[0].Path: unknown field"},
		{"a wrong type", entry("{sources: quay.io, targets: [{location: m.corp}]}"), "spec.mirrors.sources: want a list, found string"},
		{"no sources", entry("{targets: [{location: m.corp}]}"), "spec.mirrors[0].sources: want 1 to"},
		{"no targets", entry("{sources: [quay.io]}"), "spec.mirrors[0].targets: want 1 to"},
		{"an unknown when", entry("{sources: [quay.io], targets: [{location: m.corp}], when: verified}"), `spec.mirrors[0].when: "verified" is not known: want one of [Verified Present Always]`},
		{"an unknown otherwise", entry("{sources: [quay.io], targets: [{location: m.corp}], otherwise: deny}"), "spec.mirrors[0].otherwise"},
		{"an unknown resolve", entry("{sources: [quay.io], targets: [{location: m.corp}], resolve: Both}"), "spec.mirrors[0].resolve"},
		{"an unknown path", entry("{sources: [quay.io], targets: [{location: m.corp}, {location: n.corp, path: Drop}]}"), `spec.mirrors[0].targets[1].path: "Drop" is not known`},
		{"an unknown fill", entry("{sources: [quay.io], targets: [{location: m.corp, fill: Tag}]}"), "spec.mirrors[0].targets[0].fill"},
		{"an unknown side", entry("{sources: [quay.io], targets: [{location: m.corp}], evidence: [Target, Mirror]}"), "spec.mirrors[0].evidence[1]: \"Mirror\" is not known"},
		{"a side twice", entry("{sources: [quay.io], targets: [{location: m.corp}], evidence: [Target, Target]}"), "spec.mirrors[0].evidence[1]: \"Target\" is there twice"},
		{"an unknown field of evidence", entry("{sources: [quay.io], targets: [{location: m.corp}], evidence: [{repo: a.corp/b}]}"), "spec.mirrors[0].evidence[0].repo: unknown field"},
		{"evidence nowhere", entry("{sources: [quay.io], targets: [{location: m.corp}], evidence: [{repository: a.corp}]}"), "spec.mirrors[0].evidence[0].repository"},
		{"a source twice", entry("{sources: [docker.io, index.docker.io], targets: [{location: m.corp}]}"), "spec.mirrors[0].sources[1]: docker.io is there twice"},
		{"a target twice", entry("{sources: [quay.io], targets: [{location: m.corp}, {location: 'M.corp:443'}]}"), "spec.mirrors[0].targets[1]: it is there twice"},
		{"a source with a scheme", entry("{sources: ['https://quay.io'], targets: [{location: m.corp}]}"), "spec.mirrors[0].sources[0]: \"https://quay.io\": want a registry without a scheme"},
		{"a source with a tag", entry("{sources: ['quay.io/a:1'], targets: [{location: m.corp}]}"), "spec.mirrors[0].sources[0]"},
		{"a source with a last slash", entry("{sources: [quay.io/], targets: [{location: m.corp}]}"), "it ends in /"},
		{"a source that no reference has", entry("{sources: [nginx], targets: [{location: m.corp}]}"), "no reference has the registry \"nginx\""},
		{"a source in capitals", entry("{sources: [quay.io/Team], targets: [{location: m.corp}]}"), "spec.mirrors[0].sources[0]"},
		{"a star elsewhere", entry("{sources: ['reg.*.corp'], targets: [{location: m.corp}]}"), "spec.mirrors[0].sources[0]"},
		{"a star for all", entry("{sources: ['*'], targets: [{location: 'm.corp/{host}'}]}"), "spec.mirrors[0].sources[0]"},
		{"a target with a scheme", entry("{sources: [quay.io], targets: [{location: 'https://m.corp'}]}"), "want a registry without a scheme"},
		{"a target without a registry", entry("{sources: [quay.io], targets: [{location: mirror/a}]}"), "no reference has the registry \"mirror\""},
		{"no location", entry("{sources: [quay.io], targets: [{path: Keep}]}"), "spec.mirrors[0].targets[0].location: want a registry"},
		{"a location with a last slash", entry("{sources: [quay.io], targets: [{location: m.corp/}]}"), "targets[0].location: \"m.corp/\" ends in /"},
		{"a location with the path", entry("{sources: [quay.io], targets: [{location: 'm.corp/{path}'}]}"), "targets[0].location"},
		{"a location in capitals", entry("{sources: [quay.io], targets: [{location: m.corp/A}]}"), "spec.mirrors[0].targets[0]"},
		{"a location that is too long", entry("{sources: [quay.io], targets: [{location: m.corp/" + strings.Repeat("a", 255) + "}]}"), "255"},
		{"no template", entry("{sources: [quay.io], targets: [{location: m.corp, path: Template}]}"), "targets[0].template: want a template"},
		{"a template that is not used", entry("{sources: [quay.io], targets: [{location: m.corp, path: Keep, template: 'a/{path}'}]}"), "targets[0].template: it is not used"},
		{"a template that loses the path", entry("{sources: [quay.io], targets: [{location: m.corp, template: all}]}"), "the path is lost in it"},
		{"a template with the path twice", entry("{sources: [quay.io], targets: [{location: m.corp, template: '{path}/{rest}'}]}"), "the path occurs in it twice"},
		{"a template with half a component", entry("{sources: [quay.io], targets: [{location: m.corp, template: 'hub-{path}'}]}"), "{path} wants to be alone"},
		{"two variables beside one another", entry("{sources: ['*.corp'], targets: [{location: m.example, template: '{wildcard}-{host}/{path}'}]}"), "two variables between slashes"},
		{"an unknown variable", entry("{sources: [quay.io], targets: [{location: m.corp, template: '{tag}/{path}'}]}"), "{tag} is not known"},
		{"half a variable", entry("{sources: [quay.io], targets: [{location: m.corp, template: '{path'}]}"), "{ without }"},
		{"the other half", entry("{sources: [quay.io], targets: [{location: m.corp, template: 'path}/{path}'}]}"), "} without {"},
		{"a wildcard that is lost", entry("{sources: ['*.corp'], targets: [{location: m.example}]}"), "the text that * matches in *.corp is lost"},
		{"a wildcard without *", entry("{sources: [quay.io], targets: [{location: 'm.example/{wildcard}'}]}"), "the source quay.io has no *"},
		{"one source of two has no *", entry("{sources: ['*.corp', quay.io], targets: [{location: 'm.example/{wildcard}'}]}"), "the source quay.io has no *"},
		{"a wildcard that is the registry", entry("{sources: ['*.corp'], targets: [{location: '{wildcard}'}]}"), "no reference has the registry"},
		{"a port in the path", entry("{sources: ['reg.corp:5000'], targets: [{location: 'm.example/{host}'}]}"), "spec.mirrors[0].targets[0]"},
		{"the port of a wildcard in the path", entry("{sources: ['*.corp:5000'], targets: [{location: 'm.example/{host}'}]}"), "spec.mirrors[0].targets[0]"},
		{"IPv6 in the path", entry("{sources: ['[::1]:5000'], targets: [{location: 'm.example/{host}'}]}"), "spec.mirrors[0].targets[0]"},
		{"Docker Hub would add library/", entry("{sources: [quay.io], targets: [{location: docker.io}]}"), "would be read as docker.io/library/"},
		{"a secret that is no name", entry("{sources: [quay.io], targets: [{location: m.corp}], pullSecrets: [A]}"), "spec.mirrors[0].pullSecrets[0]"},
		{"a secret twice", entry("{sources: [quay.io], targets: [{location: m.corp}], pullSecrets: [a, a]}"), "spec.mirrors[0].pullSecrets[1]: a is there twice"},
		{"a selector that selects nothing known", entry("{sources: [quay.io], targets: [{location: m.corp}], namespaceSelector: {matchExpressions: [{key: a, operator: Is}]}}"), "spec.mirrors[0].namespaceSelector"},
		{"an unknown field of a selector", entry("{sources: [quay.io], targets: [{location: m.corp}], objectSelector: {labels: {}}}"), "spec.mirrors[0].objectSelector.labels: unknown field"},
		{"an owner without a kind", entry("{sources: [quay.io], targets: [{location: m.corp}], excludeOwners: [{group: apps}]}"), "spec.mirrors[0].excludeOwners[0].kind"},
		{"an owner with a version", entry("{sources: [quay.io], targets: [{location: m.corp}], excludeOwners: [{group: apps/v1, kind: A}]}"), "spec.mirrors[0].excludeOwners[0].group"},
		{"data in ours", own("a", "{sources: [quay.io], targets: [{location: m.corp}]}") + "data: {}\n", "nothing in it"},
		{"a pair without a mirror", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {quay.io: ''}\n", "data[quay.io].location"},
		{"a pair that is no mirror", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {quay.io: 'yes'}\n", "data[quay.io]"},
		{"a key that is no registry", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {quay.io: m.corp, quay: m.corp/q}\n", "data[quay]: \"quay\": no reference has the registry"},
		{"nothing but other pairs", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {region: eu}\n", "there is no mapping in it"},
		{"an unknown policy for the source", "apiVersion: config.openshift.io/v1\nkind: ImageTagMirrorSet\nmetadata: {name: a}\nspec: {imageTagMirrors: [{source: quay.io, mirrors: [m.corp], mirrorSourcePolicy: Never}]}\n", "spec.imageTagMirrors[0].mirrorSourcePolicy"},
		{"a set without mirrors", "apiVersion: config.openshift.io/v1\nkind: ImageDigestMirrorSet\nmetadata: {name: a}\nspec: {imageDigestMirrors: [{source: quay.io}]}\n", "spec.imageDigestMirrors[0].mirrors: want 1 to"},
		{"a wildcard that is lost there too", "apiVersion: config.openshift.io/v1\nkind: ImageDigestMirrorSet\nmetadata: {name: a}\nspec: {imageDigestMirrors: [{source: '*.corp', mirrors: [m.example]}]}\n", "spec.imageDigestMirrors[0].mirrors[0]: from *.corp"},
		{"the other set's list", "apiVersion: config.openshift.io/v1\nkind: ImageDigestMirrorSet\nmetadata: {name: a}\nspec: {imageTagMirrors: []}\n", "spec.imageTagMirrors: unknown field"},
		{"too much", "#" + strings.Repeat("a", mirror.MaxDocument) + "\na: b\n", "more than"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			_, err := mirror.ParseFile([]byte(test.text), "f.yaml")
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "f.yaml: ") {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

func TestFaultsAreReportedTogether(t *testing.T) {
	_, err := mirror.Parse([]byte(own("a", "{sources: [quay.io, x], targets: [{location: m.corp}], when: Never}", "{sources: [ghcr.io], targets: [{location: m.corp, fill: x}]}")), "f")
	for _, want := range []string{"spec.mirrors[0].when", "spec.mirrors[0].sources[1]", "spec.mirrors[1].targets[0].fill"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is missing in %v", want, err)
		}
	}
}

func TestOtherConfigMaps(t *testing.T) {
	_, err := mirror.Parse([]byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\ndata: {region: eu-west-1}\n"), "f")
	if !errors.Is(err, mirror.ErrNoMapping) {
		t.Errorf("got %v", err)
	}
}

// pairs checks a mapping of public registries as ConfigMap, with another ConfigMap
// beside it.
func pairs(t *testing.T, path, name string, want map[string]string) {
	t.Helper()
	documents, err := mirror.ParseFile([]byte(file(t, path)), path)
	if err != nil {
		t.Fatal(err)
	}
	if len(documents) != 1 || documents[0].Kind != "ConfigMap" || documents[0].Name != name {
		t.Fatalf("documents: %+v", documents)
	}
	s, err := mirror.NewSet(documents...)
	if err != nil {
		t.Fatal(err)
	}
	for ref, target := range want {
		if got := redirects(t, s, ref); got != target {
			t.Errorf("%s: got %s, want %s", ref, got, target)
		}
	}
	if found := s.Check(); len(found) > 0 {
		t.Errorf("findings: %v", found)
	}
}

func TestPairs(t *testing.T) {
	const ecr = "111122223333.dkr.ecr.eu-west-1.amazonaws.com"
	pairs(t, filepath.Join("testdata", "pairs.yaml"), "platform/public-mapping", map[string]string{
		"nginx": ecr + "/docker-hub/library/nginx:latest", "gcr.io/a/b:1": "proxy.example.com/gcr/a/b:1",
		"public.ecr.aws/a/b": ecr + "/ecr-public/a/b:latest", "quay.io/a/b": "none",
	})
}

func TestSamplePairs(t *testing.T) {
	folder := os.Getenv("QUAYMASTER_SAMPLES")
	if folder == "" {
		t.Skip("no samples; set QUAYMASTER_SAMPLES to their folder")
	}
	const ecr = "000000000000.dkr.ecr.eu-west-1.amazonaws.com"
	pairs(t, filepath.Join(folder, "seed-policies/miro/04-image-registry/configs.yaml"), "kube-system/public-registry-mapping", map[string]string{
		"nginx": ecr + "/docker-hub/library/nginx:latest", "gcr.io/a/b:1": "my-registry-proxy.example.com/gcr/a/b:1",
		"ghcr.io/a/b:1": ecr + "/github/a/b:1", "public.ecr.aws/a/b:1": ecr + "/ecr-public/a/b:1",
		"quay.io/a/b:1": ecr + "/quay/a/b:1", "registry.k8s.io/pause:3.9": ecr + "/kubernetes/pause:3.9",
	})
}

// TestExamples loads what users are shown.
func TestExamples(t *testing.T) {
	for name, want := range map[string]map[string]string{
		"hub.yaml":        {"nginx:1": "000000000000.dkr.ecr.eu-west-1.amazonaws.com/docker-hub/library/nginx:1"},
		"ecr-region.yaml": {"111122223333.dkr.ecr.us-west-2.amazonaws.com/a/b:1": "111122223333.dkr.ecr.eu-west-1.amazonaws.com/a/b:1"},
		"openshift.yaml": {
			"quay.io/openshift-release-dev/ocp-release" + digest: "mirror.example.com:5000/ocp/ocp-release" + digest + " mirror-2.example.com/ocp/ocp-release" + digest,
			"registry.redhat.io/ubi9/ubi:9.4":                    "mirror.example.com:5000/ubi9/ubi:9.4",
		},
	} {
		text := file(t, "../../examples/mirrors", name)
		s := set(t, text)
		for ref, target := range want {
			if got := redirects(t, s, ref); got != target {
				t.Errorf("%s: %s: got %s, want %s", name, ref, got, target)
			}
		}
		if lines := strings.Count(text, "\n"); name == "ecr-region.yaml" && lines >= 20 {
			t.Errorf("%s has %d lines", name, lines)
		}
	}
	files, err := filepath.Glob("../../examples/mirrors/*.yaml")
	if err != nil || len(files) != 3 {
		t.Errorf("examples that are not loaded: %v, %v", files, err)
	}
}

func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"../../examples/mirrors/*.yaml", "testdata/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, name := range files {
			f.Add(file(f, name), "nginx:1")
		}
	}
	f.Add(own("a", "{sources: ['*.corp/x', quay.io/a], targets: [{location: 'm.corp/{host}', template: 'a/{rest}/b'}], evidence: [{repository: 'a.corp/{path}'}]}"), "a.corp/x/y")
	f.Add(own("a", "{sources: [a.corp/x], targets: [{location: b.corp, path: ReplacePrefix}]}", "{sources: [b.corp], targets: [{location: a.corp}]}"), "b.corp/n")
	f.Fuzz(func(t *testing.T, text, name string) {
		documents, err := mirror.ParseFile([]byte(text), "f")
		if err != nil {
			return
		}
		s, err := mirror.NewSet(documents...)
		if err != nil {
			return
		}
		s.Check()
		if ref, err := image.Parse(name); err == nil {
			holds(t, s, ref)
		}
	})
}

// TestParseReadsObjects reads what an API server sends.
func TestParseReadsObjects(t *testing.T) {
	const object = `{"apiVersion":"quaymaster.dev/v1alpha1","kind":"RegistryMirror",
		"metadata":{"name":"hub","uid":"1","resourceVersion":"%","generation":2,"managedFields":[{"manager":"kubectl"}],"labels":{"a":"b"}},
		"spec":{"mirrors":[{"sources":["quay.io"],"targets":[{"location":"m.corp"}],"namespaceSelector":{"matchLabels":{"a":"b"}}}]},
		"status":{"conditions":[{"type":"Ready","status":"True"}],"targets":[]}}`
	first, err := mirror.Parse([]byte(strings.Replace(object, "%", "7", 1)), "cluster")
	if err != nil {
		t.Fatal(err)
	}
	later, err := mirror.Parse([]byte(strings.Replace(object, "%", "8", 1)), "cluster")
	if err != nil || first.Hash != later.Hash || first.Name != "hub" {
		t.Errorf("%+v, %+v, %v", first, later, err)
	}
	other, err := mirror.Parse([]byte(strings.Replace(object, "m.corp", "n.corp", 1)), "cluster")
	if err != nil || first.Hash == other.Hash {
		t.Errorf("another specification has the same hash: %v", err)
	}
	if _, err := mirror.Parse([]byte(strings.Replace(object, `"uid"`, `"name":"other","uid"`, 1)), "cluster"); err == nil {
		t.Error("a name that is there twice")
	}
}

func TestParseIsBounded(t *testing.T) {
	var bomb strings.Builder
	bomb.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 12; i++ {
		fmt.Fprintf(&bomb, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), ", "))
	}
	for reason, text := range map[string]string{
		"aliases of aliases": bomb.String(),
		"sources":            own("a", "{sources: ["+strings.Repeat("quay.io, ", 300)+"], targets: [{location: m.corp}]}"),
		"targets":            own("a", "{sources: [quay.io], targets: ["+strings.Repeat("{location: m.corp}, ", 17)+"]}"),
		"evidence":           own("a", "{sources: [quay.io], targets: [{location: m.corp}], evidence: ["+strings.Repeat("Source, ", 17)+"]}"),
		"entries":            own("a", slices.Repeat([]string{"{sources: [quay.io], targets: [{location: m.corp}]}"}, mirror.MaxEntries+1)...),
	} {
		if _, err := mirror.Parse([]byte(text), "f"); err == nil {
			t.Errorf("too many %s", reason)
		}
	}
}
