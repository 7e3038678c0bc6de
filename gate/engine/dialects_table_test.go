package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/policy"
)

// meaning are the codes of a word of the table: one of them is that of the first reason.
func meaning(word string) []policy.Code {
	return map[string][]policy.Code{
		"none": {policy.Unsigned}, "nothing": {policy.NoAttestation}, "verdict": {policy.ConditionFailed},
		"key": {"wrong-key"}, "who": {"wrong-identity"}, "notes": {"wrong-annotation"}, "digest": {"wrong-digest"},
		"junk": {"malformed"}, "bytes": {"bad-signature"}, "chain": {"untrusted-chain"}, "sct": {"no-sct"},
		"expired": {"expired-certificate"}, "log": {"no-log-entry"}, "badlog": {"bad-log-entry"},
		"gone": {policy.ImageNotFound}, "refused": {policy.AccessRefused}, "silent": {policy.Unavailable}, "lies": {policy.Contradiction},
		// The codes depend on the dialect: a ClusterPolicy reports the number of signers, an
		// ImageValidatingPolicy the missing ones, and a ClusterImagePolicy the failed Rego of its
		// author.
		"few": {policy.TooFewSigners, "wrong-key", policy.Denied},
		// Next to an unverified signature, an insufficient one was found. It comes first where
		// policies declare the required signers, and is left out where expressions do.
		"who+": {"wrong-identity", policy.Unavailable}, "key+": {"wrong-key", policy.Unavailable}, "notes+": {"wrong-annotation", policy.Unavailable},
		"few+": {policy.TooFewSigners, "wrong-key", policy.Unavailable},
	}[word]
}

// verdicts are the results of each statement for each image, in every dialect that can express it:
// ok, or the meaning of a word. A question mark makes it "could not be verified" and not a denial.
const verdicts = `
image                                                        | key      | logged   | identity | scan     | either   | both     | count    | prod     | notary
nothing                                                      | none     | none     | none     | nothing  | none     | none     | none     | none     | none
nothing, by digest                                           | none     | none     | none     | nothing  | none     | none     | none     | none     | none
no such tag                                                  | ?gone    | ?gone    | ?gone    | ?gone    | ?gone    | ?gone    | ?gone    | ?gone    | ?gone
no such digest                                               | ?gone    | ?gone    | ?gone    | ?gone    | ?gone    | ?gone    | ?gone    | ?gone    | ?gone
the tag: error 500                                           | ?silent  | ?silent  | ?silent  | ?silent  | ?silent  | ?silent  | ?silent  | ?silent  | ?silent
the tag: refused                                             | ?refused | ?refused | ?refused | ?refused | ?refused | ?refused | ?refused | ?refused | ?refused
the tag: a page that asks to sign in                         | ?lies    | ?lies    | ?lies    | ?lies    | ?lies    | ?lies    | ?lies    | ?lies    | ?lies
the tag: the digest of no image                              | none     | none     | none     | nothing  | none     | none     | none     | none     | none
cosign's tag of signatures: error 500                        | ?silent  | ?silent  | ?silent  | nothing  | ?silent  | ?silent  | ?silent  | ?silent  | none
all evidence, by digest: error 500                           | ?silent  | ?silent  | ?silent  | ?silent  | ?silent  | ?silent  | ?silent  | ?silent  | ?silent
all blobs: other bytes than the manifests list               | ?lies    | ?lies    | ?lies    | ?lies    | ?lies    | ?lies    | ?lies    | ?lies    | none
signed by the key and logged; referrers: error 500           | ok       | ok       | ?who+    | ?silent  | ok       | ?key+    | ?few+    | ?notes+  | ?silent
signed by the key                                            | ok       | log      | who      | nothing  | ok       | key      | few      | notes    | none
signed by the key, by digest                                 | ok       | log      | who      | nothing  | ok       | key      | few      | notes    | none
signed by the key, in a bundle                               | ok       | log      | who      | nothing  | ok       | key      | few      | notes    | none
signed by the key and logged                                 | ok       | ok       | who      | nothing  | ok       | key      | few      | notes    | none
signed by the key and logged, in a bundle                    | ok       | ok       | who      | nothing  | ok       | key      | few      | notes    | none
signed by the key and logged, in a bundle, by digest         | ok       | ok       | who      | nothing  | ok       | key      | few      | notes    | none
signed by the key, and a log's broken promise                | ok       | badlog   | who      | nothing  | ok       | key      | few      | notes    | none
signed by the key, and an invalid inclusion proof in a bundle | ok       | badlog   | who      | nothing  | ok       | key      | few      | notes    | none
signed by the key, and logged by an untrusted log            | ok       | badlog   | who      | nothing  | ok       | key      | few      | notes    | none
signed by the key, and stamped                               | ok       | log      | who      | nothing  | ok       | key      | few      | notes    | none
signed by the key, twice                                     | ok       | ok       | who      | nothing  | ok       | key      | few      | notes    | none
signed with another key                                         | key      | key      | who      | nothing  | key      | key      | key      | key      | none
signed with another key, in a bundle, by digest                 | key      | key      | who      | nothing  | key      | key      | key      | key      | none
signed by the second key                                     | key      | key      | who      | nothing  | ok       | key      | few      | key      | none
signed by both keys                                          | ok       | ok       | who      | nothing  | ok       | ok       | ok       | notes    | none
signed by both keys, in both formats, by digest              | ok       | ok       | who      | nothing  | ok       | ok       | ok       | notes    | none
signed by the key, among other keys and junk                  | ok       | ok       | who      | nothing  | ok       | key      | few      | notes    | none
signed by the key in a bundle, among other keys and junk      | ok       | ok       | who      | nothing  | ok       | key      | few      | notes    | none
junk                                                         | junk     | junk     | junk     | nothing  | junk     | junk     | junk     | junk     | none
signature of other bytes                                     | bytes    | bytes    | who      | nothing  | bytes    | bytes    | bytes    | bytes    | none
signature of another image                                   | digest   | digest   | who      | nothing  | digest   | digest   | digest   | digest   | none
signature of another image, in a bundle                      | digest   | digest   | who      | nothing  | digest   | digest   | digest   | digest   | none
attested by the key                                          | none     | none     | none     | ok       | none     | none     | none     | none     | none
attested by the key, in a bundle                             | none     | none     | none     | ok       | none     | none     | none     | none     | none
attested by the key, of another type                         | none     | none     | none     | nothing  | none     | none     | none     | none     | none
attested by the key, and the verdict is another              | none     | none     | none     | verdict  | none     | none     | none     | none     | none
attested by the key, without a verdict                       | none     | none     | none     | verdict  | none     | none     | none     | none     | none
attested by the key, once dirty and once clean, by digest    | none     | none     | none     | ok       | none     | none     | none     | none     | none
attested with another key                                       | none     | none     | none     | key      | none     | none     | none     | none     | none
attested clean with another key and dirty by the key, by digest | none     | none     | none     | verdict  | none     | none     | none     | none     | none
attestation of another image                                 | none     | none     | none     | digest   | none     | none     | none     | none     | none
signed and attested by the key                               | ok       | ok       | who      | ok       | ok       | key      | few      | notes    | none
signed by the identity                                       | key      | key      | ok       | nothing  | key      | key      | key      | key      | none
signed by the identity, in a bundle, by digest               | key      | key      | ok       | nothing  | key      | key      | key      | key      | none
signed by another subject                                    | key      | key      | who      | nothing  | key      | key      | key      | key      | none
signed by a subject that ends like the right one, by digest  | key      | key      | who      | nothing  | key      | key      | key      | key      | none
signed by the subject of another issuer                      | key      | key      | who      | nothing  | key      | key      | key      | key      | none
signed by the identity, of another authority                 | key      | key      | chain    | nothing  | key      | key      | key      | key      | none
signed by the identity, without a certificate timestamp      | key      | key      | sct      | nothing  | key      | key      | key      | key      | none
signed by the identity, with neither log nor timestamp       | key      | key      | log      | nothing  | key      | key      | key      | key      | none
signed by the identity, and stamped                          | key      | key      | log      | nothing  | key      | key      | key      | key      | none
signed by the identity, after its certificate expired        | key      | key      | expired  | nothing  | key      | key      | key      | key      | none
signed by the key for prod                                   | ok       | ok       | who      | nothing  | ok       | key      | few      | ok       | none
signed by the key for prod, in a bundle                      | ok       | ok       | who      | nothing  | ok       | key      | few      | ok       | none
signed by the key for test, by digest                        | ok       | ok       | who      | nothing  | ok       | key      | few      | notes    | none
signed by the key for prod, and for team a                   | ok       | ok       | who      | nothing  | ok       | key      | few      | notes    | none
notarised                                                    | none     | none     | none     | nothing  | none     | none     | none     | none     | ok
notarised, in COSE, by digest                                | none     | none     | none     | nothing  | none     | none     | none     | none     | ok
notarised by another, by digest                              | none     | none     | none     | nothing  | none     | none     | none     | none     | chain
notarised by another, and by the right one                   | none     | none     | none     | nothing  | none     | none     | none     | none     | ok
notarised with other bytes                                   | none     | none     | none     | nothing  | none     | none     | none     | none     | bytes
an index, signed                                             | ok       | log      | who      | nothing  | ok       | key      | few      | notes    | none
an index, of which an image is signed                        | none     | none     | none     | nothing  | none     | none     | none     | none     | none
an image by its digest, of an index that is signed           | ok       | none     | none     | nothing  | ok       | none     | none     | none     | none
an image by its digest alone, of an index that is signed     | none     | none     | none     | nothing  | none     | none     | none     | none     | none
`

// expected reads the table: by image, the words of each statement.
func expected(t testing.TB, v *gatetest.Variants) map[string]map[string]string {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(verdicts), "\n")
	cells := func(line string) []string {
		parts := strings.Split(line, "|")
		for i := range parts {
			parts[i] = strings.TrimSpace(parts[i])
		}
		return parts
	}
	columns := cells(lines[0])
	table := map[string]map[string]string{}
	for _, line := range lines[1:] {
		row := cells(line)
		if len(row) != len(columns) {
			t.Fatalf("%d cells, want %d: %s", len(row), len(columns), line)
		}
		table[row[0]] = map[string]string{}
		for i, column := range columns[1:] {
			table[row[0]][column] = row[i+1]
		}
	}
	for _, image := range v.Images {
		if table[image.Reason] == nil {
			t.Errorf("the table has no row for: %s", image.Reason)
		}
	}
	if len(table) != len(v.Images) {
		t.Errorf("%d rows for %d images", len(table), len(v.Images))
	}
	return table
}

// ask judges every variant by policies.
func ask(t testing.TB, v *gatetest.Variants, policies []*policy.Policy) []gate.Outcome {
	t.Helper()
	g, err := v.Gate(policies...)
	if err != nil {
		t.Fatal(err)
	}
	var requests []gate.Request
	for _, image := range v.Images {
		requests = append(requests, podOf(t, image.Name))
	}
	return g.DecideAll(t.Context(), requests, nil)
}

func podOf(t testing.TB, image string) gate.Request {
	t.Helper()
	request, err := gate.ForImage(image, "shop")
	if err != nil {
		t.Fatal(err)
	}
	return request
}

// matches compares an answer, and the reason that stands first, with a word of the
// table.
func matches(answer gate.Result, code policy.Code, word string) bool {
	codes, unable := strings.CutPrefix(word, "?")
	want := gate.Deny
	switch {
	case word == "ok":
		return answer == gate.Allow
	case unable:
		want = gate.Error
	}
	return answer == want && slices.Contains(meaning(codes), code)
}

// leading is the code of what stands first.
func leading(reasons []policy.Reason) policy.Code {
	if len(reasons) == 0 {
		return ""
	}
	return reasons[0].Code
}

// against are the reasons against an object of one image.
func against(o gate.Outcome) []policy.Reason {
	return append(slices.Clone(o.Reasons), o.Verdicts[0].Reasons...)
}

// TestDialectsAgree holds that equal statements have equal results: policies of every dialect,
// each asked alone about the same images, admit and refuse the same ones for the same reasons, and
// pin the admitted ones to the same digests.
func TestDialectsAgree(t *testing.T) {
	v, with := newVariants(t), compilers(t)
	table := expected(t, v)
	for _, statement := range statements() {
		t.Run(statement.column, func(t *testing.T) {
			patches := make([]string, len(v.Images)) // of the first spelling
			for n, s := range statement.spellings {
				for i, o := range ask(t, v, compile(t, with, v, s, enforce, "")) {
					image := v.Images[i]
					if want := table[image.Reason][statement.column]; !matches(o.Result, leading(against(o)), want) {
						t.Errorf("%s, which requires: %s; of an image with: %s\n%s, leading code %q; want %s", s.name, statement.says, image.Reason, o.Result, leading(against(o)), want)
					}
					patch := fmt.Sprintf("%s", o.Patch)
					if pins := len(o.Patch) > 0; pins != (o.Result == gate.Allow && !strings.Contains(image.Name, "@")) || n > 0 && patch != patches[i] {
						t.Errorf("%s, which requires: %s; of an image with: %s: patch %s, of the first dialect %s", s.name, statement.says, image.Reason, patch, patches[i])
					}
					if n == 0 {
						patches[i] = patch
					}
				}
			}
		})
	}
}

// TestDialectsAdmitAlike holds that a policy which only warns, or only audits, admits every image,
// in every dialect, and one that fails open admits those without a response; that each reports the
// reasons against the image; and that it is pinned alike.
func TestDialectsAdmitAlike(t *testing.T) {
	v, with := newVariants(t), compilers(t)
	table := expected(t, v)
	statement := statements()[0]
	for _, in := range []mode{warn, audit, open} {
		patches := make([]string, len(v.Images))
		for n, s := range statement.spellings {
			if s.modes[in] == "" {
				continue
			}
			for i, o := range ask(t, v, compile(t, with, v, s, in, "")) {
				image := v.Images[i]
				want := table[image.Reason][statement.column]
				admits := want == "ok" || in != open || want == "?silent"
				said := leading(against(o))
				if o.Result == gate.Allow && len(o.Verdicts[0].Warnings) > 0 {
					said = leading(o.Verdicts[0].Warnings)
				}
				if o.Result.Admits() != admits || want != "ok" && !slices.Contains(meaning(strings.TrimPrefix(want, "?")), said) {
					t.Errorf("%s, to %s; of an image with: %s: %s, with %s; want it admitted: %t, with %s", s.name, in, image.Reason, o.Result, said, admits, want)
				}
				patch := fmt.Sprintf("%s", o.Patch)
				if n == 0 {
					patches[i] = patch
				}
				if patch != patches[i] {
					t.Errorf("%s, to %s; of an image with: %s: patch %s, of the first dialect %s", s.name, in, image.Reason, patch, patches[i])
				}
			}
		}
	}
}

// TestDialectsBlameAlike holds that each image of a pod with all of them has its own reasons, and
// none that only another image has.
func TestDialectsBlameAlike(t *testing.T) {
	v, with := newVariants(t), compilers(t)
	table := expected(t, v)
	var names []string
	for _, image := range v.Images {
		names = append(names, image.Name)
	}
	for _, statement := range statements() {
		for _, s := range one(statement) {
			g, err := v.Gate(compile(t, with, v, s, enforce, "")...)
			if err != nil {
				t.Fatal(err)
			}
			o := g.Decide(t.Context(), podOfMany(t, names...))
			if o.Result != gate.Deny || len(o.Verdicts) != len(names) || len(o.Reasons) > 0 {
				t.Fatalf("%s: %s with %d verdicts: %+v", s.name, o.Result, len(o.Verdicts), o.Reasons)
			}
			for _, verdict := range o.Verdicts {
				image := v.Images[slices.Index(names, verdict.Image.Ref.Written())]
				if want := table[image.Reason][statement.column]; !matches(verdict.Result, leading(verdict.Reasons), want) {
					t.Errorf("%s, which requires: %s; of an image with: %s, among others: %s, leading code %q; want %s", s.name, statement.says, image.Reason, verdict.Result, leading(verdict.Reasons), want)
				}
			}
		}
	}
}
