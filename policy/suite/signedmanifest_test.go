package suite

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/signedmanifest/manifesttest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// TestSignedManifests: rules about signed manifests are evaluated in suites, without dry runs.
func TestSignedManifests(t *testing.T) {
	t.Parallel()
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME, namespace: shop, annotations: NOTES}\ndata: {mode: strict}\n"
	signer := verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{}))
	content := []byte(strings.NewReplacer("NAME", "good", ", annotations: NOTES", "").Replace(object))
	notes := map[string]string{}
	for name, value := range verifytest.Must(manifesttest.Annotations(verifytest.Must(verifytest.New(verifytest.Options{})), verifytest.Claim{Signer: signer, Artifact: content, NoLog: true})) {
		notes["cosign.sigstore.dev/"+name] = value
	}
	signed := strings.Replace(object, "NOTES", string(verifytest.Must(json.Marshal(notes))), 1)
	objects := strings.ReplaceAll(signed, "NAME", "good") + "---\n" + strings.ReplaceAll(signed, "NAME", "copied") + "---\n" + strings.NewReplacer("NAME", "plain", "NOTES", "{}").Replace(object)
	key := verifytest.Must(json.Marshal(string(signer.PublicPEM())))
	report := labels(t, `policies: [policy.yaml]
resources: [objects.yaml]
results:
- {policy: signed, rule: signed, kind: ConfigMap, resources: [shop/good], result: pass}
- {policy: signed, rule: signed, kind: ConfigMap, resources: [shop/copied, shop/plain], result: fail}
`, map[string]string{"objects.yaml": objects, "policy.yaml": fmt.Sprintf(`apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: signed}
spec:
  validationFailureAction: Enforce
  rules:
  - name: signed
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    validate: {manifests: {dryRun: {enable: true}, attestors: [{entries: [{keys: {publicKeys: %s}}]}]}}
`, key)})
	if got := counts(report); got != [3]int{3} {
		t.Errorf("passed, failed and skipped are %v: %+v", got, report)
	}
}
