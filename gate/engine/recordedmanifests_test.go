package engine_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// TestManifestsOfTheTool: objects that k8s-manifest-sigstore signed are admitted with its key, and refused with
// another one and after a change. testdata/k8s-manifest-sigstore has their source.
func TestManifestsOfTheTool(t *testing.T) {
	l := newManifestLab(t)
	file := func(name string) string {
		return string(verifytest.Must(os.ReadFile(filepath.Join("testdata", "k8s-manifest-sigstore", name))))
	}
	key := "[{entries: [{keys: {publicKeys: " + string(verifytest.Must(json.Marshal(file("testpub.pem")))) + "}}]}]"
	for _, c := range []struct{ name, from, to, differs string }{
		{"sample-configmap-signed.yaml", "key4: val4", "key4: val5", `data.key4 was signed as "val4" and is "val5"`},
		{"sample-configmap-multi-signed.yaml", "  key4: val4\n", "", "data.key4 was signed and is not there"},
		{"sample-deployment-signed.yaml", "image: nginx:1.14.2", "image: nginx:1.14.1", `image was signed as "nginx:1.14.2" and is "nginx:1.14.1"`},
		{"sample-deployment-signed-deployed.yaml", "dnsPolicy: ClusterFirst", "dnsPolicy: ClusterFirst\n      hostNetwork: true", "spec.template.spec.hostNetwork was not signed"},
	} {
		text := file(c.name)
		changed := strings.Replace(text, c.from, c.to, 1)
		if changed == text {
			t.Fatalf("%s: no %q", c.name, c.from)
		}
		l.run(t, []manifestRow{
			{c.name, key, "", text, gate.Allow, ""},
			{c.name + " and a change", key, "", changed, gate.Deny, c.differs},
			{c.name + " and another key", oneKey, "", text, gate.Deny, "wrong-key: signed with another key"},
		})
	}
	mutated := file("sample-deployment-signed-mutating-1.yaml")
	l.run(t, []manifestRow{
		{"a mutated image", key, "", mutated, gate.Deny, `was signed as "nginx:1.14.2" and is "docker.io/nginx:1.14.2"`},
		{"a mutated image that is ignored", key, ", ignoreFields: [{objects: [{kind: Deployment}], fields: [spec.template.spec.containers.*.image]}]", mutated, gate.Allow, ""},
	})
}
