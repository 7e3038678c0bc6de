package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/policy"
)

// mode is the action of a policy that is not satisfied. ClusterImagePolicies neither audit nor fail open.
type mode string

const (
	enforce mode = "enforce"
	warn    mode = "warn"
	audit   mode = "audit"
	open    mode = "enforce, and admit silence"
)

// spelling is a statement in one dialect: one document or several, in which MODE is replaced by a
// mode.
type spelling struct {
	name      string
	documents []string
	modes     map[mode]string
}

// verifyImages spells a statement as entries of verifyImages: of no type, of the two
// types of Sigstore, which see the same here, and in the policy of a namespace.
func verifyImages(entries ...string) []spelling {
	return []spelling{
		kyverno("ClusterPolicy", "", entries), kyverno("ClusterPolicy", "Cosign", entries), kyverno("ClusterPolicy", "SigstoreBundle", entries),
		kyverno("Policy", "", entries),
	}
}

func kyverno(kind, of string, entries []string) spelling {
	text := "apiVersion: kyverno.io/v1\nkind: " + kind + "\nmetadata: {name: NAME, namespace: shop}\nspec:\n  MODE\n  rules:\n  - name: images\n" +
		"    match: {any: [{resources: {kinds: [Pod]}}]}\n    verifyImages:\n"
	for _, entry := range entries {
		text += "    - {imageReferences: [HOST/shop/*], " + entry
		if of != "" {
			text += ", type: " + of
		}
		text += "}\n"
	}
	if kind == "ClusterPolicy" {
		text = strings.Replace(text, ", namespace: shop", "", 1)
	}
	return spelling{name: strings.TrimSpace(kind + " " + of), documents: []string{text}, modes: map[mode]string{
		enforce: "validationFailureAction: Enforce", audit: "validationFailureAction: Audit",
		warn: "validationFailureAction: Audit\n  emitWarning: true", open: "validationFailureAction: Enforce\n  failurePolicy: Ignore",
	}}
}

// imageValidating spells a statement as an ImageValidatingPolicy of each version, and
// of a namespace; body is its attestors, attestations and validations.
func imageValidating(body string) []spelling {
	var all []spelling
	for _, kind := range []string{"v1 ImageValidatingPolicy", "v1beta1 NamespacedImageValidatingPolicy", "v1alpha1 ImageValidatingPolicy"} {
		version, kind, _ := strings.Cut(kind, " ")
		meta := "{name: NAME}"
		if strings.HasPrefix(kind, "Namespaced") {
			meta = "{name: NAME, namespace: shop}"
		}
		all = append(all, spelling{name: kind + " " + version, documents: []string{
			"apiVersion: policies.kyverno.io/" + version + "\nkind: " + kind + "\nmetadata: " + meta + "\nspec:\n  validationActions: MODE\n" +
				"  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}]}\n" +
				"  matchImageReferences: [{glob: HOST/shop/*}]\n" + body,
		}, modes: map[mode]string{enforce: "[Deny]", warn: "[Warn]", audit: "[Audit]", open: "[Deny]\n  failurePolicy: Ignore"}})
	}
	return all
}

// clusterImage spells a statement as ClusterImagePolicies, all of which must hold.
func clusterImage(bodies ...string) []spelling {
	var all []spelling
	for _, version := range []string{"v1beta1", "v1alpha1"} {
		s := spelling{name: "ClusterImagePolicy " + version, modes: map[mode]string{enforce: "enforce", warn: "warn"}}
		for _, body := range bodies {
			s.documents = append(s.documents, "apiVersion: policy.sigstore.dev/"+version+"\nkind: ClusterImagePolicy\nmetadata: {name: NAME}\nspec:\n"+
				"  mode: MODE\n  images: [{glob: HOST/shop/*}]\n"+body)
		}
		all = append(all, s)
	}
	return all
}

// statement is what policies say, in every spelling of every dialect that can.
type statement struct {
	column, says string
	spellings    []spelling
}

func statements() []statement {
	const (
		ofKey    = "{keys: {publicKeys: KEY, rekor: {ignoreTlog: true}}}"
		ofSecond = "{keys: {publicKeys: SECOND, rekor: {ignoreTlog: true}}}"
		anyone   = "  validations:\n  - {expression: 'images.containers.all(i, verifyImageSignatures(i, [attestors.key]) > 0)'}\n"
		keys     = "  attestors: [{name: key, cosign: {key: {data: KEY}, ctlog: {insecureIgnoreTlog: true}}}, {name: second, cosign: {key: {data: SECOND}, ctlog: {insecureIgnoreTlog: true}}}]\n"
		log      = "https://rekor.sigstore.dev"
	)
	notary := []string{"attestors: [{entries: [{certificates: {cert: NOTARY}}]}]"}
	join := func(lists ...[]spelling) (all []spelling) {
		for _, list := range lists {
			all = append(all, list...)
		}
		return all
	}
	return []statement{
		{"key", "signed by the key, whether or not a log has it", join(
			verifyImages("attestors: [{entries: ["+ofKey+"]}]"),
			imageValidating("  attestors: [{name: key, cosign: {key: {data: KEY}, ctlog: {insecureIgnoreTlog: true}}}]\n"+anyone),
			clusterImage("  authorities: [{key: {data: KEY}}]\n"),
		)},
		{"logged", "signed by the key, with a log entry", join(
			verifyImages("attestors: [{entries: [{keys: {publicKeys: KEY, rekor: {url: '"+log+"'}}}]}]", "attestors: [{entries: [{keys: {publicKeys: KEY}}]}]"),
			imageValidating("  attestors: [{name: key, cosign: {key: {data: KEY}}}]\n"+anyone),
			imageValidating("  attestors: [{name: key, cosign: {key: {data: KEY}, ctlog: {url: '"+log+"'}}}]\n"+anyone),
			clusterImage("  authorities: [{key: {data: KEY}, ctlog: {url: '"+log+"'}}]\n"),
		)},
		{"identity", "signed by an identity of the certificate authority, with a log entry", join(
			verifyImages("attestors: [{entries: [{keyless: {issuer: ISSUER, subjectRegExp: SUBJECT}}]}]"),
			imageValidating("  attestors: [{name: key, cosign: {keyless: {identities: [{issuer: ISSUER, subjectRegExp: SUBJECT}]}}}]\n"+anyone),
			clusterImage("  authorities: [{keyless: {url: 'https://fulcio.sigstore.dev', identities: [{issuer: ISSUER, subjectRegExp: SUBJECT}]}, ctlog: {url: '"+log+"'}}]\n"),
		)},
		{"scan", "attested by the key to be clean, by a scan", join(
			verifyImages("attestations: [{type: SCAN, attestors: [{entries: ["+ofKey+"]}], conditions: [{all: [{key: '{{ verdict }}', operator: Equals, value: clean}]}]}]"),
			// An absent field is an error of the expression, which makes it indeterminate; orValue
			// makes it false, as in the other dialects.
			imageValidating("  attestors: [{name: key, cosign: {key: {data: KEY}, ctlog: {insecureIgnoreTlog: true}}}]\n  attestations: [{name: scan, intoto: {type: SCAN}}]\n"+
				"  validations:\n  - expression: images.containers.all(i, verifyAttestationSignatures(i, attestations.scan, [attestors.key]) > 0)\n"+
				"  - expression: images.containers.all(i, extractPayload(i, attestations.scan).predicate.?verdict.orValue('') == 'clean')\n"),
			clusterImage("  authorities: [{key: {data: KEY}, attestations: [{name: scan, predicateType: SCAN, policy: {type: cue, data: 'predicate: verdict: \"clean\"'}}]}]\n"),
			clusterImage("  authorities: [{key: {data: KEY}, attestations: [{name: scan, predicateType: SCAN, policy: {type: rego, data: \"package sigstore\\nisCompliant { input.predicate.verdict == \\\"clean\\\" }\"}}]}]\n"),
		)},
		{"either", "signed by one of two keys at least", join(
			verifyImages("attestors: [{count: 1, entries: ["+ofKey+", "+ofSecond+"]}]"),
			imageValidating(keys+"  validations: [{expression: 'images.containers.all(i, verifyImageSignatures(i, [attestors.key, attestors.second]) > 0)'}]\n"),
			clusterImage("  authorities: [{key: {data: KEY}}, {key: {data: SECOND}}]\n"),
		)},
		{"both", "signed by the one key, and by the other", join(
			verifyImages("attestors: [{entries: ["+ofKey+"]}, {entries: ["+ofSecond+"]}]"),
			verifyImages("attestors: [{entries: ["+ofKey+"]}]", "attestors: [{entries: ["+ofSecond+"]}]"),
			imageValidating(keys+anyone+"  - {expression: 'images.containers.all(i, verifyImageSignatures(i, [attestors.second]) > 0)'}\n"),
			clusterImage("  authorities: [{key: {data: KEY}}]\n", "  authorities: [{key: {data: SECOND}}]\n"),
		)},
		{"count", "signed by two of two keys", join(
			verifyImages("attestors: [{count: 2, entries: ["+ofKey+", "+ofSecond+"]}]"),
			imageValidating(keys+"  validations: [{expression: 'images.containers.all(i, verifyImageSignatures(i, [attestors.key, attestors.second]) == 2)'}]\n"),
			clusterImage("  authorities: [{name: key, key: {data: KEY}}, {name: second, key: {data: SECOND}}]\n  policy: {type: rego, data: \"package sigstore\\nisCompliant { count(input.authorityMatches) == 2 }\"}\n"),
		)},
		{"prod", "signed by the key for prod and team a; ClusterImagePolicies cannot say it", join(
			verifyImages("attestors: [{entries: [{keys: {publicKeys: KEY, rekor: {ignoreTlog: true}}, annotations: {env: prod, team: a}}]}]"),
			imageValidating("  attestors: [{name: key, cosign: {key: {data: KEY}, ctlog: {insecureIgnoreTlog: true}, annotations: {env: prod, team: a}}}]\n"+anyone),
		)},
		{"notary", "signed by the notary's certificates; ClusterImagePolicies cannot say it", join(
			[]spelling{kyverno("ClusterPolicy", "Notary", notary), kyverno("Policy", "Notary", notary)},
			imageValidating("  attestors: [{name: key, notary: {certs: {value: NOTARY}}}]\n"+anyone),
		)},
	}
}

// compilers are those that the product has.
func compilers(t testing.TB) engine.Compilers {
	t.Helper()
	made, err := engine.NewCompilers(engine.CompilerOptions{ConfigMaps: engine.NewResources()})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// compile compiles a spelling; the distinguishing text is part of the names.
func compile(t testing.TB, with engine.Compilers, v *gatetest.Variants, s spelling, in mode, tell string) []*policy.Policy {
	t.Helper()
	var all []*policy.Policy
	for i, text := range s.documents {
		text = v.Fill(strings.NewReplacer("NAME", fmt.Sprintf("p%s%d", tell, i), "MODE", s.modes[in]).Replace(text))
		kind, _, _ := strings.Cut(s.name, " ")
		version, _, _ := strings.Cut(strings.TrimPrefix(text, "apiVersion: "), "\n")
		for _, dialect := range with.Dialects() {
			if !dialect.Recognises(version, kind) {
				continue
			}
			compiled, err := dialect.Compile([]byte(text), s.name)
			if err != nil {
				t.Fatalf("%s: %v\n%s", s.name, err, text)
			}
			all = append(all, compiled)
		}
	}
	if len(all) != len(s.documents) {
		t.Fatalf("%s: %d policies of %d documents", s.name, len(all), len(s.documents))
	}
	return all
}

func newVariants(t testing.TB) *gatetest.Variants {
	t.Helper()
	env, err := gatetest.NewEnv()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(env.Close)
	v, err := gatetest.NewVariants(env)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
