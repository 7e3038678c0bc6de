package sigstore_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore/trustroot"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
	"github.com/quaymaster/quaymaster/workload"
)

// yard is a registry with the signers of the policies in testdata.
type yard struct {
	*gatetest.Env
	private                              *gatetest.Yard // of another Sigstore, on the same registry
	release, security, quality, stranger *verifytest.Signer
	images                               int
}

func newYard(tb testing.TB) *yard {
	tb.Helper()
	env := verifytest.Must(gatetest.NewEnv())
	tb.Cleanup(env.Close)
	key := func() *verifytest.Signer { return verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{})) }
	return &yard{
		Env: env, private: gatetest.New(env.Registry, verifytest.Must(verifytest.New(verifytest.Options{Name: "private"}))),
		release: key(), security: key(), quality: key(), stranger: key(),
	}
}

// policy compiles a file of testdata.
func (y *yard) policy(tb testing.TB, name string) *policy.Policy {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "policies", name+".yaml"))
	if err != nil {
		tb.Fatal(err)
	}
	return y.compile(tb, string(text))
}

func (y *yard) compile(tb testing.TB, text string) *policy.Policy {
	tb.Helper()
	roots := &trustroot.Roots{}
	root, err := trustroot.Parse([]byte(keysOf("private", y.private.Sigstore)), "root.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	roots.Put(root)
	text = strings.NewReplacer(
		"$HOST", y.Registry.Host(), "$RELEASE", quoted(tb, y.release.PublicPEM()),
		"$SECURITY", quoted(tb, y.security.PublicPEM()), "$QUALITY", quoted(tb, y.quality.PublicPEM()),
	).Replace(text)
	p, err := sigstore.New(sigstore.Options{TrustRoots: roots}).Compile([]byte(text), "test.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// build makes a new image below a folder.
func (y *yard) build(folder string) gatetest.Image {
	y.images++
	return y.Build(fmt.Sprintf("%s/app%d", folder, y.images), "v1", fmt.Sprint(y.images))
}

// buildAs makes an image of one platform that runs as a user.
func (y *yard) buildAs(architecture, user string) gatetest.Image {
	y.images++
	repository := fmt.Sprintf("shop/app%d", y.images)
	config := y.Registry.PutBlob(repository, ocispec.MediaTypeImageConfig, fmt.Appendf(nil, `{"os":"linux","architecture":%q,"config":{"User":%q}}`, architecture, user))
	body, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": ocispec.MediaTypeImageManifest, "config": config,
		"layers": []registrytest.Descriptor{y.Registry.PutBlob(repository, ocispec.MediaTypeImageLayer, []byte(user))},
	})
	if err != nil { // made of our own values only
		panic(err)
	}
	return gatetest.Image{
		Name: y.Registry.Host() + "/" + repository + ":v1", Repository: repository,
		Manifest: y.Registry.PutManifest(repository, "v1", ocispec.MediaTypeImageManifest, body),
	}
}

// evidence attaches a signature or statement to an image.
type evidence func(*testing.T, *yard, gatetest.Image)

func done(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func byKey(who func(*yard) *verifytest.Signer) evidence {
	return func(t *testing.T, y *yard, i gatetest.Image) {
		done(t, y.SignLegacy(i, verifytest.Claim{Signer: who(y), NoLog: true}, nil))
	}
}

// bundledByKey is a signature in a bundle by a key.
func bundledByKey(who func(*yard) *verifytest.Signer) evidence {
	return func(t *testing.T, y *yard, i gatetest.Image) {
		done(t, y.SignBundle(i, verifytest.Claim{Signer: who(y), NoLog: true}, nil))
	}
}

func release(y *yard) *verifytest.Signer  { return y.release }
func security(y *yard) *verifytest.Signer { return y.security }
func quality(y *yard) *verifytest.Signer  { return y.quality }
func stranger(y *yard) *verifytest.Signer { return y.stranger }

// stating is an attestation by a key.
func stating(who func(*yard) *verifytest.Signer, predicateType, predicate string) evidence {
	return func(t *testing.T, y *yard, i gatetest.Image) {
		done(t, y.AttestLegacy(i, verifytest.Claim{Signer: who(y), NoLog: true}, predicateType, json.RawMessage(predicate)))
	}
}

// elsewhere is evidence in the repository signatures.
func elsewhere(e evidence) evidence {
	return func(t *testing.T, y *yard, i gatetest.Image) {
		i.Repository = "signatures"
		e(t, y, i)
	}
}

// prefixed is a signature by the release key under a prefix, in a repository or beside
// the image.
func prefixed(repository, prefix string) evidence {
	return func(t *testing.T, y *yard, i gatetest.Image) {
		if strings.HasPrefix(i.Repository, repository) {
			repository = i.Repository
		}
		layer, err := y.Sigstore.Layer(verifytest.Claim{Signer: y.release, NoLog: true, Image: &verifytest.SimpleSigning{Reference: "x", Digest: i.Manifest.Digest}})
		done(t, err)
		blob := y.Registry.PutBlob(repository, layer.MediaType, layer.Payload)
		blob.Annotations = layer.Annotations
		body, err := json.Marshal(map[string]any{
			"schemaVersion": 2, "mediaType": ocispec.MediaTypeImageManifest,
			"config": y.Registry.PutBlob(repository, ocispec.MediaTypeImageConfig, []byte("{}")), "layers": []registrytest.Descriptor{blob},
		})
		done(t, err)
		y.Registry.PutManifest(repository, prefix+strings.Replace(i.Manifest.Digest, ":", "-", 1)+".sig", ocispec.MediaTypeImageManifest, body)
	}
}

// referrer is a statement in a bare DSSE envelope that refers to the image (OCI 1.1),
// signed by a key or unsigned.
func referrer(who func(*yard) *verifytest.Signer, predicateType, predicate string) evidence {
	return func(t *testing.T, y *yard, i gatetest.Image) {
		claim := verifytest.Claim{Signer: y.stranger, NoLog: true, NoSignatures: true}
		if who != nil {
			claim = verifytest.Claim{Signer: who(y), NoLog: true}
		}
		claim.Statement = verifytest.Attestation(i.Manifest.Digest, predicateType, json.RawMessage(predicate))
		layer, err := y.Sigstore.Layer(claim)
		done(t, err)
		y.Registry.PutReferrer(i.Repository, i.Manifest, verifytest.IntotoPayloadType, layer.Payload)
	}
}

// workflow signs as a GitHub workflow does.
func workflow(uri, ref, trigger string) evidence {
	return func(t *testing.T, y *yard, i gatetest.Image) {
		signer, err := y.Sigstore.Keyless(verifytest.Identity{
			URI: uri, Issuer: "https://token.actions.githubusercontent.com",
			Extensions: map[verifytest.Extension]string{verifytest.WorkflowRef: ref, verifytest.WorkflowTrigger: trigger},
		})
		done(t, err)
		done(t, y.SignLegacy(i, verifytest.Claim{Signer: signer}, nil))
	}
}

const mainWorkflow = "https://github.com/shop/app/.github/workflows/release.yml@refs/heads/main"

// ann signs without a key of her own, by one of the two Sigstores, in one of two
// formats.
func ann(private, bundled bool) evidence {
	return func(t *testing.T, y *yard, i gatetest.Image) {
		at := y.Yard
		if private {
			at = y.private
		}
		claim := verifytest.Claim{Signer: verifytest.Must(at.Sigstore.Keyless(verifytest.Identity{Email: "ann@example.com", Issuer: "https://issuer.example"}))}
		if bundled {
			done(t, at.SignBundle(i, claim, nil))
		} else {
			done(t, at.SignLegacy(i, claim, nil))
		}
	}
}

// stamped is a signature by the release key with a timestamp of one of the two.
func stamped(private bool) evidence {
	return func(t *testing.T, y *yard, i gatetest.Image) {
		at := y.Yard
		if private {
			at = y.private
		}
		done(t, at.SignLegacy(i, verifytest.Claim{Signer: y.release, NoLog: true, Stamps: []verifytest.Stamp{{}}}, nil))
	}
}

// object is what asks to run the image $IMAGE.
const podObject = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"prod","labels":{"team":"shop"}},"spec":{"containers":[{"name":"web","image":"$IMAGE"}]}}`

func deploymentObject(tier string) string {
	return `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"prod","labels":{"tier":"` + tier + `"}},"spec":{"template":{"spec":{"containers":[{"name":"web","image":"$IMAGE"}]}}}}`
}

func request(tb testing.TB, object, image string) gate.Request {
	tb.Helper()
	parsed, err := workload.Parse([]byte(strings.ReplaceAll(object, "$IMAGE", image)))
	if err != nil {
		tb.Fatal(err)
	}
	return gate.Request{Object: parsed}
}

const (
	goodScan = `{"scanner":{"uri":"https://scanner.example/v1","result":[{"severity":"LOW"}]},"metadata":{"scanFinishedOn":"2030-01-01T00:00:00Z"}}`
	badScan  = `{"scanner":{"uri":"https://scanner.example/v1","result":[{"severity":"LOW"},{"severity":"CRITICAL"}]},"metadata":{"scanFinishedOn":"2030-01-01T00:00:00Z"}}`
)

// TestPolicies accepts and refuses images that real signers worked on, by policies
// such as people write.
func TestPoliciesAtTheGate(t *testing.T) {
	y := newYard(t)
	seen := map[string]map[gate.Result]bool{}
	for _, c := range []struct {
		policy   string
		evidence []evidence
		want     gate.Result
		reason   string
		folder   string // shop if empty
		object   string // podObject if empty
		warned   bool
	}{
		{policy: "key", evidence: []evidence{byKey(release)}, want: gate.Allow, reason: "signed by the key"},
		{policy: "key", evidence: []evidence{byKey(stranger)}, want: gate.Deny, reason: "signed by another key"},
		{policy: "key", want: gate.Deny, reason: "unsigned"},
		{policy: "key", folder: "other", want: gate.Unchecked, reason: "an image that it does not name"},
		{policy: "keyless-regexp", evidence: []evidence{workflow(mainWorkflow, "refs/heads/main", "push")}, want: gate.Allow, reason: "the workflow"},
		{policy: "keyless-regexp", evidence: []evidence{workflow(strings.Replace(mainWorkflow, "main", "dev", 1), "refs/heads/dev", "push")}, want: gate.Deny, reason: "the workflow of another branch"},
		{policy: "keyless-regexp", evidence: []evidence{workflow("https://evil.example/"+mainWorkflow, "refs/heads/main", "push")}, want: gate.Deny, reason: "a name that ends alike (import trap)"},
		{policy: "attestation-cue", evidence: []evidence{stating(security, vulnType, goodScan)}, want: gate.Allow, reason: "a scan"},
		{policy: "attestation-cue", evidence: []evidence{stating(security, vulnType, badScan)}, want: gate.Deny, reason: "a scan with findings"},
		{policy: "attestation-cue", evidence: []evidence{stating(stranger, vulnType, goodScan)}, want: gate.Deny, reason: "a scan by another key"},
		{policy: "attestation-cue", evidence: []evidence{byKey(security)}, want: gate.Deny, reason: "a signature is no scan"},
		{policy: "attestation-cue", evidence: []evidence{referrer(security, vulnType, goodScan)}, want: gate.Allow, reason: "a bare referrer"},
		{policy: "attestation-cue", evidence: []evidence{referrer(stranger, vulnType, goodScan)}, want: gate.Deny, reason: "a bare referrer by another key (enable-oci11)"},
		{policy: "attestation-cue", evidence: []evidence{referrer(nil, vulnType, goodScan)}, want: gate.Deny, reason: "a bare referrer, unsigned (enable-oci11)"},
		{policy: "attestation-rego", evidence: []evidence{stating(release, provenanceType, `{"builder":{"id":"https://builds.example/trusted"}}`)}, want: gate.Allow, reason: "provenance"},
		{policy: "attestation-rego", evidence: []evidence{stating(release, provenanceType, `{"builder":{"id":"https://builds.example/laptop"}}`)}, want: gate.Deny, reason: "provenance of another builder"},
		{policy: "attestation-rego", evidence: []evidence{stating(release, vulnType, `{"builder":{"id":"https://builds.example/trusted"}}`)}, want: gate.Deny, reason: "a statement of another type (CVE-2022-35930)"},
		{policy: "static-pass", folder: "base", want: gate.Allow, reason: "unsigned"},
		{policy: "static-fail", folder: "retired", evidence: []evidence{byKey(release)}, want: gate.Deny, reason: "signed all the same"},
		{policy: "two-of-three", evidence: []evidence{byKey(release), byKey(quality)}, want: gate.Allow, reason: "two sign"},
		{policy: "two-of-three", evidence: []evidence{byKey(quality), stating(security, vulnType, goodScan)}, want: gate.Allow, reason: "one signs, one states"},
		{policy: "two-of-three", evidence: []evidence{byKey(release), byKey(release)}, want: gate.Deny, reason: "one signs twice"},
		{policy: "two-of-three", evidence: []evidence{byKey(release), byKey(security)}, want: gate.Deny, reason: "one signs that should attest"},
		{policy: "release-and-scan", evidence: []evidence{byKey(release), stating(security, vulnType, goodScan)}, want: gate.Allow, reason: "both"},
		{policy: "release-and-scan", evidence: []evidence{byKey(release)}, want: gate.Deny, reason: "no scan"},
		{policy: "match", object: deploymentObject("shop"), evidence: []evidence{byKey(release)}, want: gate.Allow, reason: "signed"},
		{policy: "match", object: deploymentObject("shop"), want: gate.Deny, reason: "unsigned"},
		{policy: "match", object: deploymentObject("back"), want: gate.Unchecked, reason: "another label"},
		{policy: "match", want: gate.Unchecked, reason: "another resource"},
		{policy: "warn", evidence: []evidence{byKey(release)}, want: gate.Allow, reason: "signed"},
		{policy: "warn", want: gate.Allow, warned: true, reason: "unsigned"},
		{policy: "source", evidence: []evidence{elsewhere(byKey(release))}, want: gate.Allow, reason: "signed there"},
		{policy: "source", evidence: []evidence{byKey(release)}, want: gate.Deny, reason: "signed beside the image"},
		{policy: "tag-prefix", evidence: []evidence{prefixed("signatures", "shop-")}, want: gate.Allow, reason: "signed under the prefix"},
		{policy: "tag-prefix", evidence: []evidence{prefixed("signatures", "other-"), elsewhere(byKey(release))}, want: gate.Deny, reason: "signed under another, and under none"},
		{policy: "own-prefix", evidence: []evidence{prefixed("shop/app", "shop-")}, want: gate.Allow, reason: "signed beside the image under the prefix"},
		{policy: "own-prefix", evidence: []evidence{byKey(release)}, want: gate.Deny, reason: "signed beside the image under none"},
		{policy: "bundle", evidence: []evidence{ann(false, true)}, want: gate.Allow, reason: "a bundle"},
		{policy: "bundle", evidence: []evidence{ann(false, false)}, want: gate.Deny, reason: "a signature in the older format"},
		{policy: "bundle-key", evidence: []evidence{bundledByKey(release)}, want: gate.Allow, reason: "a bundle by the key"},
		{policy: "bundle-key", evidence: []evidence{bundledByKey(stranger)}, want: gate.Deny, reason: "a bundle by another key"},
		{policy: "bundle-key", evidence: []evidence{byKey(release)}, want: gate.Deny, reason: "a signature in the older format"},
		{policy: "key", evidence: []evidence{bundledByKey(release)}, want: gate.Allow, reason: "a bundle where no format is asked for"},
		{policy: "private-root", evidence: []evidence{ann(true, false)}, want: gate.Allow, reason: "by the private Sigstore"},
		{policy: "private-root", evidence: []evidence{ann(false, false)}, want: gate.Deny, reason: "by the gateway's own"},
		{policy: "private-timestamp", evidence: []evidence{stamped(true)}, want: gate.Allow, reason: "with a private timestamp"},
		{policy: "private-timestamp", evidence: []evidence{stamped(false)}, want: gate.Deny, reason: "with one of the gateway's own root"},
		{policy: "private-timestamp", evidence: []evidence{byKey(release)}, want: gate.Deny, reason: "with none"},
		{policy: "signature-or-scan", evidence: []evidence{byKey(release)}, want: gate.Allow, reason: "a signature"},
		{policy: "signature-or-scan", evidence: []evidence{elsewhere(stating(security, vulnType, goodScan))}, want: gate.Allow, reason: "a scan in its place"},
		{policy: "signature-or-scan", evidence: []evidence{stating(security, vulnType, goodScan)}, want: gate.Deny, reason: "a scan in another place"},
		{policy: "signature-or-scan", evidence: []evidence{elsewhere(byKey(release))}, want: gate.Deny, reason: "a signature in the scan's place"},
		{policy: "no-root-user", evidence: []evidence{byKey(release)}, want: gate.Deny, reason: "signed, and runs as root"},
		{policy: "own-network", evidence: []evidence{byKey(release)}, want: gate.Allow, reason: "signed"},
		{policy: "own-network", want: gate.Deny, reason: "unsigned"},
		{policy: "own-network", object: strings.Replace(podObject, `"spec":{`, `"spec":{"hostNetwork":true,`, 1), evidence: []evidence{byKey(release)}, want: gate.Deny, reason: "signed, in the network of the host"},
		{policy: "own-network", object: strings.Replace(podObject, `"team":"shop"`, `"team":"back"`, 1), evidence: []evidence{byKey(release)}, want: gate.Deny, reason: "signed, by another team"},
		{policy: "own-network", object: deploymentObject("shop"), evidence: []evidence{byKey(release)}, want: gate.Deny, reason: "signed, in another kind of object"},
		{policy: "workflow", evidence: []evidence{workflow(mainWorkflow, "refs/heads/main", "push")}, want: gate.Allow, reason: "from the branch"},
		{policy: "workflow", evidence: []evidence{workflow(mainWorkflow, "refs/heads/dev", "push")}, want: gate.Deny, reason: "from another branch"},
		{policy: "workflow", evidence: []evidence{workflow(mainWorkflow, "refs/heads/main", "pull_request")}, want: gate.Deny, reason: "at another occasion"},
	} {
		if seen[c.policy] == nil {
			seen[c.policy] = map[gate.Result]bool{}
		}
		seen[c.policy][c.want] = true
		t.Run(c.policy+"/"+c.reason, func(t *testing.T) {
			folder, object := c.folder, c.object
			if folder == "" {
				folder = "shop"
			}
			if object == "" {
				object = podObject
			}
			image := y.build(folder)
			for _, e := range c.evidence {
				e(t, y, image)
			}
			g, err := y.Gate(y.policy(t, c.policy))
			done(t, err)
			for range 2 { // the second time from memory
				out := g.Decide(t.Context(), request(t, object, image.Name))
				if out.Result != c.want || (len(out.Verdicts[0].Warnings) > 0) != c.warned {
					t.Errorf("%s %+v, warnings %+v; want %s", out.Result, out.Verdicts[0].Reasons, out.Verdicts[0].Warnings, c.want)
				}
			}
		})
	}
	everyPolicyIsUsed(t, seen)
}

// TestConfigAtTheGate: the configurations of the very image that was proved.
func TestConfigAtTheGate(t *testing.T) {
	y := newYard(t)
	g, err := y.Gate(y.policy(t, "no-root-user"))
	done(t, err)
	for _, c := range []struct {
		user   string
		signed bool
		want   gate.Result
		reason string
	}{
		{"app", true, gate.Allow, "a user"},
		{"0", true, gate.Deny, "root by number"},
		{"", true, gate.Deny, "root by saying nothing"},
		{"other", false, gate.Deny, "a user, and unsigned"},
	} {
		image := y.buildAs("amd64", c.user)
		if c.signed {
			byKey(release)(t, y, image)
		}
		for range 2 { // the second time from memory
			if out := g.Decide(t.Context(), request(t, podObject, image.Name)); out.Result != c.want {
				t.Errorf("%s: %s %+v; want %s", c.reason, out.Result, out.Verdicts[0].Reasons, c.want)
			}
		}
	}
}

// TestUpdatesAtTheGate: an update that brings an object under a policy, or changes what
// spec.policy reads of it, has its images verified although they are the same.
func TestUpdatesAtTheGate(t *testing.T) {
	y := newYard(t)
	of := func(name string) string {
		text, err := os.ReadFile(filepath.Join("testdata", "policies", name+".yaml"))
		done(t, err)
		return string(text)
	}
	labelled := func(text string) string {
		return strings.Replace(text, "spec:\n", "spec:\n  match: [{resource: pods, version: v1, selector: {matchLabels: {team: shop}}}]\n", 1)
	}
	foreign := strings.Replace(podObject, `"team":"shop"`, `"team":"back"`, 1)
	shared := strings.Replace(podObject, `"spec":{`, `"spec":{"hostNetwork":true,`, 1)
	scaled := func(replicas string) string {
		return strings.Replace(podObject, `"spec":{`, `"spec":{"hostNetwork":true,"replicas":`+replicas+`,`, 1)
	}
	for _, c := range []struct {
		reason, policy, old, now string
		signed                   bool
		want                     gate.Result
	}{
		{"the selected label is added to an unsigned image", labelled(of("key")), foreign, podObject, false, gate.Deny},
		{"to a signed one", labelled(of("key")), foreign, podObject, true, gate.Allow},
		{"it was there", labelled(of("key")), podObject, podObject, false, gate.Allow},
		{"it is removed", labelled(of("key")), podObject, foreign, false, gate.Allow},
		{"the spec does not conform any more", of("own-network"), podObject, shared, true, gate.Deny},
		{"the labels are no longer", of("own-network"), podObject, foreign, true, gate.Deny},
		{"both are", of("own-network"), foreign, podObject, true, gate.Allow},
		{"they were not before, either", of("own-network"), shared, shared, true, gate.Allow},
		{"it is scaled down", of("own-network"), scaled("3"), scaled("2"), true, gate.Allow},
		{"it is scaled up", of("own-network"), scaled("2"), scaled("3"), true, gate.Deny},
	} {
		g, err := y.Gate(y.compile(t, c.policy))
		done(t, err)
		image := y.build("shop")
		if c.signed {
			byKey(release)(t, y, image)
		}
		asked := request(t, c.now, image.Name)
		asked.Old, asked.Subject.Operation = request(t, c.old, image.Name).Object, "UPDATE"
		if out := g.Decide(t.Context(), asked); out.Result != c.want {
			t.Errorf("%s: %s %+v; want %s", c.reason, out.Result, out.Verdicts[0].Reasons, c.want)
		}
	}
}

// everyPolicyIsUsed: each file accepts something and refuses something, but for those
// that say that they never do.
func everyPolicyIsUsed(t *testing.T, seen map[string]map[gate.Result]bool) {
	t.Helper()
	never := map[string]gate.Result{"static-pass": gate.Deny, "static-fail": gate.Allow, "warn": gate.Deny, "no-root-user": gate.Allow}
	files, err := filepath.Glob("testdata/policies/*.yaml")
	done(t, err)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		for _, answer := range []gate.Result{gate.Allow, gate.Deny} {
			if !seen[name][answer] && never[name] != answer {
				t.Errorf("%s never comes to %s", name, answer)
			}
		}
	}
	if len(files) < 12 {
		t.Errorf("%d policies", len(files))
	}
}

// TestNotLookedAtTheGate: an image that is not there and a registry that fails are no
// unsigned images, and no errors that are merely logged.
func TestNotLookedAtTheGate(t *testing.T) {
	y := newYard(t)
	for _, name := range []string{"key", "signature-or-scan", "two-of-three", "no-root-user"} {
		g, err := y.Gate(y.policy(t, name))
		done(t, err)
		out := g.Decide(t.Context(), request(t, podObject, y.Registry.Host()+"/shop/none:v1"))
		if out.Result != gate.Error || out.Verdicts[0].Reasons[0].Code != policy.ImageNotFound {
			t.Errorf("%s, no such image: %s %+v", name, out.Result, out.Verdicts[0].Reasons)
		}
	}
	image := y.build("shop")
	byKey(quality)(t, y, image)
	g, err := y.Gate(y.policy(t, "two-of-three"))
	done(t, err)
	y.Registry.SetFaults(registrytest.Fault{Reference: strings.Replace(image.Manifest.Digest, ":", "-", 1) + ".att", Do: registrytest.Status(500)})
	if out := g.Decide(t.Context(), request(t, podObject, image.Name)); out.Result != gate.Error {
		t.Errorf("the statements cannot be read: %s %+v", out.Result, out.Verdicts[0].Reasons)
	}
}

// TestTogetherAtTheGate: a policy that warns beside one that enforces does not weaken
// it, in whatever order they are asked.
func TestTogetherAtTheGate(t *testing.T) {
	y := newYard(t)
	for _, names := range [][2]string{{"a", "z"}, {"z", "a"}} {
		enforcing := y.compile(t, strings.NewReplacer("ghcr.io/org", "$HOST/shop", "signed", names[0]).Replace(head)+"  authorities: [{key: {data: $RELEASE}}]\n")
		warning := y.compile(t, strings.NewReplacer("ghcr.io/org", "$HOST/shop", "signed", names[1]).Replace(head)+"  mode: warn\n  authorities: [{key: {data: $QUALITY}}]\n")
		g, err := y.Gate(enforcing, warning)
		done(t, err)
		for _, c := range []struct {
			by     []evidence
			want   gate.Result
			warned bool
			reason string
		}{
			{nil, gate.Deny, true, "neither"},
			{[]evidence{byKey(quality)}, gate.Deny, false, "the one that warns alone"},
			{[]evidence{byKey(release)}, gate.Allow, true, "the one that enforces alone"},
			{[]evidence{byKey(release), byKey(quality)}, gate.Allow, false, "both"},
		} {
			image := y.build("shop")
			for _, e := range c.by {
				e(t, y, image)
			}
			out := g.Decide(t.Context(), request(t, podObject, image.Name))
			if out.Result != c.want || (len(out.Verdicts[0].Warnings) > 0) != c.warned {
				t.Errorf("%s: %s %+v, warnings %+v; want %s", c.reason, out.Result, out.Verdicts[0].Reasons, out.Verdicts[0].Warnings, c.want)
			}
		}
	}
}

// TestDigestsAtTheGate: a glob with a digest matches an image with a tag that resolves to
// it, as in policy-controller, where tags are resolved first.
func TestDigestsAtTheGate(t *testing.T) {
	y := newYard(t)
	bad, good := y.Build("shop/app", "bad", "bad"), y.Build("shop/app", "good", "good")
	byKey(release)(t, y, good)
	const refuse, signed = "{static: {action: fail}}", "{key: {data: $RELEASE}}"
	for _, c := range []struct {
		glob, authority, image string
		want                   gate.Result
		reason                 string
	}{
		{"@" + bad.Manifest.Digest, refuse, bad.ByDigest(), gate.Deny, "the digest itself"},
		{"@" + bad.Manifest.Digest, refuse, bad.Name, gate.Deny, "a tag that resolves to it"},
		{"@" + bad.Manifest.Digest, refuse, good.Name, gate.Allow, "a tag that resolves to another"},
		{"@" + bad.Manifest.Digest, refuse, good.ByDigest(), gate.Unchecked, "another digest"},
		{"@" + bad.Manifest.Digest, signed, bad.Name, gate.Deny, "a tag of the digest that must be signed"},
		{"@sha256:*", signed, bad.Name, gate.Deny, "any digest must be signed, and the tag's is not"},
		{"@sha256:*", signed, good.Name, gate.Allow, "any digest must be signed, and the tag's is"},
		{"**sha256:*", signed, bad.Name, gate.Deny, "any digest, without the @"},
		{"*" + bad.Manifest.Digest, refuse, bad.Name, gate.Deny, "a digest without the @"},
		{"*" + bad.Manifest.Digest, refuse, good.Name, gate.Allow, "a digest without the @, and a tag that resolves to another"},
		{"s/**sha256:*", signed, bad.Name, gate.Unchecked, "any digest of other repositories, without the @"},
		{":g**sha256:*", signed, bad.Name, gate.Unchecked, "any digest beside another tag, without the @"},
		{":b**sha256:*", signed, bad.Name, gate.Deny, "any digest beside a tag, without the @"},
		{"@sha256:*", signed, strings.Replace(good.Name, ":good", ":none", 1), gate.Error, "the tag's digest is not known"},
		{"@" + bad.Manifest.Digest, "{static: {action: pass}}", good.Name, gate.Allow, "nothing is asked anyway"},
	} {
		text := strings.Replace(head, "ghcr.io/org/**", `"$HOST/shop/app`+c.glob+`"`, 1) + "  authorities: [" + c.authority + "]\n"
		g, err := y.Gate(y.compile(t, text))
		done(t, err)
		r := request(t, podObject, c.image)
		r.Pinning = gate.PinHere
		out := g.Decide(t.Context(), r)
		if out.Result != c.want {
			t.Errorf("%s: %s %+v; want %s", c.reason, out.Result, out.Verdicts[0].Reasons, c.want)
		}
		if isTag := c.image == good.Name; c.want == gate.Allow && !strings.Contains(c.authority, "pass") && isTag != (len(out.Patch) > 0) {
			t.Errorf("%s: a tag may be moved, and the patch is %v", c.reason, out.Patch)
		}
	}
}
