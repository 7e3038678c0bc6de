package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// TestPayload judges documents that are no Kubernetes objects, as CI has them.
func TestPayload(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	signed, unsigned, foreign := h.Build("signed", "v1", "1"), h.Build("unsigned", "v1", "2"), h.Build("foreign", "v1", "3")
	ok(t, h.SignLegacy(signed, verifytest.Claim{Signer: h.key, NoLog: true}, nil))
	ok(t, h.SignLegacy(foreign, verifytest.Claim{Signer: h.stranger, NoLog: true}, nil))
	closed := registrytest.Start(registrytest.Options{})
	nowhere := closed.Host() + "/app"
	closed.Close()
	policy := func(name, spec string) string {
		return h.file(t, name+".yaml", fmt.Sprintf(`apiVersion: policies.kyverno.io/v1
kind: ImageValidatingPolicy
metadata: {name: %s}
spec:
  %s
  matchImageReferences: [{glob: "127.0.0.1*/**"}]
  attestors: [{name: ours, cosign: {key: {data: %q}, ctlog: {insecureIgnoreTlog: true, insecureIgnoreSCT: true}}}]
`, name, spec, h.key.PublicPEM()))
	}
	ofDocuments := policy("bases", `evaluation: {mode: JSON}
  images: [{name: bases, expression: "object.stages.map(s, s.from)"}]
  validations: [{expression: "images.bases.all(i, verifyImageSignatures(i, [attestors.ours]) > 0)", message: not ours}]`)
	ofPods := policy("pods", `matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: "images.containers.all(i, verifyImageSignatures(i, [attestors.ours]) > 0)", message: not ours}]`)
	stages := func(image string) string { return `{"stages":[{"from":"` + image + `"}]}` }
	pod := fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"stages":[{"from":%q}],"spec":{"containers":[{"name":"c","image":%q}]}}`,
		signed.ByDigest(), unsigned.ByDigest())
	for _, c := range []struct {
		reason, policy, payload string
		args                    []string
		code                    int
		says                    string
	}{
		{"signed", ofDocuments, stages(signed.ByDigest()), nil, command.ExitAllowed, "ImageValidatingPolicy/bases"},
		{"unsigned", ofDocuments, stages(unsigned.ByDigest()), nil, command.ExitDenied, "no signature found"},
		{"signed by another key", ofDocuments, stages(foreign.ByDigest()), nil, command.ExitDenied, "another key"},
		{"YAML", ofDocuments, "stages:\n- from: " + signed.ByDigest() + "\n---\nstages:\n- from: " + unsigned.ByDigest() + "\n", nil, command.ExitDenied, "document 2"},
		{"a tag that is not pinned", ofDocuments, stages(signed.Name), nil, command.ExitDenied, "the object cannot be changed here"},
		{"an expression that fails", ofDocuments, `{"stage":"x"}`, nil, command.ExitError, "no such key"},
		{"a registry that is down", ofDocuments, stages(nowhere + "@" + signed.Manifest.Digest), nil, command.ExitError, "could not be verified"},
		{"no image that is meant", ofDocuments, stages("other.example/a:1"), nil, command.ExitAllowed, "no policy matches this document"},
		{"and that is wanted", ofDocuments, stages("other.example/a:1"), []string{"--require-match"}, command.ExitDenied, "--require-match"},
		{"wanted and there", ofDocuments, stages(signed.ByDigest()), []string{"--require-match"}, command.ExitAllowed, "1 allowed"},
		{"a policy for pods", ofPods, stages(unsigned.ByDigest()), nil, command.ExitAllowed, "no policy matches this document"},
		{"and a pod", ofPods, pod, nil, command.ExitAllowed, "no policy matches this document"},
		{"a pod as a document", ofDocuments, pod, nil, command.ExitAllowed, "ImageValidatingPolicy/bases"},
		{"no JSON", ofDocuments, "FROM nginx\n", nil, command.ExitUsage, "want an object, got text"},
		{"cut", ofDocuments, `{"stages":[`, nil, command.ExitUsage, "--payload"},
		{"a name twice", ofDocuments, `{"stages":[],"stages":[]}`, nil, command.ExitUsage, "stands twice"},
		{"nothing", ofDocuments, "", nil, command.ExitUsage, "no document"},
		{"a key", ofDocuments, stages(signed.ByDigest()), []string{"--key", h.path("key.pub")}, command.ExitUsage, "evaluation.mode"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			file := h.file(t, "payload.json", c.payload)
			args := append([]string{"verify", "--policy", c.policy, "--payload", file}, c.args...)
			code, out, errs := quaymaster(t, args...)
			if code != c.code || !strings.Contains(strings.Join(strings.Fields(out+errs), " "), c.says) {
				t.Errorf("exit %d, want %d with %q:\n%s%s", code, c.code, c.says, out, errs)
			}
		})
	}
	from := func(in string, args ...string) (int, string) {
		var out bytes.Buffer
		code := run(t.Context(), append(args, "--policy", ofDocuments), command.Terminal{In: strings.NewReader(in), Out: &out, Err: &out, Env: func(string) string { return "" }})
		return code, out.String()
	}
	code, out := from(stages(unsigned.ByDigest()), "verify", "--payload", "-")
	line := strings.Join(strings.Fields(strings.ReplaceAll(out, "\\", "")), " ") // a long path breaks the line
	if code != command.ExitDenied || !strings.Contains(line, "--payload -") {
		t.Errorf("from standard input: exit %d:\n%s", code, out)
	}
	if code, out := from(stages(signed.ByDigest()), "explain", "--payload", "-"); code != command.ExitAllowed || !strings.Contains(out, "/stages/0/from") {
		t.Errorf("explained: exit %d:\n%s", code, out)
	}
	if code, out := from(`{"stages":[]}`, "explain", "--payload", "-"); code != command.ExitAllowed || !strings.Contains(out, "none matches this document") {
		t.Errorf("explained: exit %d:\n%s", code, out)
	}
	if code, out := from("{}", "verify", "--payload", "-", "-f", "-"); code != command.ExitUsage || !strings.Contains(out, "read once") {
		t.Errorf("standard input for two: exit %d:\n%s", code, out)
	}
	if code, out := from("", "verify", "-f", h.file(t, "plan.json", stages(signed.Name))); code != command.ExitUsage || !strings.Contains(out, "--payload") {
		t.Errorf("a manifest without kind: exit %d:\n%s", code, out)
	}
	both := []string{"verify", "--payload", h.file(t, "good.json", stages(signed.ByDigest())), "--payload", h.file(t, "bad.json", stages(unsigned.ByDigest()))}
	if code, out := from("", both...); code != command.ExitDenied || !strings.Contains(out, "1 allowed, 1 denied") {
		t.Errorf("two of them: exit %d:\n%s", code, out)
	}
}
