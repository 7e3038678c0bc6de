package imagevalidating_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
)

// planned plans a policy for a pod of one container.
func planned(t testing.TB, text string, object map[string]any) (policy.RulePlan, error) {
	t.Helper()
	p := testkit.Must(compile(text))(t)
	subject := &policy.Subject{Object: policy.ContentOf(object), Kind: "Pod", Version: "v1", Operation: "CREATE", Namespace: "shop"}
	found := policy.Image{Role: "container", Pointer: "/spec/containers/0/image", Ref: image.MustParse("registry.example/org/app:v1")}
	return p.Rules[0].Plan(t.Context(), subject, []policy.Image{found})
}

// TestAsks: the claim queries name only the attestors and types of the expressions, and all
// of them where the expression computes them.
func TestAsks(t *testing.T) {
	const call = "images.containers.all(i, verifyImageSignatures(i, [attestors.ours]) > 0)"
	for _, c := range []struct {
		reason, expression string
		want               string
	}{
		{"one", call, "ours"},
		{"by index", "images.containers.all(i, verifyImageSignatures(i, [attestors['ours']]) > 0)", "ours"},
		{"both", "images.containers.all(i, verifyImageSignatures(i, [attestors.ours, attestors.keyless]) > 0)", "ours keyless"},
		{"either", "images.containers.all(i, verifyImageSignatures(i, i == '' ? [attestors.ours] : [attestors.keyless]) > 0)", "ours keyless"},
		{"computed", "images.containers.all(i, verifyImageSignatures(i, attestors.map(k, attestors[k])) > 0)", "ours keyless"},
		{"a statement", "images.containers.all(i, verifyAttestationSignatures(i, attestations.scan, [attestors.keyless]) > 0)", "keyless/https://cosign.sigstore.dev/attestation/vuln/v1"},
		{"a statement, by computed attestors", "images.containers.all(i, verifyAttestationSignatures(i, attestations.sbom, attestors.map(k, attestors[k])) >= 0)", ""},
		{"either statement", "images.containers.all(i, verifyAttestationSignatures(i, i == '' ? attestations.sbom : attestations.scan, [attestors.ours]) >= 0)", "ours/https://cosign.sigstore.dev/attestation/vuln/v1"},
		{"a computed statement", "images.containers.all(i, verifyAttestationSignatures(i, i == '' ? 'scan' : 'sbom', [attestors.ours]) >= 0)", "ours/https://cosign.sigstore.dev/attestation/vuln/v1"},
		{"nothing", "images.containers.all(i, i.startsWith('registry.example/'))", ""},
	} {
		plan, err := planned(t, strings.Replace(minimal, call, "|-\n      "+c.expression, 1), map[string]any{})
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
			continue
		}
		var got []string
		for _, q := range plan.Checks[0].Asks {
			name := strings.TrimPrefix(q.Authority.Name, "attestors.")
			if q.Role == attest.Attestation {
				name += "/" + q.Predicate
			}
			got = append(got, name)
		}
		if text := strings.Join(slices.Compact(got), " "); text != c.want {
			t.Errorf("%s: asks %q, want %q", c.reason, text, c.want)
		}
	}
}

func TestChecks(t *testing.T) {
	plan := testkit.Must(planned(t, minimal, map[string]any{}))(t)
	check := plan.Checks[0]
	if !check.MutateDigest || !check.VerifyDigest || !check.Required || check.Action != policy.Enforce || check.WantsData != policy.NoData {
		t.Errorf("defaults: %+v", check)
	}
	text := edit(minimal, "spec:\n", "spec:\n  validationConfigurations: {mutateDigest: false, verifyDigest: false, required: false}\n"+
		"  credentials: {allowInsecureRegistry: true, providers: [amazon], secrets: [pull, other/pull]}\n  validationActions: [Warn]\n")
	text = edit(text, "- expression: images", "- expression: images.containers.all(i, getImageData(i).manifest.schemaVersion == 2)\n  - expression: images")
	check = testkit.Must(planned(t, text, map[string]any{}))(t).Checks[0]
	if check.MutateDigest || check.VerifyDigest || check.Required || check.Action != policy.Warn || check.WantsData != policy.DataOne {
		t.Errorf("settings: %+v", check)
	}
	c := check.Credentials
	if !c.AllowInsecure || !slices.Equal(c.Providers, []string{"amazon"}) || !slices.Equal(c.Secrets, []string{"kyverno/pull", "other/pull"}) {
		t.Errorf("credentials: %+v", c)
	}
	for secrets, want := range map[string]string{"pull": "shop/pull", "shop/pull": "shop/pull"} {
		own := edit(minimal, "kind: Image", "kind: NamespacedImage", "{name: minimal}", "{name: minimal, namespace: shop}", "spec:\n", "spec:\n  credentials: {secrets: ["+secrets+"]}\n")
		if c := testkit.Must(planned(t, own, map[string]any{}))(t).Checks[0].Credentials; !slices.Equal(c.Secrets, []string{want}) {
			t.Errorf("the secret %s of a policy of a namespace: %+v", secrets, c)
		}
	}
	sourced := edit(minimal, "cosign: {key:", "cosign: {source: {repository: registry.example/signatures, PullSecrets: [{name: sigs}]}, key:")
	check = testkit.Must(planned(t, sourced, map[string]any{}))(t).Checks[0]
	if len(check.Asks[0].Sources) != 1 || !slices.Equal(check.Credentials.Secrets, []string{"shop/sigs"}) {
		t.Errorf("sources: %+v %+v", check.Asks[0].Sources, check.Credentials)
	}
}

// TestAttestorExpressions: the keys of an attestor may depend on the object and on the
// image; a value that cannot be evaluated is an error, and never an attestor without keys.
func TestAttestorExpressions(t *testing.T) {
	h := newEnv(t)
	good, foreign := h.signed(t, "good", h.key).Name, h.signed(t, "foreign", h.stranger).Name
	text := edit(with(allSigned), "key: {data: 'KEY'}", "key: {expression: variables.key}",
		"spec:\n", "spec:\n  variables: [{name: key, expression: 'string(object.metadata.annotations[\"key\"])'}]\n")
	annotated := func(name string, key []byte) gate.Request {
		o := object{images: []string{name}, annotations: map[string]string{"key": string(key)}}
		return o.request(t)
	}
	expect(t, h.decide(t, annotated(good, h.key.PublicPEM()), text), "the key that signed", gate.Allow, "")
	expect(t, h.decide(t, annotated(good, h.stranger.PublicPEM()), text), "another key", gate.Deny, "wrong-key")
	expect(t, h.decide(t, annotated(foreign, h.stranger.PublicPEM()), text), "the other's image", gate.Allow, "")
	expect(t, h.decide(t, annotated(good, []byte("no key")), text), "no key", gate.Error, "PEM")
	expect(t, h.decide(t, pod(t, good), text), "no annotation", gate.Error, "no such key")
	subject := edit(minimal, "subject: ann@example.com", "subjectExpression: \"'https://github.com/' + image.split('/')[1]\"", "[attestors.ours]", "[attestors.keyless]")
	listing := edit(subject, "spec:\n", "spec:\n  variables: [{name: of, expression: \"image.GetMetadata('a.example/b')\"}]\n")
	if _, err := compile(listing); err == nil || !strings.Contains(err.Error(), "spec.variables[0]") {
		t.Errorf("a variable that means something else by image: %v", err)
	}
	plan := testkit.Must(planned(t, subject, map[string]any{}))(t)
	if a := plan.Checks[0].Asks[0].Authority; a.Keyless == nil || !strings.Contains(a.Keyless.Identities[0].String(), "https://github.com/org") {
		t.Errorf("%+v", plan.Checks[0].Asks[0].Authority)
	}
}

// TestAttestorsThatAreRead: an attestor with an expression is a claim query, whatever other
// attestors there are.
func TestAttestorsThatAreRead(t *testing.T) {
	const fixed = `cosign: {key: {data: "` + cert + `"}}`
	const read = "cosign: {key: {expression: string(object.key)}}"
	object := map[string]any{"key": strings.ReplaceAll(cert, "\\n", "\n")}
	keyless := "  - name: keyless\n    cosign: {keyless: {identities: [{issuer: https://issuer.example, subject: ann@example.com}]}}\n"
	ours := "  - name: ours\n    " + fixed + "\n"
	for reason, text := range map[string]string{
		"it is the first":   edit(minimal, fixed, read),
		"it is the last":    edit(minimal, ours+keyless, keyless+strings.Replace(ours, fixed, read, 1)),
		"it is the only":    edit(minimal, keyless, "", fixed, read),
		"there is another":  edit(minimal, fixed, read, keyless, strings.Replace(ours, "ours", "more", 1)+strings.Replace(strings.Replace(ours, "ours", "most", 1), fixed, read, 1)),
		"none is an answer": minimal,
	} {
		plan, err := planned(t, text, object)
		if err != nil || len(plan.Checks[0].Asks) != 1 {
			t.Errorf("%s: %+v, %v", reason, plan.Checks, err)
		}
	}
}

// TestImagePatterns: the globs limit a rule to images in advance, unless another part of it
// may apply.
func TestImagePatterns(t *testing.T) {
	globbed := edit(minimal, "spec:\n", "spec:\n  matchImageReferences: [{glob: 'a.example/*'}]\n")
	for _, c := range []struct {
		reason, text string
		known        bool
		ofObject     bool
	}{
		{"a glob", globbed, true, false},
		{"every image", minimal, false, false},
		{"a glob and an expression", edit(globbed, "[{glob", "[{expression: 'true'}, {glob"), false, false},
		{"a glob, and an expression names images", edit(ofAnyFields(globbed), "spec:\n", "spec:\n  images: [{name: a, expression: object.spec.a}]\n"), false, false},
		{"a glob, and the object is read", globbed + "  - expression: object.metadata.name == 'a'\n", false, true},
		{"a glob, and the object is read for each image", edit(globbed, "attestors.ours]) > 0", "attestors.ours]) > 0 && object.metadata.name == 'a'"), true, true},
		{"a glob, and the object is read before the images", edit(globbed, "  - expression: images", "  - expression: object.metadata.name == 'a'\n  - expression: images"), false, true},
		{"a glob, and the object is read for the first of two", edit(globbed, "attestors.ours]) > 0", "attestors.ours]) > 0 && object.metadata.name == 'a'") + "  - expression: images.containers.size() >= 0\n", true, true},
		{"a glob, and there must be an image", edit(globbed, "images.containers.all(", "images.containers.exists("), false, true},
	} {
		rule := testkit.Must(compile(c.text))(t).Rules[0]
		patterns, known := rule.(policy.Selective).ImagePatterns()
		if known != c.known || known != slices.Equal(patterns, []string{"a.example/*"}) {
			t.Errorf("%s: %v, %v", c.reason, patterns, known)
		}
		if got := rule.(policy.OfObject).AppliesToObject(); got != c.ofObject {
			t.Errorf("%s: it applies to the object: %v", c.reason, got)
		}
	}
}

// TestMatchedSubjects: the reason for which a rule does not match a subject, or cannot be
// evaluated.
func TestMatchedSubjects(t *testing.T) {
	all := edit(minimal, "operations: [CREATE]", "operations: ['*']")
	selected := edit(minimal, "{resourceRules:", "{namespaceSelector: {matchLabels: {a: b}}, resourceRules:")
	condition := func(text, expression string) string {
		return edit(text, "spec:\n", "spec:\n  matchConditions: [{name: a, expression: \""+expression+"\"}]\n")
	}
	elsewhere := func(text string) string {
		return edit(text, "spec:\n", "spec:\n  matchImageReferences: [{glob: 'other.example/*'}]\n")
	}
	said := func(expression string) string {
		return edit(minimal, "images.containers.all(", expression+" && images.containers.all(")
	}
	sourced := edit(minimal, "cosign: {key:", "cosign: {source: {repository: registry.example/signatures, PullSecrets: [{name: sigs}]}, key:")
	bare := func(s *policy.Subject) { s.Bare, s.Object = true, policy.Content{} }
	nowhere := func(s *policy.Subject) { bare(s); s.Namespace = "" }
	for _, c := range []struct {
		reason, text string
		change       func(*policy.Subject)
		want         string
	}{
		{"a kind that it matches", all, func(*policy.Subject) {}, "1"},
		{"a deletion", all, func(s *policy.Subject) { s.Operation = "DELETE" }, "nothing will run after a deletion"},
		{"another kind", all, func(s *policy.Subject) { s.Kind = "Service" }, "matchConstraints do not match"},
		{"a document", all, func(s *policy.Subject) { s.Kind = "" }, "is about Kubernetes objects"},
		{"an unknown namespace", selected, func(*policy.Subject) {}, "not known"},
		{"and that is not selected", selected, func(s *policy.Subject) { s.NamespaceKnown = true }, "matchConstraints do not match"},
		{"and that is", selected, func(s *policy.Subject) { s.NamespaceKnown, s.NamespaceLabels = true, map[string]string{"a": "b"} }, "1"},
		{"an unknown one, and a condition does not hold", condition(selected, "false"), func(*policy.Subject) {}, "matchConditions do not hold"},
		{"an unknown one, and no image matches", elsewhere(selected), func(*policy.Subject) {}, "0"},
		{"a condition that fails", condition(minimal, "dyn(object).none == 1"), func(*policy.Subject) {}, "no such key"},
		{"and no image is meant", elsewhere(condition(minimal, "dyn(object).none == 1")), func(*policy.Subject) {}, "0"},
		{"images alone", minimal, bare, "1"},
		{"and an expression names others", naming("object.spec.a"), bare, "images that expressions name (spec.images)"},
		{"known members of a request", said("request.kind.kind == 'Pod' && !request.dryRun"), bare, "1"},
		{"an unknown member", said("request.name == 'a'"), bare, "request.name"},
		{"all of it", said("1 == [request].size()"), bare, "request"},
		{"the object", said("dyn(object.spec).a == 'a'"), bare, "object.spec"},
		{"all of the object", said("1 == [object].size()"), bare, "object"},
		{"the old one", said("oldObject == null"), bare, "oldObject"},
		{"the first of several", said("dyn(object.spec).a == 'a' && request.name == 'a'"), bare, "object.spec"},
		{"the namespace", said("request.namespace == 'shop'"), bare, "1"},
		{"which is not known", said("request.namespace == 'shop'"), nowhere, "the object's namespace"},
		{"the name of the namespace", said("namespaceObject.metadata.name == 'shop'"), func(s *policy.Subject) { bare(s); s.NamespaceKnown = true }, "1"},
		{"of which the labels are not known", said("namespaceObject.metadata.name == 'shop'"), bare, "the labels of the object's namespace"},
		{"and which is not known", said("namespaceObject.metadata.name == 'shop'"), nowhere, "the object's namespace"},
		{"which is not known, and yet its labels", said("namespaceObject.metadata.name == 'shop'"), func(s *policy.Subject) { nowhere(s); s.NamespaceKnown = true }, "the object's namespace"},
		{"nothing else is asked", minimal, nowhere, "1"},
		{"pull secrets of a namespace", sourced, bare, "1"},
		{"of an unknown namespace", sourced, nowhere, "PullSecrets are in the object's namespace, and it is not known"},
	} {
		s := &policy.Subject{Object: policy.ContentOf(map[string]any{}), Kind: "Pod", Version: "v1", Operation: "CREATE", Namespace: "shop"}
		c.change(s)
		var got string
		switch plan, err := testkit.Must(compile(c.text))(t).Rules[0].Plan(t.Context(), s, containers(app)); {
		case err != nil:
			got = err.Error()
		case plan.Skip != "":
			got = plan.Skip
		default:
			got = strconv.Itoa(len(plan.Checks))
		}
		if !strings.Contains(got, c.want) || c.want == "0" && got != "0" {
			t.Errorf("%s: %s, want %s", c.reason, got, c.want)
		}
	}
}
