package ivp

import (
	"regexp"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	dns := regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	word := regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)
	labels, words := map[string]bool{}, map[string]bool{}
	long := strings.Repeat("a.very.long/repository", 9)
	for text, want := range map[string]string{
		"docker.io/library/*": "docker-io-library-any", "*:*": "any-any", "": "policy", "///": "policy", "Ünïcode": "n-code", "9": "9",
		long + "1": "a-very-long-repositorya-very-long-repositorya-very-lo-" + "8", long + "2": "",
	} {
		got := Label(text)
		if !dns.MatchString(got) || want != "" && !strings.HasPrefix(got, strings.TrimSuffix(want, "-8")) {
			t.Errorf("label of %q is %q, want %q", text, got, want)
		}
		for range 12 {
			one := Unique(got, labels)
			if !dns.MatchString(one) {
				t.Errorf("%q is no DNS label", one)
			}
		}
		if name := AttestorName(text, words); !word.MatchString(name) {
			t.Errorf("%q is no word of CEL", name)
		}
	}
	if Label(long+"1") == Label(long+"2") {
		t.Error("two long names share a label")
	}
	if len(labels) != 8*12 {
		t.Errorf("%d names, want %d: one was given twice", len(labels), 8*12)
	}
	for _, text := range append(reserved(), "in") {
		if name := AttestorName(text, map[string]bool{}); name == text {
			t.Errorf("%q is a word that CEL keeps for itself", name)
		}
	}
}

// TestComments keeps a source's text inside its comment.
func TestComments(t *testing.T) {
	for _, text := range []string{"a\nkind: Pod", "a\r\nb", "a\u2028kind: Pod", "a\u0085kind: Pod", "a\x00b", strings.Repeat("word ", 100), strings.Repeat("w", 300), ""} {
		for _, line := range strings.Split(strings.TrimSuffix(Comment(text), "\n"), "\n") {
			if !strings.HasPrefix(line, "#") || strings.ContainsAny(line, "\r\x00\u2028\u0085") {
				t.Errorf("%q becomes the line %q", text, line)
			}
		}
	}
}

// TestLetters has which letters a name keeps, and how long it may be.
func TestLetters(t *testing.T) {
	for text, want := range map[string]string{
		"az09": "az09", "a`b{c/d:e": "a-b-c-d-e", "AZ": "az", "`{/:": "policy", "a--b": "a-b",
		strings.Repeat("a", 63): strings.Repeat("a", 63), strings.Repeat("a", 64): strings.Repeat("a", 54) + "-ffe054fe",
	} {
		if got := Label(text); got != want {
			t.Errorf("label of %q is %q, want %q", text, got, want)
		}
	}
	taken := map[string]bool{}
	for _, row := range []struct{ text, want string }{
		{"a/b", "a_b"}, {"a-b", "a_b_2"}, {"a b", "a_b_3"}, {"0a", "by_0a"}, {"9a", "by_9a"}, {"in", "by_in"}, {"inn", "inn"}, {"z", "z"},
	} {
		if got := AttestorName(row.text, taken); got != row.want {
			t.Errorf("the attestor %q is called %q, want %q", row.text, got, row.want)
		}
	}
}

// TestWraps breaks a comment between words, and nowhere else.
func TestWraps(t *testing.T) {
	for _, row := range []struct{ reason, text, want string }{
		{"a short one", "a\nb\tc", "# a b c\n"},
		{"as wide as may be", strings.Repeat("a", 40) + " " + strings.Repeat("b", 47), "# " + strings.Repeat("a", 40) + " " + strings.Repeat("b", 47) + "\n"},
		{"wider by a letter", strings.Repeat("a", 40) + " " + strings.Repeat("b", 48), "# " + strings.Repeat("a", 40) + "\n# " + strings.Repeat("b", 48) + "\n"},
		{"a word that is too wide", strings.Repeat("a", 100) + " b", "# " + strings.Repeat("a", 100) + "\n# b\n"},
		{"what cannot be printed", "a\x00b \u00e9", "# a?b \u00e9\n"},
	} {
		if got := Comment(row.text); got != row.want {
			t.Errorf("%s: got %q, want %q", row.reason, got, row.want)
		}
	}
}

// TestExpressions has how attestors are named in CEL, and their certificates kept.
func TestExpressions(t *testing.T) {
	if got, want := Signed([]string{"a", "b"}, 2), "verifyImageSignatures(image, [attestors.a, attestors.b]) >= 2"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := Attested("s", []string{"a"}, 1), "verifyAttestationSignatures(image, attestations.s, [attestors.a]) >= 1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if n := TrustStore([]string{"a", "b"}, nil); n.Certs == nil || n.Certs.Value != "ab" || n.TSACerts != nil {
		t.Errorf("authorities alone are %+v", n)
	}
	if n := TrustStore(nil, []string{"c"}); n.Certs != nil || n.TSACerts == nil || n.TSACerts.Value != "c" {
		t.Errorf("timestamps alone are %+v", n)
	}
}

// TestWrite covers a policy's own fields, and the defaults.
func TestWrite(t *testing.T) {
	on, off := true, false
	const pods = "resources:\n          - pods\n          - pods/ephemeralcontainers\n"
	for _, row := range []struct {
		reason     string
		policy     Policy
		has, lacks []string
	}{
		{"what all have", Policy{Name: "a"}, []string{
			"kind: ImageValidatingPolicy\nmetadata:\n  name: a\nspec:\n  failurePolicy: Fail\n  validationActions:\n    - Deny\n", pods,
			"mutateDigest: true\n    verifyDigest: true\n    required: true\n", "attestors: []\n",
		}, []string{"namespace", "timeoutSeconds", "evaluation"}},
		{"a namespace's", Policy{Name: "a", Namespace: "b"}, []string{"kind: NamespacedImageValidatingPolicy\nmetadata:\n  name: a\n  namespace: b\n"}, nil},
		{"its own settings", Policy{FailurePolicy: "Ignore", Actions: []string{"Warn"}, Timeout: 1}, []string{"failurePolicy: Ignore\n  validationActions:\n    - Warn\n  webhookConfiguration:\n    timeoutSeconds: 1\n"}, []string{"Deny"}},
		{"its own requests", Policy{Match: &MatchConstraints{ResourceRules: []ResourceRule{{Resources: []string{"jobs"}}}}}, []string{"- jobs\n"}, []string{"pods"}},
		{"its own digests", Policy{Pin: &Pinning{Verify: true}}, []string{"mutateDigest: false\n    verifyDigest: true\n    required: false\n"}, nil},
		{"judged in the background", Policy{Background: &on}, []string{"evaluation:\n    background:\n      enabled: true\n"}, nil},
		{"not judged there", Policy{Background: &off}, []string{"evaluation:\n    background:\n      enabled: false\n"}, nil},
		{"comments", Policy{
			About: []string{"about"}, Images: []ImageReference{{Glob: "g1"}, {Glob: "g2", Comment: "of g2"}}, Attestors: []Attestor{{Name: "n1", Comment: "of n"}},
			Validations: []Validation{{Expression: "v", Comment: "of v"}},
		}, []string{"---\n# about\n", "    - glob: g1\n    # of g2\n    - glob: g2\n", "    # of n\n    - name: n1\n", "    # of v\n    - expression: v\n"}, []string{"attestors: []"}},
	} {
		out, err := Write("a sample", []string{"a note"}, []*Policy{&row.policy})
		if err != nil || !strings.HasPrefix(string(out), "# Converted from a sample by") || !strings.Contains(string(out), "\n# a note\n") {
			t.Errorf("%s: %v and\n%s", row.reason, err, out)
		}
		for _, text := range row.has {
			if !strings.Contains(string(out), text) {
				t.Errorf("%s: no %q in\n%s", row.reason, text, out)
			}
		}
		for _, text := range append(row.lacks, "No policy is needed") {
			if strings.Contains(string(out), text) {
				t.Errorf("%s: %q in\n%s", row.reason, text, out)
			}
		}
	}
	if out, err := Write("a sample", nil, nil); err != nil || !strings.HasSuffix(string(out), "# No policy is needed: nothing is asked of any image.\n") {
		t.Errorf("no policies: %v and\n%s", err, out)
	}
}
