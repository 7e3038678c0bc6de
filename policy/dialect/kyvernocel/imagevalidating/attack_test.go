package imagevalidating_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
)

// TestUpdatesOfTheObject: the part of a validation that reads the object applies to an
// update that does not change the images, although the same expression reads them.
func TestUpdatesOfTheObject(t *testing.T) {
	h := newEnv(t)
	good := h.signed(t, "good", h.key).Name
	text := with("!(has(object.spec.hostNetwork) && object.spec.hostNetwork) && " + allSigned)
	exists := with("!(has(object.spec.hostNetwork) && object.spec.hostNetwork) && images.containers.exists(i, verifyImageSignatures(i, [attestors.ours]) > 0)")
	each := with("images.containers.all(i, verifyImageSignatures(i, [attestors.ours]) > 0 && !(has(object.spec.hostNetwork) && object.spec.hostNetwork))")
	open := object{kind: "Deployment", images: []string{good}, spec: map[string]any{"hostNetwork": true}}
	shut := object{kind: "Deployment", images: []string{good}}
	for _, c := range []struct {
		reason, text string
		old, now     object
		answer       gate.Result
	}{
		{"the object still conforms", text, shut, shut, gate.Allow},
		{"it is no longer", text, shut, open, gate.Deny},
		{"still, and an image is asked for", exists, shut, shut, gate.Allow},
		{"no longer, and an image is asked for", exists, shut, open, gate.Deny},
		{"for each image, still", each, shut, shut, gate.Allow},
		{"for each image, no longer", each, shut, open, gate.Deny},
		{"the condition cannot be evaluated", edit(each, "spec:\n", "spec:\n  matchConditions: [{name: a, expression: object.metadata.labels.missing == 'a'}]\n"), shut, open, gate.Error},
		{"the part that reads a statement is skipped", with("(images.containers.all(i, verifyAttestationSignatures(i, attestations.scan, [attestors.ours]) > 0 && extractPayload(i, attestations.scan).level == 'low')) && object.spec.containers.size() > 0"), shut, shut, gate.Allow},
		{"the images alone", with("images.containers.size() > 1 && " + allSigned), shut, shut, gate.Allow},
	} {
		request := c.now.request(t)
		request.Old, request.Subject.Operation = c.old.request(t).Object, "UPDATE"
		expect(t, h.decide(t, request, c.text), c.reason, c.answer, "")
	}
}

// TestUpdatesThatRequireSignatures: a validation that requires signatures of some objects evaluates all images
// of an object that an update makes one of them, and of one whose images change in part.
func TestUpdatesThatRequireSignatures(t *testing.T) {
	h := newEnv(t)
	a, b, bare := h.signed(t, "a", h.key).Name, h.signed(t, "b", h.key).Name, h.signed(t, "bare").Name
	open := func(image ...string) object { return object{images: image, spec: map[string]any{"hostNetwork": true}} }
	shut := func(image ...string) object { return object{images: image} }
	const isOpen = "(has(object.spec.hostNetwork) && object.spec.hostNetwork)"
	for reason, expression := range map[string]string{
		"an alternative":               "!" + isOpen + " || " + allSigned,
		"a choice":                     isOpen + " ? " + allSigned + " : true",
		"the images of the object":     "!" + isOpen + " || object.spec.containers.all(c, verifyImageSignatures(c.image, [attestors.ours]) > 0)",
		"a comparison with the object": "!" + isOpen + " || images.containers.filter(i, verifyImageSignatures(i, [attestors.ours]) > 0).size() == object.spec.containers.size()",
		"a variable":                   "!variables.open || " + allSigned,
	} {
		text := edit(with(expression), "spec:\n", "spec:\n  validationConfigurations: {required: false}\n  variables: [{name: open, expression: \""+isOpen+"\"}]\n")
		for _, row := range []struct {
			reason   string
			old, now object
			want     gate.Result
		}{
			{"nothing is required", shut(bare), shut(bare, bare), gate.Allow},
			{"the update requires what is not signed", shut(bare), open(bare), gate.Deny},
			{"the update requires what is signed", shut(a), open(a), gate.Allow},
			{"one of two changes", open(a, b), open(a, a), gate.Allow},
			{"one of two becomes unsigned", open(a, b), open(a, bare), gate.Deny},
			{"one of two was unsigned", open(bare, b), open(bare, a), gate.Deny},
		} {
			request := row.now.request(t)
			request.Old, request.Subject.Operation = row.old.request(t).Object, "UPDATE"
			expect(t, h.decide(t, request, text), reason+": "+row.reason, row.want, "")
		}
	}
}

// TestRequiredByTheCluster: the author of a policy of a namespace cannot change the
// requirements of a policy of the cluster.
func TestRequiredByTheCluster(t *testing.T) {
	h := newEnv(t)
	good, theirs := h.signed(t, "good", h.key).Name, h.signed(t, "theirs", h.stranger).Name
	tenant := edit(with("images.initContainers.all(i, verifyImageSignatures(i, [attestors.theirs]) > 0)"),
		"kind: Image", "kind: NamespacedImage", "{name: signed}", "{name: tenant, namespace: default}", "spec:\n", "spec:\n  validationConfigurations: {required: false}\n")
	cluster := edit(tenant, "kind: NamespacedImage", "kind: Image", "{name: tenant, namespace: default}", "{name: other}")
	asks := object{images: []string{good}, init: []string{theirs}}
	expect(t, h.decide(t, asks.request(t), with(allSigned)), "the other one is not verified", gate.Deny, "unverified")
	expect(t, h.decide(t, asks.request(t), with(allSigned), cluster), "another policy of the cluster does", gate.Allow, "")
	expect(t, h.decide(t, asks.request(t), with(allSigned), tenant), "a policy of the namespace does", gate.Deny, "unverified")
	own := edit(tenant, "required: false", "required: true", "images.init", "images.containers.all(i, true) && images.init")
	expect(t, h.decide(t, object{images: []string{good}}.request(t), own), "the namespace's own", gate.Deny, "unverified")
	expect(t, h.decide(t, object{images: []string{good}}.request(t), own, with(allSigned)), "is met by the cluster's", gate.Allow, "")
}

// TestManyImages: an object of very many images is answered in time.
func TestManyImages(t *testing.T) {
	h := newEnv(t)
	good := h.signed(t, "good", h.key).Name
	text := with("object.spec.containers.all(c, verifyImageSignatures(c.image, [attestors.ours]) > 0)")
	expect(t, h.decide(t, pod(t, slices.Repeat([]string{good}, 100)...), text), "a hundred", gate.Allow, "")
	began := time.Now()
	out := h.decide(t, pod(t, slices.Repeat([]string{good}, 20_000)...), text)
	if took := time.Since(began); out.Result != gate.Error || took > 5*time.Second {
		t.Errorf("twenty thousand: %s after %v", out.Result, took)
	}
	steps := edit(ofAnyFields(with("images.steps.all(i, verifyImageSignatures(i, [attestors.ours]) > 0)")), "spec:\n", "spec:\n  images: [{name: steps, expression: object.spec.steps}]\n")
	asks := object{images: []string{good}, spec: map[string]any{"steps": slices.Repeat([]string{good}, 20_000)}}
	expect(t, h.decide(t, asks.request(t), steps), "elsewhere", gate.Error, "more than 200")
}

// TestGlobs that are large are refused at once.
func TestGlobs(t *testing.T) {
	h := newEnv(t)
	for reason, glob := range map[string]string{
		"braces in braces": strings.Repeat("{", 300_000) + strings.Repeat("}", 300_000),
		"a long one":       "a.example/" + strings.Repeat("a", 300_000),
	} {
		began := time.Now()
		_, err := newCompiler().Compile([]byte(h.fill(edit(with(allSigned), "HOST/org/*", "'"+glob+"'"))), "test.yaml")
		if took := time.Since(began); err == nil || took > 3*time.Second || len(err.Error()) > 4096 {
			t.Errorf("%s: %v after %v, %d bytes", reason, err == nil, took, len(fmt.Sprint(err)))
		}
	}
}

// TestTogether: each of two signers must meet the condition with statements of its own.
func TestTogether(t *testing.T) {
	h := newEnv(t)
	const buildType = "https://example.com/build/v1"
	text := edit(with("images.containers.all(i, verifyAttestationSignatures(i, attestations.scan, [attestors.ours, attestors.theirs]) == 2 && "+
		"verifyAttestationSignatures(i, attestations.build, [attestors.ours, attestors.theirs]) == 2 && "+
		"(extractPayload(i, attestations.build).predicate.kind == 'dev' || extractPayload(i, attestations.scan).predicate.level == 'low'))"),
		"  attestations:\n", "  attestations:\n  - name: build\n    intoto: {type: "+buildType+"}\n")
	for name, c := range map[string]struct {
		kind, level string // of the first signer; the other has dev and low
		answer      gate.Result
	}{
		"half":      {"prod", "low", gate.Allow},
		"alike":     {"dev", "low", gate.Allow},
		"one-alone": {"prod", "high", gate.Deny},
	} {
		built := h.signed(t, name)
		h.attest(t, built, h.key, buildType, map[string]any{"kind": c.kind, "by": "ours"})
		h.attest(t, built, h.key, scanType, map[string]any{"level": c.level, "by": "ours"})
		h.attest(t, built, h.stranger, buildType, map[string]any{"kind": "dev", "by": "theirs"})
		h.attest(t, built, h.stranger, scanType, map[string]any{"level": "low", "by": "theirs"})
		expect(t, h.decide(t, pod(t, built.Name), text), name, c.answer, "")
	}
}

// TestOptionalAttestor: statements of an attestor that is not required do not count for the
// required one.
func TestOptionalAttestor(t *testing.T) {
	h := newEnv(t)
	const buildType = "https://example.com/build/v1"
	text := edit(with("images.containers.all(i, verifyAttestationSignatures(i, attestations.scan, [attestors.theirs]) >= 0 && "+
		"verifyAttestationSignatures(i, attestations.build, [attestors.theirs]) >= 0 && "+
		"verifyAttestationSignatures(i, attestations.scan, [attestors.ours]) > 0 && verifyAttestationSignatures(i, attestations.build, [attestors.ours]) > 0 && "+
		"(extractPayload(i, attestations.build).predicate.kind == 'dev' || extractPayload(i, attestations.scan).predicate.level == 'low'))"),
		"  attestations:\n", "  attestations:\n  - name: build\n    intoto: {type: "+buildType+"}\n")
	for name, c := range map[string]struct {
		level  string
		answer gate.Result
	}{"weak": {"high", gate.Deny}, "strong": {"low", gate.Allow}} {
		built := h.signed(t, name)
		h.attest(t, built, h.key, buildType, map[string]any{"kind": "prod", "by": "ours"})
		h.attest(t, built, h.key, scanType, map[string]any{"level": c.level, "by": "ours"})
		h.attest(t, built, h.stranger, buildType, map[string]any{"kind": "dev", "by": "theirs"})
		h.attest(t, built, h.stranger, scanType, map[string]any{"level": "low", "by": "theirs"})
		expect(t, h.decide(t, pod(t, built.Name), text), name, c.answer, "")
	}
}

// TestUpdatesThatSelect: images that did not change are verified where the update brings the
// object under the policy, or changes what its attestors depend on.
func TestUpdatesThatSelect(t *testing.T) {
	h := newEnv(t)
	good, bad := h.signed(t, "good", h.key).Name, h.signed(t, "bad").Name
	byLabel := edit(with(allSigned), "  matchConstraints:\n", "  matchConstraints:\n    objectSelector: {matchLabels: {env: prod}}\n")
	byCondition := edit(with(allSigned), "spec:\n", "spec:\n  matchConditions: [{name: prod, expression: \"has(object.metadata.labels) && object.metadata.labels[?'env'].orValue('') == 'prod'\"}]\n")
	labelled := func(image, env string) object {
		o := object{images: []string{image}, labels: map[string]string{"app": "web"}}
		if env != "" {
			o.labels["env"] = env
		}
		return o
	}
	for _, c := range []struct {
		reason, text string
		old, now     object
		answer       gate.Result
		word         string
	}{
		{"a selected label is added to an unsigned image", byLabel, labelled(bad, ""), labelled(bad, "prod"), gate.Deny, "unsigned"},
		{"to a signed one", byLabel, labelled(good, ""), labelled(good, "prod"), gate.Allow, ""},
		{"it was there", byLabel, labelled(bad, "prod"), labelled(bad, "prod"), gate.Allow, ""},
		{"another label is added", byLabel, labelled(bad, ""), labelled(bad, "test"), gate.Allow, ""},
		{"a match condition begins to hold", byCondition, labelled(bad, ""), labelled(bad, "prod"), gate.Deny, "unsigned"},
		{"and the image is signed", byCondition, labelled(good, ""), labelled(good, "prod"), gate.Allow, ""},
		{"it held before", byCondition, labelled(bad, "prod"), labelled(bad, "prod"), gate.Allow, ""},
	} {
		request := c.now.request(t)
		request.Old, request.Subject.Operation = c.old.request(t).Object, "UPDATE"
		expect(t, h.decide(t, request, c.text), c.reason, c.answer, c.word)
	}
}

// TestAttestorsOfAnUpdate: an attestor that depends on the object may depend on any member of
// it, such as the template of a PodTemplate.
func TestAttestorsOfAnUpdate(t *testing.T) {
	h := newEnv(t)
	of := func(member, value string) policy.Content {
		return policy.ContentOf(map[string]any{"apiVersion": "v1", "kind": "PodTemplate", member: map[string]any{"a": value}})
	}
	dependent := edit(with(allSigned), "key: {data: 'KEY'}", "key: {expression: object.template.metadata.annotations.key}")
	for _, c := range []struct {
		reason, text, member string
		want                 bool
	}{
		{"the template", dependent, "template", true},
		{"the metadata", dependent, "metadata", true},
		{"the status", dependent, "status", false},
		{"an attestor of its own", with(allSigned), "template", false},
	} {
		rule := h.policy(t, c.text).Rules[0].(policy.Rematching)
		if got := rule.ReadsUpdate(&policy.Subject{Object: of(c.member, "a"), OldObject: of(c.member, "b")}); got != c.want {
			t.Errorf("%s: %t", c.reason, got)
		}
	}
}
