package imagevalidating_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/imagevalidating"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/imagevalidating/attestor"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

const (
	app      = "registry.example/org/app:v1"
	vulnType = "https://cosign.sigstore.dev/attestation/vuln/v1"
	scanned  = "images.containers.all(i, verifyAttestationSignatures(i, attestations.scan, [attestors.ours]) > 0)"
)

// expressed is the policy minimal with another validation.
func expressed(expression string) string {
	return edit(minimal, "images.containers.all(i, verifyImageSignatures(i, [attestors.ours]) > 0)", "|-\n      "+strings.ReplaceAll(expression, "\n", "\n      "))
}

// answers are made up, by attestor, and those about a statement by attestor/type.
type answers map[string]policy.Answer

func (a answers) to(q policy.Question) policy.Answer {
	name := strings.TrimPrefix(q.Authority.Name, "attestors.")
	if q.Role == attest.Attestation {
		name += "/" + q.Predicate
	}
	return a[name]
}

func noAnswer() policy.Answer {
	return policy.Answer{Gaps: []error{&image.Error{Kind: image.Unavailable, Op: "ask", On: "a", Err: errors.New("down")}}}
}

// saying are statements by a signer without a trusted time.
func saying(signer string, predicates ...string) policy.Answer {
	var a policy.Answer
	for _, p := range predicates {
		a.Facts = append(a.Facts, verify.Fact{
			Role: attest.Attestation, Signer: verify.Signer{KeyFingerprint: signer},
			Statement: &attest.Statement{Type: "https://in-toto.io/Statement/v1", PredicateType: vulnType, Predicate: json.RawMessage(p)},
		})
	}
	return a
}

// dated gives statements the trusted times of signing, in seconds; zero for none.
func dated(a policy.Answer, times ...int64) policy.Answer {
	for i, at := range times {
		if at > 0 {
			a.Facts[i].SignedAt = time.Unix(at, 0)
		}
	}
	return a
}

// containers are images of a Pod.
func containers(names ...string) []policy.Image {
	var images []policy.Image
	for i, name := range names {
		images = append(images, policy.Image{Role: "container", Container: fmt.Sprint("c", i), Pointer: fmt.Sprintf("/spec/containers/%d/image", i), Ref: image.MustParse(name)})
	}
	return images
}

// judged has a policy judge a Pod and its images, with what change makes of each.
func judged(t *testing.T, text string, by answers, object map[string]any, images []policy.Image, change func(int, *policy.Given)) policy.Judgement {
	t.Helper()
	p := testkit.Must(compile(text))(t)
	s := &policy.Subject{Object: policy.ContentOf(object), Kind: "Pod", Version: "v1", Operation: "CREATE", Namespace: "shop"}
	plan := testkit.Must(p.Rules[0].Plan(t.Context(), s, images))(t)
	given := make([]policy.Given, len(plan.Checks))
	for i := range given {
		given[i] = policy.Given{Check: &plan.Checks[i], Answers: by.to}
		if change != nil {
			change(i, &given[i])
		}
	}
	return plan.Judge.Judge(t.Context(), given)
}

// textOf joins the codes and messages of reasons.
func textOf(reasons []policy.Reason) string {
	var all []string
	for _, r := range reasons {
		all = append(all, string(r.Code)+" "+r.Message)
	}
	return strings.Join(all, " | ")
}

// TestLatest: of several statements of an attestor the latest by the trusted time counts, and
// without times any; a time that was added to an old statement makes it no later.
func TestLatest(t *testing.T) {
	const low = scanned + " && images.containers.all(i, extractPayload(i, attestations.scan).predicate.level == 'low')"
	const saysHigh, saysLow = `{"level":"high"}`, `{"level":"low"}`
	for _, c := range []struct {
		reason string
		answer policy.Answer
		want   policy.Result
	}{
		{"the latest agrees", dated(saying("a", saysLow, saysHigh), 2, 1), policy.Pass},
		{"an outdated one agrees", dated(saying("a", saysLow, saysHigh), 1, 2), policy.Fail},
		{"an outdated one agrees, and is listed last", dated(saying("a", saysHigh, saysLow), 2, 1), policy.Fail},
		{"one of two at the same time agrees", dated(saying("a", saysHigh, saysLow), 1, 1), policy.Pass},
		{"one without a time agrees, beside one with a time", dated(saying("a", saysHigh, saysLow), 1), policy.Fail},
		{"one with a time agrees, beside one without", dated(saying("a", saysLow, saysHigh), 1), policy.Pass},
		{"none has a time", saying("a", saysHigh, saysLow), policy.Pass},
		{"the outdated one was logged once more", dated(saying("a", saysLow, saysHigh, saysLow), 1, 2, 3), policy.Fail},
		{"one agrees, and a later one may be unread", unread(dated(saying("a", saysLow), 1), image.Unavailable), policy.Indeterminate},
		{"one agrees, and access to others is refused", unread(dated(saying("a", saysLow), 1), image.Refused), policy.Indeterminate},
		{"one agrees, and others are beyond a bound", unread(dated(saying("a", saysLow), 1), image.Bound), policy.Indeterminate},
		{"one without a time agrees, and others are unread", unread(saying("a", saysLow), image.Unavailable), policy.Pass},
	} {
		d := judged(t, expressed(low), answers{"ours/" + vulnType: c.answer}, map[string]any{}, containers(app), nil).Decisions[0]
		if d.Result != c.want {
			t.Errorf("%s: %s %s, want %s", c.reason, d.Result, textOf(d.Reasons), c.want)
		}
	}
}

// unread adds a failure to read other evidence of the same repository.
func unread(a policy.Answer, kind image.Kind) policy.Answer {
	a.Gaps = append(a.Gaps, attest.Gap{Err: &image.Error{Kind: kind, Op: "list", On: "referrers"}})
	return a
}

// TestChoices: of several statements without a trusted time the one counts that the policy agrees
// with; where there is none, what could not be verified stands before what does not hold, and
// that before a fault.
func TestChoices(t *testing.T) {
	const low = scanned + " && images.containers.all(i, extractPayload(i, attestations.scan).predicate.level == 'low')"
	const signedToo = low + " && images.containers.all(i, verifyImageSignatures(i, [attestors.keyless]) > 0)"
	const lacks, saysHigh, saysLow = `{}`, `{"level":"high"}`, `{"level":"low"}`
	for _, c := range []struct {
		reason, expression string
		statements         []string
		keyless            policy.Answer
		want               policy.Result
		word               string
	}{
		{"one of two agrees", low, []string{saysLow, saysHigh}, policy.Answer{}, policy.Pass, "signed by"},
		{"the second agrees", low, []string{saysHigh, saysLow}, policy.Answer{}, policy.Pass, "signed by"},
		{"one agrees, and another has no level", low, []string{lacks, saysLow}, policy.Answer{}, policy.Pass, "signed by"},
		{"none has a level", low, []string{lacks}, policy.Answer{}, policy.Indeterminate, "no such key"},
		{"one disagrees, and another has no level", low, []string{lacks, saysHigh}, policy.Answer{}, policy.Fail, "condition-failed"},
		{"one disagrees, and another has no level, in the other order", low, []string{saysHigh, lacks}, policy.Answer{}, policy.Fail, "condition-failed"},
		{"the second agrees, the signature could not be verified", signedToo, []string{saysHigh, saysLow}, noAnswer(), policy.Indeterminate, "registry-unavailable"},
		{"the first agrees, the signature could not be verified", signedToo, []string{saysLow, saysHigh}, noAnswer(), policy.Indeterminate, "registry-unavailable"},
		{"the signature could not be verified, and one has no level", signedToo, []string{lacks, saysLow}, noAnswer(), policy.Indeterminate, "registry-unavailable"},
		{"none is there", low, nil, policy.Answer{}, policy.Fail, "denied-by-condition"},
		{"the second agrees, and the signature is missing", signedToo, []string{saysHigh, saysLow}, policy.Answer{}, policy.Fail, ""},
	} {
		out := judged(t, expressed(c.expression), answers{"ours/" + vulnType: saying("a", c.statements...), "keyless": c.keyless}, map[string]any{}, containers(app), nil)
		if d := out.Decisions[0]; d.Result != c.want || !strings.Contains(textOf(d.Reasons), c.word) {
			t.Errorf("%s: %s %s, want %s with %q", c.reason, d.Result, textOf(d.Reasons), c.want, c.word)
		}
	}
}

// TestMissingStatements: a statement that could not be read may agree where the others do
// not, if the expression names its attestor.
func TestMissingStatements(t *testing.T) {
	const both = "images.containers.all(i, verifyAttestationSignatures(i, attestations.scan, [attestors.ours, attestors.keyless]) >= 0)"
	const low = " && images.containers.all(i, extractPayload(i, attestations.scan).predicate.level == 'low')"
	noKey := policy.Answer{Gaps: []error{errors.New("the key cannot be read")}}
	for _, c := range []struct {
		reason, expression string
		ours, keyless      policy.Answer
		want               policy.Result
		word               string
	}{
		{"everything was looked at", both + low, saying("a", `{"level":"high"}`), policy.Answer{}, policy.Fail, "condition-failed"},
		{"not all of it", both + low, saying("a", `{"level":"high"}`), noAnswer(), policy.Indeterminate, "registry-unavailable"},
		{"not all of it, for want of a key", both + low, saying("a", `{"level":"high"}`), noKey, policy.Indeterminate, "cannot-prove"},
		{"not all of it, and the expression does not read it", scanned + low, saying("a", `{"level":"high"}`), noAnswer(), policy.Fail, "condition-failed"},
		{"not all of it, and the rest agrees", both + low, saying("a", `{"level":"low"}`), noAnswer(), policy.Pass, ""},
		{"nothing at all", both + low, noAnswer(), noAnswer(), policy.Indeterminate, "registry-unavailable"},
		{"nothing of one, and nothing is there of the other", both + low, policy.Answer{}, noKey, policy.Indeterminate, "cannot-prove"},
		{"everything, and nothing is there", both + low, policy.Answer{}, policy.Answer{}, policy.Indeterminate, "none of the given attestors signed one"},
		{"no key to count by", scanned, noKey, policy.Answer{}, policy.Indeterminate, "cannot-prove"},
	} {
		d := judged(t, expressed(c.expression), answers{"ours/" + vulnType: c.ours, "keyless/" + vulnType: c.keyless}, map[string]any{}, containers(app), nil).Decisions[0]
		if d.Result != c.want || !strings.Contains(textOf(d.Reasons), c.word) {
			t.Errorf("%s: %s %s", c.reason, d.Result, textOf(d.Reasons))
		}
	}
}

// TestValidationsWithoutPayload: a statement that could not be read does not affect a
// validation that does not read it.
func TestValidationsWithoutPayload(t *testing.T) {
	text := expressed("images.containers.all(i, verifyAttestationSignatures(i, attestations.scan, [attestors.ours, attestors.keyless]) >= 0 && extractPayload(i, attestations.scan).predicate.level == 'low')")
	by := answers{"ours/" + vulnType: saying("a", `{"level":"low"}`), "keyless/" + vulnType: noAnswer()}
	for more, want := range map[string]policy.Result{"images.containers.size() > 0": policy.Pass, "images.containers.size() > 1": policy.Fail} {
		d := judged(t, text+"  - expression: "+more+"\n", by, map[string]any{}, containers(app), nil).Decisions[0]
		if d.Result != want || want == policy.Fail && !strings.HasPrefix(textOf(d.Reasons), string(policy.Denied)) {
			t.Errorf("%s: %s %s", more, d.Result, textOf(d.Reasons))
		}
	}
}

// TestStatementsByAttestor: a payload is read from statements by the attestors of the call
// before, and no others.
func TestStatementsByAttestor(t *testing.T) {
	asks := func(who string) string {
		return "images.containers.all(i, verifyAttestationSignatures(i, attestations.scan, [attestors." + who + "]) >= 0"
	}
	const low = " && extractPayload(i, attestations.scan).predicate.level == 'low')"
	yes, no := saying("a", `{"level":"low"}`), saying("a", `{"level":"high"}`)
	noStatement := yes
	noStatement.Facts = append([]verify.Fact{{Role: attest.Attestation, Signer: verify.Signer{KeyFingerprint: "a"}}}, yes.Facts...)
	for _, c := range []struct {
		reason, who   string
		ours, keyless policy.Answer
		want          policy.Result
		word          string
	}{
		{"theirs agrees", "ours", yes, policy.Answer{}, policy.Pass, ""},
		{"another's agrees", "ours", policy.Answer{}, yes, policy.Indeterminate, "none of the given attestors signed one"},
		{"another's agrees, and theirs does not", "ours", no, yes, policy.Fail, "condition-failed"},
		{"theirs agrees, and another's does not", "ours", yes, no, policy.Pass, ""},
		{"the other one is asked", "keyless", policy.Answer{}, yes, policy.Pass, ""},
		{"a fact of no statement stands before it", "ours", noStatement, policy.Answer{}, policy.Pass, ""},
		{"it cannot be parsed", "ours", saying("a", `{"level":"low"`), policy.Answer{}, policy.Indeterminate, "unexpected end of JSON input"},
	} {
		text := expressed(asks(c.who)+low) + "  - expression: " + asks("ours") + ")\n  - expression: " + asks("keyless") + ")\n"
		by := answers{"ours/" + vulnType: c.ours, "keyless/" + vulnType: c.keyless}
		if d := judged(t, text, by, map[string]any{}, containers(app), nil).Decisions[0]; d.Result != c.want || !strings.Contains(textOf(d.Reasons), c.word) {
			t.Errorf("%s: %s %s", c.reason, d.Result, textOf(d.Reasons))
		}
	}
}

// TestSigners: each attestor needs a signer of its own, whichever of its signatures that
// takes.
func TestSigners(t *testing.T) {
	for _, c := range []struct {
		reason        string
		ours, keyless []string
		want          policy.Result
	}{
		{"one each", []string{"a"}, []string{"b"}, policy.Pass},
		{"one for both", []string{"a"}, []string{"a"}, policy.Fail},
		{"the first has another one", []string{"a", "b"}, []string{"a"}, policy.Pass},
		{"the second has another one", []string{"a"}, []string{"a", "b"}, policy.Pass},
		{"both have the same two", []string{"a", "b"}, []string{"a", "b"}, policy.Pass},
		{"the same one twice", []string{"a", "a"}, []string{"a"}, policy.Fail},
		{"the second has none", []string{"a", "b"}, nil, policy.Fail},
	} {
		by := answers{"ours": {Facts: factsOf(c.ours...)}, "keyless": {Facts: factsOf(c.keyless...)}}
		text := expressed("images.containers.all(i, verifyImageSignatures(i, [attestors.ours, attestors.keyless]) == 2)")
		if d := judged(t, text, by, map[string]any{}, containers(app), nil).Decisions[0]; d.Result != c.want {
			t.Errorf("%s: %s %s", c.reason, d.Result, textOf(d.Reasons))
		}
	}
}

// TestKeysOfOneAttestor: any of them suffices.
func TestKeysOfOneAttestor(t *testing.T) {
	more := string(testkit.Must(verifytest.KeySigner(verifytest.KeyOptions{}))(t).PublicPEM())
	text := edit(minimal, cert, cert+strings.ReplaceAll(more, "\n", "\\n"))
	for _, c := range []struct {
		reason string
		signed []bool
		want   policy.Result
	}{
		{"the first signed", []bool{true, false}, policy.Pass},
		{"the second signed", []bool{false, true}, policy.Pass},
		{"neither signed", []bool{false, false}, policy.Fail},
	} {
		d := judged(t, text, nil, map[string]any{}, containers(app), func(_ int, g *policy.Given) {
			if len(g.Check.Asks) != 2 {
				t.Fatalf("asks %+v", g.Check.Asks)
			}
			g.Answers = func(q policy.Question) policy.Answer {
				for i, asked := range g.Check.Asks {
					if asked.Authority == q.Authority && c.signed[i] {
						return policy.Answer{Facts: factsOf("a")}
					}
				}
				return policy.Answer{}
			}
		}).Decisions[0]
		if d.Result != c.want {
			t.Errorf("%s: %s %s", c.reason, d.Result, textOf(d.Reasons))
		}
	}
}

// TestDigestsToCome: the digest of an image that will be pinned is unknown until then, not
// absent.
func TestDigestsToCome(t *testing.T) {
	const byDigest = "registry.example/org/app@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	const pins, keeps = "validationConfigurations: {mutateDigest: true}", "validationConfigurations: {mutateDigest: false}"
	const hasDigest = "images.containers.all(i, i.contains('@sha256:'))"
	down := &image.Error{Kind: image.Unavailable, Op: "resolve", On: "a", Err: errors.New("down")}
	for _, c := range []struct {
		reason, name, configured, expression string
		err                                  error
		want                                 policy.Result
	}{
		{"it could not be resolved", app, pins, hasDigest, down, policy.Indeterminate},
		{"it was not resolved", app, pins, hasDigest, nil, policy.Fail},
		{"it stays a tag", app, keeps, hasDigest, down, policy.Fail},
		{"it has one", byDigest, pins, hasDigest, down, policy.Pass},
		{"it has one, and no other follows", byDigest, pins, "images.containers.all(i, i.size() > 120)", down, policy.Fail},
		{"what no digest changes", app, pins, "images.containers.all(i, verifyImageSignatures(i, [attestors.ours]) > 0)", down, policy.Fail},
	} {
		text := edit(expressed(c.expression), "spec:\n", "spec:\n  "+c.configured+"\n")
		d := judged(t, text, nil, map[string]any{}, containers(c.name), func(_ int, g *policy.Given) { g.Err = c.err }).Decisions[0]
		if d.Result != c.want {
			t.Errorf("%s: %s %s", c.reason, d.Result, textOf(d.Reasons))
		}
	}
}

// TestNames: which of the images a text names.
func TestNames(t *testing.T) {
	const repository = "registry.example/org/app"
	first, second := "@sha256:"+strings.Repeat("a", 64), "@sha256:"+strings.Repeat("b", 64)
	for _, c := range []struct {
		reason, image, text string
		want                policy.Result
	}{
		{"the tag that was written", repository + ":v1", repository + ":v1", policy.Pass},
		{"the digest that it resolves to", repository + ":v1", repository + first, policy.Pass},
		{"the tag and the digest", repository + ":v1", repository + ":v1" + first, policy.Pass},
		{"another digest", repository + ":v1", repository + second, policy.Indeterminate},
		{"the digest elsewhere", repository + ":v1", "registry.example/org/other" + first, policy.Indeterminate},
		{"another tag", repository + ":v1", repository + ":v2", policy.Indeterminate},
		{"the digest that was written", repository + first, repository + first, policy.Pass},
		{"with a tag", repository + first, repository + ":v1" + first, policy.Pass},
		{"without its tag", repository + ":v1" + first, repository + first, policy.Pass},
		{"another digest than the one that was written", repository + first, repository + second, policy.Indeterminate},
		{"a tag alone", repository + ":v1" + first, repository + ":v1", policy.Indeterminate},
	} {
		text := expressed("images.containers.size() == 1 && verifyImageSignatures('" + c.text + "', [attestors.ours]) > 0")
		d := judged(t, text, answers{"ours": {Facts: factsOf("a")}}, map[string]any{}, containers(c.image), func(_ int, g *policy.Given) {
			g.Pinned = testkit.Must(image.MustParse(c.image).Pin(image.Descriptor{Digest: testkit.Must(image.ParseDigest(first[1:]))(t)}))(t)
		}).Decisions[0]
		if d.Result != c.want {
			t.Errorf("%s: %s %s", c.reason, d.Result, textOf(d.Reasons))
		}
	}
	twice := containers(app, app)
	twice[1].Role, twice[1].Pointer = "init", "/spec/initContainers/0/image"
	for i, d := range judged(t, expressed("images.containers.all(i, true) && images.initContainers.size() + images.containers.size() == 2 && images.initContainers.size() == 1"), nil, map[string]any{}, twice, nil).Decisions {
		if d.Result != policy.Pass {
			t.Errorf("one image in two lists: image %d: %s %s", i, d.Result, textOf(d.Reasons))
		}
	}
}

// TestMessages are the author's words, if they are few enough.
func TestMessages(t *testing.T) {
	exact := strings.Repeat("x", 5<<10)
	for _, c := range []struct{ reason, entry, text, want string }{
		{"an expression", "messageExpression: string(dyn(object).text)", "found it", "found it"},
		{"before the message", "message: mine\n    messageExpression: string(dyn(object).text)", "found it", "found it"},
		{"that yields an empty text", "message: mine\n    messageExpression: string(dyn(object).text)", "", "mine"},
		{"that fails", "message: mine\n    messageExpression: string(dyn(object).none)", "", "mine"},
		{"that is as long as it may be", "message: mine\n    messageExpression: string(dyn(object).text)", exact, exact},
		{"that is longer", "message: mine\n    messageExpression: string(dyn(object).text)", exact + "x", "mine"},
		{"none", "message: mine", "", "mine"},
		{"nothing", "reason: Invalid", "", "the validation does not hold: images.containers.size() > 1"},
	} {
		text := edit(minimal, "images.containers.all(i, verifyImageSignatures(i, [attestors.ours]) > 0)", "images.containers.size() > 1\n    "+c.entry)
		d := judged(t, text, nil, map[string]any{"text": c.text}, containers(app), nil).Decisions[0]
		if d.Result != policy.Fail || len(d.Reasons) != 1 || d.Reasons[0].Message != c.want || d.Reasons[0].Code != policy.Denied {
			t.Errorf("%s: %s %.100s, want %.100s", c.reason, d.Result, textOf(d.Reasons), c.want)
		}
	}
}

// TestImageData: expressions read the manifest, configuration and index of an image.
func TestImageData(t *testing.T) {
	const digest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	of := func(os, architecture string) policy.ImageManifest {
		return policy.ImageManifest{
			Descriptor: image.Descriptor{Platform: &image.Platform{OS: os, Architecture: architecture}},
			Manifest:   []byte(`{"of":"` + os + "/" + architecture + `"}`), Config: []byte(`{"os":"` + os + `","architecture":"` + architecture + `"}`),
		}
	}
	linux, arm, windows := of("linux", "amd64"), of("linux", "arm64"), of("windows", "amd64")
	pretends := linux // in its configuration alone
	pretends.Descriptor = arm.Descriptor
	with := func(children ...policy.ImageManifest) policy.ImageData { return policy.ImageData{Children: children} }
	isFirst := func(what string) string {
		return "d.manifest.of == '" + what + "' && d.config.os + '/' + d.config.architecture == '" + what + "' && d.configData == d.config"
	}
	for _, c := range []struct {
		reason, name, holds string
		data                policy.ImageData
		want                policy.Result
		word                string
	}{
		{"a tag", app, "d.image == '" + app + "' && d.registry == 'registry.example' && d.repository == 'org/app' && d.tag == 'v1' && d.identifier == 'v1'", with(linux), policy.Pass, ""},
		{"its digest", app, "d.digest == '" + digest + "' && d.resolvedImage == 'registry.example/org/app:v1@" + digest + "'", with(linux), policy.Pass, ""},
		{"a digest", "registry.example/org/app@" + digest, "!has(d.tag) && d.identifier == '" + digest + "' && d.digest == '" + digest + "' && d.resolvedImage == 'registry.example/org/app@" + digest + "'", with(linux), policy.Pass, ""},
		{"Docker's own registry", "docker.io/library/app:v1", "d.registry == 'index.docker.io' && d.resolvedImage.startsWith('index.docker.io/library/app:v1@')", with(linux), policy.Pass, ""},
		{"another one", app, "d.registry == 'index.docker.io'", with(linux), policy.Fail, ""},
		{"an index", app, "d.imageIndex.a == 1", policy.ImageData{Index: []byte(`{"a":1}`), Children: []policy.ImageManifest{linux}}, policy.Pass, ""},
		{"no index", app, "!has(d.imageIndex)", with(linux), policy.Pass, ""},
		{"an index that cannot be parsed", app, "d.digest != ''", policy.ImageData{Index: []byte("{"), Children: []policy.ImageManifest{linux}}, policy.Indeterminate, "image index"},
		{"one image", app, isFirst("linux/arm64"), with(arm), policy.Pass, ""},
		{"the one for linux/amd64, last", app, isFirst("linux/amd64"), with(arm, windows, linux), policy.Pass, ""},
		{"the one for linux/amd64, first", app, isFirst("linux/amd64"), with(linux, arm), policy.Pass, ""},
		{"none for linux/amd64", app, isFirst("linux/arm64"), with(arm, windows), policy.Pass, ""},
		{"none for it, and another first", app, isFirst("linux/arm64"), with(windows, arm), policy.Pass, ""},
		{"one that is for it by its configuration alone, before the listed one", app, "d.manifest.of == 'other'",
			with(pretends, policy.ImageManifest{Descriptor: linux.Descriptor, Manifest: []byte(`{"of":"other"}`), Config: linux.Config}), policy.Pass, ""},
		{"no image", app, "!has(d.manifest) && !has(d.config) && !has(d.configData)", with(), policy.Pass, ""},
		{"a configuration that cannot be parsed", app, "d.digest != ''", with(policy.ImageManifest{Manifest: linux.Manifest, Config: []byte("{")}), policy.Indeterminate, "configuration"},
		{"a manifest that cannot be parsed", app, "d.digest != ''", with(policy.ImageManifest{Manifest: []byte("{"), Config: linux.Config}), policy.Indeterminate, "manifest"},
		{"a configuration that is no object", app, "d.config == 1.0", with(policy.ImageManifest{Manifest: linux.Manifest, Config: []byte("1")}), policy.Pass, ""},
	} {
		text := edit(expressed("images.containers.all(i, [getImageData(i)].all(d, "+c.holds+"))"), "spec:\n", "spec:\n  validationConfigurations: {mutateDigest: false}\n")
		pinned := testkit.Must(image.MustParse(c.name).Pin(image.Descriptor{Digest: testkit.Must(image.ParseDigest(digest))(t)}))(t)
		out := judged(t, text, nil, map[string]any{}, containers(c.name), func(_ int, g *policy.Given) { g.Pinned, g.Data = pinned, c.data })
		if d := out.Decisions[0]; d.Result != c.want || !strings.Contains(textOf(d.Reasons), c.word) {
			t.Errorf("%s: %s %s", c.reason, d.Result, textOf(d.Reasons))
		}
	}
}

// TestImageDataThatIsNotThere: the reason is the first error alone.
func TestImageDataThatIsNotThere(t *testing.T) {
	down := func(what string) error {
		return &image.Error{Kind: image.Unavailable, Op: "get", On: "a", Err: errors.New(what)}
	}
	text := expressed("images.containers.all(i, getImageData(i).digest != '')")
	for _, c := range []struct {
		reason       string
		image, data  error
		want         policy.Result
		word, absent string
	}{
		{"both are there", nil, nil, policy.Pass, "", "down"},
		{"no image", down("image"), nil, policy.Indeterminate, "registry-unavailable", "manifest"},
		{"an image, and no manifest", nil, down("manifest"), policy.Indeterminate, "registry-unavailable", "image"},
		{"neither", down("image"), down("manifest"), policy.Indeterminate, "image", "manifest"},
	} {
		pinned := testkit.Must(image.MustParse(app).Pin(image.Descriptor{Digest: testkit.Must(image.ParseDigest("sha256:" + strings.Repeat("a", 64)))(t)}))(t)
		out := judged(t, text, nil, map[string]any{}, containers(app), func(_ int, g *policy.Given) { g.Pinned, g.Err, g.DataErr = pinned, c.image, c.data })
		if d := out.Decisions[0]; d.Result != c.want || !strings.Contains(textOf(d.Reasons), c.word) || c.want == policy.Indeterminate && strings.Contains(textOf(d.Reasons), c.absent) {
			t.Errorf("%s: %s %s", c.reason, d.Result, textOf(d.Reasons))
		}
	}
}

// TestFailuresByImage: the failure of an image is reported for it alone, and the failure of
// the object for none of its images.
func TestFailuresByImage(t *testing.T) {
	const other = "registry.example/org/other:v1"
	text := expressed("images.containers.all(i, verifyImageSignatures(i, [attestors.ours]) > 0)") +
		"  - expression: object.metadata.name == 'test'\n    message: another name\n"
	fact := policy.Answer{Facts: factsOf("a")}
	for _, c := range []struct {
		reason, name  string
		first, second policy.Answer
		object        policy.Result
		want          []policy.Result
	}{
		{"none", "test", fact, fact, "", []policy.Result{policy.Pass, policy.Pass}},
		{"one image", "test", fact, policy.Answer{}, "", []policy.Result{policy.Pass, policy.Fail}},
		{"the other one", "test", policy.Answer{}, fact, "", []policy.Result{policy.Fail, policy.Pass}},
		{"both", "test", policy.Answer{}, policy.Answer{}, "", []policy.Result{policy.Fail, policy.Fail}},
		{"one, and the other could not be verified", "test", noAnswer(), policy.Answer{}, "", []policy.Result{policy.Indeterminate, policy.Fail}},
		{"the object", "other", fact, fact, policy.Fail, []policy.Result{policy.Pass, policy.Pass}},
		{"the object and an image", "other", fact, policy.Answer{}, policy.Fail, []policy.Result{policy.Pass, policy.Fail}},
	} {
		object := map[string]any{"metadata": map[string]any{"name": c.name}}
		each := []policy.Answer{c.first, c.second}
		out := judged(t, text, nil, object, containers(app, other), func(i int, g *policy.Given) {
			g.Answers = func(policy.Question) policy.Answer { return each[i] }
		})
		if out.Object.Result != c.object || strings.Contains(textOf(out.Object.Reasons), "another name") != (c.object == policy.Fail) {
			t.Errorf("%s: the object: %s %s", c.reason, out.Object.Result, textOf(out.Object.Reasons))
		}
		for i, d := range out.Decisions {
			if d.Result != c.want[i] || strings.Contains(textOf(d.Reasons), "another name") || (len(d.Facts) > 0) != (d.Result == policy.Pass) {
				t.Errorf("%s: image %d: %s %s %v", c.reason, i, d.Result, textOf(d.Reasons), d.Facts)
			}
		}
	}
}

// TestImagesReadFromObject: an expression that reads images from the object is evaluated
// for one image at a time, too.
func TestImagesReadFromObject(t *testing.T) {
	const other = "registry.example/org/other:v1"
	text := edit(expressed("dyn(object).images.all(i, verifyImageSignatures(i, [attestors.ours]) > 0)"), "spec:\n", "spec:\n  validationConfigurations: {mutateDigest: false}\n")
	signed := policy.Answer{Facts: factsOf("a")}
	for _, c := range []struct {
		reason        string
		first, second policy.Answer
		want          []policy.Result
	}{
		{"both are signed", signed, signed, []policy.Result{policy.Pass, policy.Pass}},
		{"the first is", signed, policy.Answer{}, []policy.Result{policy.Pass, policy.Fail}},
		{"the second is", policy.Answer{}, signed, []policy.Result{policy.Fail, policy.Pass}},
		{"the second could not be verified", signed, noAnswer(), []policy.Result{policy.Pass, policy.Indeterminate}},
	} {
		each := []policy.Answer{c.first, c.second}
		out := judged(t, text, nil, map[string]any{"images": []any{app, other}}, containers(app, other), func(i int, g *policy.Given) {
			g.Answers = func(policy.Question) policy.Answer { return each[i] }
		})
		for i, d := range out.Decisions {
			if d.Result != c.want[i] {
				t.Errorf("%s: image %d: %s %s", c.reason, i, d.Result, textOf(d.Reasons))
			}
		}
	}
}

// TestImagesLeftAlone: without images to verify, or without any image, all parts of a
// validation that do not depend on images are evaluated.
func TestImagesLeftAlone(t *testing.T) {
	const signed = "images.containers.all(i, verifyImageSignatures(i, [attestors.ours]) > 0)"
	const named, other = "object.metadata.name == 'test'", "object.metadata.name == 'other'"
	for _, c := range []struct {
		reason, expression string
		images             []policy.Image
		want               policy.Result
		word               string
	}{
		{"images alone", signed, containers(app), "", ""},
		{"how many there are", "images.containers.size() > 1", containers(app), "", ""},
		{"the object, which holds", named, containers(app), "", ""},
		{"the object, which does not", other, containers(app), policy.Fail, "does not hold"},
		{"both, and the object holds", signed + " && " + named, containers(app), "", ""},
		{"both, and it does not", signed + " && " + other, containers(app), policy.Fail, "does not hold"},
		{"both, and the object has no such member", signed + " && dyn(object).none == 1", containers(app), policy.Indeterminate, "no such key"},
		{"both, the other way round", "dyn(object).none == 1 && " + signed, containers(app), policy.Indeterminate, "no such key"},
		{"both, and the namespace is not known", signed + " && namespaceObject.metadata.labels.a == 'b'", containers(app), policy.Indeterminate, "namespaceObject.metadata.labels"},
		{"both, in each step", "images.containers.all(i, verifyImageSignatures(i, [attestors.ours]) > 0 && dyn(object).none == 1)", containers(app), policy.Indeterminate, "no such key"},
		{"both, below others", "!(!(" + signed + ") || !(dyn(object).none == 1))", containers(app), policy.Indeterminate, "no such key"},
		{"both, and an error that does not affect the result", "(dyn(object).none == 1 || " + named + ") && " + signed, containers(app), "", ""},
		{"data, and the object has no such member", "images.containers.all(i, getImageData(i).digest != '') && dyn(object).none == 1", containers(app), policy.Indeterminate, "no such key"},
		{"data, and the object holds", "images.containers.all(i, getImageData(i).digest != '') && " + named, containers(app), "", ""},
		{"data, and it does not", "images.containers.all(i, getImageData(i).digest != '') && " + other, containers(app), policy.Fail, "does not hold"},
		{"an image in other words", named + " && verifyImageSignatures('registry.example:443/org/app:v1', [attestors.ours]) > 0", containers(app), "", ""},
		{"an image that is another", named + " && verifyImageSignatures('registry.example/org/app:v2', [attestors.ours]) > 0", containers(app), policy.Indeterminate, "names no image of the object"},
		{"which list it is in", "images.initContainers.size() == 0 && " + named, containers(app), "", ""},
		{"how many are meant", "images.containers.size() == 1 && " + named, containers(app, "other.example/a:1"), "", ""},
		{"there is none, of which all are signed", signed + " && " + named, nil, "", ""},
		{"there is none, and must be one", "images.containers.size() > 0", nil, policy.Fail, "does not hold"},
		{"there is none, and must be a signed one", "images.containers.exists(i, verifyImageSignatures(i, [attestors.ours]) > 0)", nil, policy.Fail, "does not hold"},
		{"there is none, and the object does not hold", signed + " && " + other, nil, policy.Fail, "does not hold"},
	} {
		text := expressed(c.expression) + "  - expression: object.metadata.name != 'none' || images.containers.exists(i, true)\n"
		p := testkit.Must(compile(edit(text, "spec:\n", "spec:\n  matchImageReferences: [{glob: registry.example/*}]\n")))(t)
		s := &policy.Subject{
			Object: policy.ContentOf(map[string]any{"metadata": map[string]any{"name": "test"}}), Kind: "Pod", Version: "v1", Operation: "CREATE", Namespace: "shop",
		}
		plan := testkit.Must(p.Rules[0].Plan(t.Context(), s, c.images))(t)
		out := plan.Judge.Judge(t.Context(), nil)
		if len(out.Decisions) != 0 || out.Object.Passes() != (c.want == "") || c.want != "" && out.Object.Result != c.want || !strings.Contains(textOf(out.Object.Reasons), c.word) {
			t.Errorf("%s: %s %s, want %q", c.reason, out.Object.Result, textOf(out.Object.Reasons), c.want)
		}
	}
}

// TestCombinations: there is an end to the choices that are tried.
func TestCombinations(t *testing.T) {
	statements := func(high int, last ...string) policy.Answer {
		var all []string
		for i := range high {
			all = append(all, fmt.Sprintf(`{"level":"high","n":%d}`, i))
		}
		return saying("a", append(all, last...)...)
	}
	const read = scanned + " && images.containers.all(i, extractPayload(i, attestations.scan).predicate.level == 'low')"
	const unread = "images.containers.all(i, verifyAttestationSignatures(i, attestations.scan, [attestors.ours, attestors.keyless]) == 2)"
	for _, c := range []struct {
		reason, expression string
		ours               policy.Answer
		want               policy.Result
		word               string
	}{
		{"the last of those that are tried", read, statements(256, `{"level":"low"}`), policy.Pass, "signed by"},
		{"the next one", read, statements(257, `{"level":"low"}`), policy.Fail, "more than 256 combinations of statements"},
		{"all of them disagree", read, statements(257), policy.Fail, "condition-failed"},
		{"one that is there many times", read, saying("a", append(slices.Repeat([]string{`{"level":"high"}`}, 300), `{"level":"low"}`)...), policy.Pass, "signed by"},
		{"their payloads are not read", unread, statements(300), policy.Pass, "signed by"},
	} {
		by := answers{"ours/" + vulnType: c.ours, "keyless/" + vulnType: saying("b", `{"level":"none"}`)}
		d := judged(t, expressed(c.expression), by, map[string]any{}, containers(app), nil).Decisions[0]
		if d.Result != c.want || !strings.Contains(textOf(d.Reasons), c.word) || strings.Contains(textOf(d.Reasons), "combinations") != strings.Contains(c.word, "combinations") {
			t.Errorf("%s: %s %s", c.reason, d.Result, textOf(d.Reasons))
		}
	}
}

// TestFacts: each verified claim is reported once.
func TestFacts(t *testing.T) {
	one := verify.Fact{Signer: verify.Signer{KeyFingerprint: "a"}, Origin: attest.Origin{Via: "x"}}
	elsewhere, other, role := one, one, one
	elsewhere.Origin.Via = "y"
	other.Signer.KeyFingerprint = "b"
	role.Role = attest.Attestation
	for _, c := range []struct {
		reason string
		facts  []verify.Fact
		want   int
	}{
		{"one", []verify.Fact{one}, 1},
		{"the same twice", []verify.Fact{one, one}, 1},
		{"at another place", []verify.Fact{one, elsewhere}, 2},
		{"by another signer", []verify.Fact{one, other}, 2},
		{"of another kind", []verify.Fact{one, role}, 2},
		{"all of them, and each again", []verify.Fact{one, elsewhere, other, role, role, other, elsewhere, one}, 4},
	} {
		d := judged(t, minimal, answers{"ours": {Facts: c.facts}}, map[string]any{}, containers(app), nil).Decisions[0]
		if d.Result != policy.Pass || len(d.Facts) != c.want || d.Reasons[0].Code != policy.Verified || strings.Count(textOf(d.Reasons), one.Signer.String()) != 1 {
			t.Errorf("%s: %s, %d facts, %s", c.reason, d.Result, len(d.Facts), textOf(d.Reasons))
		}
	}
	d := judged(t, expressed("images.containers.size() == 1"), nil, map[string]any{}, containers(app), nil).Decisions[0]
	if d.Result != policy.Pass || len(d.Facts) != 0 || d.Reasons[0].Code != policy.DigestPinned {
		t.Errorf("nothing was proved: %s %s", d.Result, textOf(d.Reasons))
	}
}

// TestItTakesAll: where every image holds alone and not all of them together, it is
// held against each.
func TestItTakesAll(t *testing.T) {
	text := expressed("images.containers.size() < 2 && images.containers.all(i, verifyImageSignatures(i, [attestors.ours]) > 0)")
	by := answers{"ours": {Facts: factsOf("a")}}
	two := expressed("images.containers.size() == 2 && images.containers.all(i, verifyImageSignatures(i, [attestors.ours]) > 0)")
	for i, d := range judged(t, two, by, map[string]any{}, containers(app, "registry.example/org/other:v1"), nil).Decisions {
		if d.Result != policy.Pass {
			t.Errorf("it takes two: image %d: %s %s", i, d.Result, textOf(d.Reasons))
		}
	}
	for names, want := range map[string]policy.Result{app: policy.Pass, app + " registry.example/org/other:v1": policy.Fail} {
		for i, d := range judged(t, text, by, map[string]any{}, containers(strings.Fields(names)...), nil).Decisions {
			if d.Result != want || want == policy.Fail && !strings.Contains(textOf(d.Reasons), "the validation does not hold") {
				t.Errorf("%s: image %d: %s %s", names, i, d.Result, textOf(d.Reasons))
			}
		}
	}
}

// TestTheLeastOfAll: of one image at several places the least that is known counts.
func TestTheLeastOfAll(t *testing.T) {
	fact := policy.Answer{Facts: factsOf("a")}
	text := expressed("images.containers.all(i, verifyImageSignatures(i, [attestors.ours]) > 0)")
	for _, c := range []struct {
		reason        string
		first, second policy.Answer
		want          policy.Result
	}{
		{"both are signed", fact, fact, policy.Pass},
		{"the first is", fact, policy.Answer{}, policy.Fail},
		{"the second is", policy.Answer{}, fact, policy.Fail},
		{"the first could not be verified", noAnswer(), fact, policy.Indeterminate},
		{"nor at the second", fact, noAnswer(), policy.Indeterminate},
		{"one could not be verified, and the other is not signed", noAnswer(), policy.Answer{}, policy.Fail},
	} {
		each := []policy.Answer{c.first, c.second}
		out := judged(t, text, nil, map[string]any{}, containers(app, app), func(i int, g *policy.Given) {
			g.Answers = func(policy.Question) policy.Answer { return each[i] }
		})
		for i, d := range out.Decisions {
			if d.Result != c.want {
				t.Errorf("%s: image %d: %s %s", c.reason, i, d.Result, textOf(d.Reasons))
			}
		}
	}
}

// TestOddArguments: a wrong attestor, attestation or image is an error of the expression,
// and never counts as verified.
func TestOddArguments(t *testing.T) {
	by := answers{"ours": {Facts: factsOf("a")}, "keyless": {Facts: factsOf("b")}, "ours/" + vulnType: saying("a", "{}"), "keyless/sbom/a": saying("b", "{}")}
	for _, c := range []struct {
		reason, expression string
		want               policy.Result
		word               string
	}{
		{"an attestor is itself", "images.containers.all(i, attestors.ours == attestors.ours)", policy.Pass, ""},
		{"and no other one", "images.containers.all(i, attestors.ours == attestors.keyless)", policy.Fail, ""},
		{"no text", "images.containers.all(i, string(attestors.ours) == 'ours')", policy.Indeterminate, "no such overload"},
		{"attestors that are no list", "images.containers.all(i, verifyImageSignatures(i, dyn('ours')) > 0)", policy.Indeterminate, "does not take these arguments"},
		{"a payload without a verified statement", "images.containers.all(i, extractPayload(i, attestations.scan).a == 1)", policy.Indeterminate, "call verifyAttestationSignatures for it before"},
		{"attestors that are texts", "images.containers.all(i, verifyImageSignatures(i, ['ours']) > 0)", policy.Indeterminate, "want a list of attestors, as in"},
		{"attestors of a statement that are texts", "images.containers.all(i, verifyAttestationSignatures(i, 'scan', ['ours']) > 0)", policy.Indeterminate, "want a list of attestors, as in"},
		{"an attestation by a name that is made up", "images.containers.all(i, verifyAttestationSignatures(i, 'sc' + 'an', [attestors.ours]) > 0)", policy.Pass, ""},
		{"which is not defined", "images.containers.all(i, verifyAttestationSignatures(i, 'sc' + 'ab', [attestors.ours]) > 0)", policy.Indeterminate, "attestations.scab is not defined"},
		{"one that a key cannot prove", "images.containers.all(i, verifyAttestationSignatures(i, 'sb' + 'om', [attestors.ours]) >= 0)", policy.Indeterminate, "sbom"},
		{"a payload that is not defined", "images.containers.all(i, verifyAttestationSignatures(i, 'scan', [attestors.ours]) > 0 && extractPayload(i, 'sc' + 'ab').a == 1)", policy.Indeterminate, "attestations.scab is not defined"},
		{"no reference", "images.containers.all(i, verifyImageSignatures('::', [attestors.ours]) > 0)", policy.Indeterminate, "::"},
		{"no image of the object", "images.containers.all(i, verifyImageSignatures('other.example/a:1', [attestors.ours]) == 0)", policy.Indeterminate, "names no image of the object"},
		{"a payload of none", scanned + " && images.containers.all(i, extractPayload('other.example/a:1', attestations.scan).a == 1)", policy.Indeterminate, "names no image of the object"},
		{"a payload of no reference", scanned + " && images.containers.all(i, extractPayload('::', attestations.scan).a == 1)", policy.Indeterminate, "image reference"},
		{"data of none", "images.containers.all(i, getImageData('other.example/a:1').digest == '')", policy.Indeterminate, "no registry can be asked"},
		{"the same image in other words", "images.containers.all(i, verifyImageSignatures('registry.example:443/org/app:v1', [attestors.ours]) > 0)", policy.Pass, ""},
		{"another tag of it", "images.containers.all(i, verifyImageSignatures('registry.example/org/app:v2', [attestors.ours]) > 0)", policy.Indeterminate, "names no image of the object"},
	} {
		d := judged(t, expressed(c.expression), by, map[string]any{}, containers(app), nil).Decisions[0]
		if d.Result != c.want || !strings.Contains(textOf(d.Reasons), c.word) {
			t.Errorf("%s: %s %s", c.reason, d.Result, textOf(d.Reasons))
		}
	}
}

// TestImagesThatAreNotMeant: nothing is known of them, and that is no proof.
func TestImagesThatAreNotMeant(t *testing.T) {
	by := answers{"ours": {Facts: factsOf("a")}, "ours/" + vulnType: saying("a", "{}")}
	const theirs, digest = "other.example/a:1", "@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	for _, c := range []struct {
		reason, expression string
		want               policy.Result
		word               string
	}{
		{"those of the list", "images.containers.all(i, verifyImageSignatures(i, [attestors.ours]) > 0)", policy.Pass, ""},
		{"no signature counts for another one", "images.containers.size() == 1 && verifyImageSignatures('" + theirs + "', [attestors.ours]) > 0", policy.Fail, ""},
		{"none has to", "images.containers.size() == 1 && verifyImageSignatures('" + theirs + "', [attestors.ours]) == 0", policy.Pass, ""},
		{"nor does a statement", "images.containers.size() == 1 && verifyAttestationSignatures('" + theirs + "', 'scan', [attestors.ours]) > 0", policy.Fail, ""},
		{"nor of one by its digest", "images.containers.size() == 1 && verifyImageSignatures('third.example/a" + digest + "', [attestors.ours]) == 0", policy.Pass, ""},
		{"another digest is not known", "images.containers.size() == 1 && verifyImageSignatures('third.example/a" + strings.ReplaceAll(digest, "aaaa", "bbbb") + "', [attestors.ours]) == 0", policy.Indeterminate, "names no image of the object"},
		{"its payload", scanned + " && extractPayload('" + theirs + "', attestations.scan).a == 1", policy.Indeterminate, "do not mean the image"},
		{"its data", "images.containers.size() == 1 && getImageData('" + theirs + "').digest == ''", policy.Indeterminate, "no registry can be asked"},
	} {
		text := edit(expressed(c.expression), "spec:\n", "spec:\n  matchImageReferences: [{glob: registry.example/*}]\n")
		out := judged(t, text, by, map[string]any{}, containers(app, theirs, "third.example/a:1"+digest), nil)
		if len(out.Decisions) != 1 {
			t.Fatalf("%s: %+v", c.reason, out)
		}
		if d := out.Decisions[0]; d.Result != c.want || !strings.Contains(textOf(d.Reasons), c.word) {
			t.Errorf("%s: %s %s", c.reason, d.Result, textOf(d.Reasons))
		}
	}
}

// TestStatementsOfTwoTypes: the same payload in a statement of another type is another
// statement.
func TestStatementsOfTwoTypes(t *testing.T) {
	const other = "https://example.com/other/v1"
	by := saying("a", "{}", "{}")
	by.Facts[1].Statement.PredicateType = other
	for predicateType, want := range map[string]policy.Result{vulnType: policy.Pass, other: policy.Pass, "https://example.com/none/v1": policy.Fail} {
		text := expressed(scanned + " && images.containers.all(i, extractPayload(i, attestations.scan).predicateType == '" + predicateType + "')")
		if d := judged(t, text, answers{"ours/" + vulnType: by}, map[string]any{}, containers(app), nil).Decisions[0]; d.Result != want {
			t.Errorf("%s: %s %s", predicateType, d.Result, textOf(d.Reasons))
		}
	}
}

// roots returns the same trusted root for every TUF repository.
type roots struct {
	trusted string
	err     error
}

func (r roots) Want(attestor.TUF) {}

func (r roots) TrustedRoot(attestor.TUF) (string, error) { return r.trusted, r.err }

// TestTrustedRootsThatAreRead: what could not be verified is no fault of the policy, and
// a fault of the policy is nothing that could not be verified.
func TestTrustedRootsThatAreRead(t *testing.T) {
	root := string(testkit.Must(verifytest.New(verifytest.Options{}))(t).TrustedRoot())
	whole := edit(expressed("images.containers.all(i, verifyImageSignatures(i, [attestors.keyless]) > 0)"), "cosign: {keyless", "cosign: {tuf: {}, keyless")
	faulty := edit(whole, "subject: ann@example.com", "subjectExpression: dyn(object).none")
	down := &image.Error{Kind: image.Unavailable, Op: "get", On: "a", Err: errors.New("down")}
	for _, c := range []struct {
		reason, text string
		roots        attestor.Roots
		want         policy.Result
		code         policy.Code
	}{
		{"it was read", whole, roots{trusted: root}, policy.Pass, policy.Verified},
		{"it is read just now", whole, roots{err: errors.New("try again")}, policy.Indeterminate, policy.CannotProve},
		{"it could not be read", whole, roots{err: down}, policy.Indeterminate, policy.Unavailable},
		{"no reader of TUF repositories", whole, nil, policy.Indeterminate, policy.CannotProve},
		{"an expression that fails", faulty, roots{trusted: root}, policy.Indeterminate, policy.PolicyError},
		{"one that fails, and it could not be read", faulty, roots{err: down}, policy.Indeterminate, policy.PolicyError},
		{"one that yields no key, and there is none to read", edit(minimal, `data: "`+cert+`"`, "expression: \"'no key'\""), nil, policy.Indeterminate, policy.PolicyError},
	} {
		p := testkit.Must(imagevalidating.New(imagevalidating.Options{Roots: c.roots}).Compile([]byte(c.text), "test.yaml"))(t)
		s := &policy.Subject{Object: policy.ContentOf(map[string]any{}), Kind: "Pod", Version: "v1", Operation: "CREATE", Namespace: "shop"}
		plan := testkit.Must(p.Rules[0].Plan(t.Context(), s, containers(app)))(t)
		d := plan.Judge.Judge(t.Context(), []policy.Given{{Check: &plan.Checks[0], Answers: answers{"keyless": {Facts: factsOf("a")}}.to}}).Decisions[0]
		if d.Result != c.want || d.Reasons[0].Code != c.code {
			t.Errorf("%s: %s %s", c.reason, d.Result, textOf(d.Reasons))
		}
	}
}
