package engine_test

import (
	"fmt"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// TestPublicRekor: the address of the public log, with a slash at the end or without, is any log of the root in every
// dialect; another address is that log.
func TestPublicRekor(t *testing.T) {
	v := newVariants(t)
	img := v.Build("shop/v2", "1", "v2")
	if err := v.SignBundle(img, verifytest.Claim{Signer: v.Signer, Records: []verifytest.Record{{Log: v.Sigstore.Rekor2}}, Stamps: []verifytest.Stamp{{}}}, nil); err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]gate.Result{
		"https://rekor.sigstore.dev": gate.Allow, "https://rekor.sigstore.dev/": gate.Allow, "https://rekor.example": gate.Error,
	} {
		for name, text := range map[string]string{
			"cpol": "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec: {validationFailureAction: Enforce, rules: [{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, verifyImages: [{imageReferences: ['HOST/*'], attestors: [{entries: [{keys: {publicKeys: KEY, rekor: {url: '%s'}}}]}]}]}]}\n",
			"cip":  "apiVersion: policy.sigstore.dev/v1beta1\nkind: ClusterImagePolicy\nmetadata: {name: p}\nspec: {images: [{glob: 'HOST/**'}], authorities: [{key: {data: KEY}, ctlog: {url: '%s'}}]}\n",
			"ivp":  "apiVersion: policies.kyverno.io/v1\nkind: ImageValidatingPolicy\nmetadata: {name: p}\nspec:\n  validationActions: [Deny]\n  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}\n  matchImageReferences: [{glob: 'HOST/*'}]\n  attestors: [{name: key, cosign: {key: {data: KEY}, ctlog: {url: '%s'}}}]\n  validations: [{expression: 'images.containers.all(i, verifyImageSignatures(i, [attestors.key]) > 0)'}]\n",
		} {
			object := read(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop}\nspec: {containers: [{name: a, image: '"+img.Name+"'}]}\n")[0]
			g := gateOfVariants(t, v, fmt.Sprintf(text, url))
			if o := g.Decide(t.Context(), gate.Request{Object: object, Pinning: gate.PinHere}); o.Result != want {
				t.Errorf("%s in %s: %s, want %s: %v", url, name, o.Result, want, o.Verdicts[0].Reasons)
			}
		}
	}
}
