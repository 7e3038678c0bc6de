package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/scan"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/decisionlog"
	"github.com/quaymaster/quaymaster/report/inventory"
	"github.com/quaymaster/quaymaster/webhook/ui"
	"github.com/quaymaster/quaymaster/workload"
)

const scanPolicy = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: labels}
spec:
  validationFailureAction: Enforce
  rules:
  - name: labelled
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {message: every pod has a team, pattern: {metadata: {labels: {team: "?*"}}}}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: unwanted}
spec:
  background: false
  rules:
  - name: labelled
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {message: never asked, pattern: {metadata: {labels: {team: "?*"}}}}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: no-latest}
spec:
  rules:
  - name: tags
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {message: name a version, pattern: {spec: {containers: [{image: "!*:latest"}]}}}
`

const scanPods = `apiVersion: v1
kind: Pod
metadata: {name: a, labels: {team: x}}
spec: {containers: [{name: c, image: "nginx:latest"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: b-1, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: b, uid: u, controller: true}]}
spec: {containers: [{name: c, image: "nginx:1"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: b-2, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: b, uid: u, controller: true}]}
spec: {containers: [{name: c, image: "nginx:1"}]}
`

// TestScan: the output about objects in files, and the exit status.
func TestScan(t *testing.T) {
	folder := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	policies, pods := file("policies.yaml", scanPolicy), file("pods.yaml", scanPods)
	good := file("good.yaml", strings.Split(scanPods, "---")[0])
	unlabelled := file("selecting.yaml", strings.Replace(strings.Split(scanPolicy, "---")[0], "kinds: [Pod]", "kinds: [Pod], namespaceSelector: {matchLabels: {a: b}}", 1))
	for _, row := range []struct {
		reason string
		args   []string
		in     string
		code   int
		want   []string // in the output, or for wrong use on standard error
	}{
		{"denied objects, by their owner, and audited ones", []string{"-f", pods, "--policy", policies}, "", command.ExitDenied, []string{
			"denied  default ReplicaSet/b  2        labels/labelled", "audit   default Pod/a         1        no-latest/tags", "every pod has a team",
			"labels/labelled  1     2", "(audit)", "skipped policy ClusterPolicy/unwanted: spec.background is false", "3 objects of 1 kind in ", "now 2 would be denied, and 0 could not be verified",
		}},
		{"nothing would be", []string{"-f", good, "--policy", policies}, "", command.ExitAllowed, []string{"now 0 would be denied"}},
		{"standard input", []string{"-f", "-", "--policy", policies}, scanPods, command.ExitDenied, []string{"ReplicaSet/b"}},
		{"a failure under an indeterminate match could not be verified", []string{"-f", pods, "--policy", unlabelled}, "", command.ExitError, []string{"error", "2 could not be verified"}},
		{"and a pass is one in either reading", []string{"-f", good, "--policy", unlabelled}, "", command.ExitAllowed, []string{"0 could not be verified"}},
		{"JSON", []string{"-f", pods, "--policy", policies, "-o", "json"}, "", command.ExitDenied, []string{`"kind": "Scan"`, `"result": "deny"`, `"objects": 2`, `"policiesLeftOut"`, `"denied": 2`}},
		{"reports", []string{"-f", pods, "--policy", policies, "-o", "openreports"}, "", command.ExitDenied, []string{"openreports.io/v1alpha1", "background scan"}},
		{"findings at their lines", []string{"-f", pods, "--policy", policies, "-o", "sarif"}, "", command.ExitDenied, []string{`"version": "2.1.0"`, `"startLine"`, "every pod has a team"}},
		{"a test report", []string{"-f", pods, "--policy", policies, "-o", "junit"}, "", command.ExitDenied, []string{`<testsuites`, `failures="2"`}},
		{"a page", []string{"-f", pods, "--policy", policies, "-o", "markdown"}, "", command.ExitDenied, []string{"every pod has a team", "b-1"}},
		{"annotations beside text", []string{"-f", pods, "--policy", policies, "-o", "github", "-o", "text"}, "", command.ExitDenied, []string{"::error file=", "now 2 would be denied"}},
		{"no such format", []string{"-f", pods, "-o", "xml"}, "", command.ExitUsage, []string{"-o xml: want text, json, yaml, sarif, junit, markdown, github, policyreport or openreports"}},
		{"no summary of what runs already", []string{"-f", pods, "-o", "vsa"}, "", command.ExitUsage, []string{"-o vsa: want"}},
		{"two in one file", []string{"-f", pods, "-o", "json=" + pods + ".out", "-o", "text=" + pods + ".out"}, "", command.ExitUsage, []string{"over one another"}},
		{"two on standard output", []string{"-f", pods, "-o", "json", "-o", "text"}, "", command.ExitUsage, []string{"mixed"}},
		{"files and a cluster", []string{"-f", pods, "--context", "x", "--policy", policies}, "", command.ExitUsage, []string{"in place of one"}},
		{"neither a policy nor a signer", []string{"-f", pods}, "", command.ExitUsage, []string{"no policy or signer given: set --policy, --key, "}},
		{"no such context", []string{"--kubeconfig", file("kubeconfig", "apiVersion: v1\nkind: Config\n"), "--context", "nosuch"}, "", command.ExitUsage, []string{"quaymaster: --context: "}},
		{"a namespace of a cluster", []string{"-n", "shop"}, "", command.ExitUsage, []string{"--namespace is for manifests (-f)", "--exclude-namespace PATTERN"}},
		{"no requests a second", []string{"-f", pods, "--policy", policies, "--qps", "0"}, "", command.ExitUsage, []string{"--qps 0 must be positive"}},
		{"no image at a time", []string{"-f", pods, "--policy", policies, "--registry-requests", "0"}, "", command.ExitUsage, []string{"--registry-requests 0 must be positive"}},
		{"nothing to scan", []string{"--kubeconfig", filepath.Join(folder, "none")}, "", command.ExitUsage, []string{"--kubeconfig"}},
		{"a signer and no source", []string{"--signer", "x"}, "", command.ExitUsage, []string{"--gateway URL", "kubectl -n quaymaster port-forward", "--decision-log FOLDER"}},
		{"two to ask", []string{"--signer", "x", "--gateway", "http://127.0.0.1:1", "--decision-log", folder}, "", command.ExitUsage, []string{"want one of --gateway URL"}},
		{"reports and a log", []string{"--signer", "x", "--reports", "--decision-log", folder}, "", command.ExitUsage, []string{"want one of"}},
		{"reports and no signer", []string{"-f", pods, "--policy", policies, "--reports"}, "", command.ExitUsage, []string{"for --signer"}},
		{"a page of what stands on it", []string{"--signer", "x", "--decision-log", folder, "-o", "markdown"}, "", command.ExitUsage, []string{"want text or json"}},
		{"a folder without a log", []string{"--signer", "x", "--decision-log", folder}, "", command.ExitError, []string{"there is no decision log in it"}},
		{"a log and no signer", []string{"-f", pods, "--policy", policies, "--decision-log", folder}, "", command.ExitUsage, []string{"for --signer"}},
		{"a gateway and no signer", []string{"-f", pods, "--policy", policies, "--gateway", "http://localhost"}, "", command.ExitUsage, []string{"for --signer"}},
		{"a gateway that is away", []string{"--signer", "x", "--gateway", "http://127.0.0.1:1"}, "", command.ExitError, []string{"127.0.0.1:1"}},
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), append([]string{"scan"}, row.args...), command.Terminal{In: strings.NewReader(row.in), Out: &out, Err: &errs, Env: func(string) string { return "" }})
		said := out.String()
		if row.code == command.ExitUsage || out.Len() == 0 {
			said = errs.String()
		}
		if code != row.code {
			t.Errorf("%s: status %d, want %d\n%s%s", row.reason, code, row.code, out.String(), errs.String())
		}
		for _, want := range row.want {
			if !strings.Contains(said, want) {
				t.Errorf("%s: want %q in\n%s", row.reason, want, said)
			}
		}
	}
}

// TestScanFiles: what a scan that came to nothing leaves does not look like that of one
// that found nothing.
func TestScanFiles(t *testing.T) {
	folder := t.TempDir()
	path := func(name string) string { return filepath.Join(folder, name) }
	for name, text := range map[string]string{"policies.yaml": scanPolicy, "pods.yaml": scanPods} {
		if err := os.WriteFile(path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var outputs []string
	formats := scan.Outputs()
	for _, format := range formats.Available() {
		outputs = append(outputs, "-o", format+"="+path("out."+format))
	}
	closed, cancel := context.WithCancel(t.Context())
	cancel()
	for _, row := range []struct {
		reason string
		ctx    context.Context
		args   []string
		code   int
		want   map[string]string
	}{
		{"a round", t.Context(), []string{"-f", path("pods.yaml")}, command.ExitDenied, map[string]string{
			"text": "would be denied", "json": `"kind": "Scan"`, "sarif": `"ruleId"`, "junit": "<failure", "markdown": "denied", "github": "::error",
			"policyreport": "result: fail", "openreports": "result: fail",
		}},
		{"interrupted", closed, []string{"-f", path("pods.yaml")}, command.ExitError, map[string]string{
			"text": "nothing was decided: the run was interrupted", "json": `"error": "the run was interrupted"`, "sarif": `"executionSuccessful": false`,
			"junit": `errors="1"`, "markdown": "nothing was decided", "github": "::error ", "policyreport": "", "openreports": "",
		}},
		{"a file that is not there", t.Context(), []string{"-f", path("none.yaml")}, command.ExitUsage, map[string]string{"text": "none.yaml", "json": `"error": "`, "policyreport": ""}},
		{"a log that is not there", t.Context(), []string{"--signer", "x", "--decision-log", path("none")}, command.ExitError, nil},
	} {
		args, of := append([]string{"scan"}, row.args...), outputs
		if row.want == nil {
			of = []string{"-o", "json=" + path("out.json")}
			row.want = map[string]string{"json": `"error": "--decision-log: `}
		} else if row.args[0] == "-f" {
			args = append(args, "--policy", path("policies.yaml"))
		}
		var out, errs bytes.Buffer
		code := run(row.ctx, append(args, of...), command.Terminal{In: strings.NewReader(""), Out: &out, Err: &errs, Env: func(string) string { return "" }})
		if code != row.code || out.Len() > 0 {
			t.Errorf("%s: status %d, want %d\n%s%s", row.reason, code, row.code, out.String(), errs.String())
		}
		for format, want := range row.want {
			text, err := os.ReadFile(path("out." + format))
			if err != nil || !strings.Contains(string(text), want) || want == "" && len(text) > 0 {
				t.Errorf("%s as %s: %v, want %q in\n%s", row.reason, format, err, want, text)
			}
		}
	}
}

// TestScanSigner: what runs on the strength of a key, as a real inventory behind its real
// handler remembers it, and nothing of another.
func TestScanSigner(t *testing.T) {
	h, err := gatetest.NewEnv()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	signed, err := h.Signed("app")
	if err != nil {
		t.Fatal(err)
	}
	rule, err := h.Policy(`{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: signed}, spec: {rules: [{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, verifyImages: [{imageReferences: ["HOST/*"], attestors: [{entries: [{keys: {publicKeys: KEY, rekor: {ignoreTlog: true}}}]}]}]}]}}`)
	if err != nil {
		t.Fatal(err)
	}
	decider, err := h.Gate(rule)
	if err != nil {
		t.Fatal(err)
	}
	known, err := inventory.New(inventory.Options{Replica: "gateway-0"})
	if err != nil {
		t.Fatal(err)
	}
	object, err := workload.Parse([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-1","namespace":"shop","uid":"1","ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"2","controller":true}]},"spec":{"containers":[{"name":"c","image":"` + signed.Name + `"}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go known.Run(ctx)
	decided := report.Decided{Outcome: decider.Decide(ctx, gate.Request{Object: object}), Occasion: report.Occasion{Time: time.Now(), Process: report.ProcessScan, Allowed: true}}
	known.Take(decided)
	handler, err := ui.New(ui.Config{Inventory: known}, ui.WithoutTokens())
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	for deadline := time.Now().Add(10 * time.Second); known.About().Scanned.IsZero() && time.Now().Before(deadline); {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		<-ctx.Done()
		cancel()
	}
	key := filepath.Join(t.TempDir(), "cosign.pub")
	if err := os.WriteFile(key, h.Signer.PublicPEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(h.Signer.PublicPEM())
	sum := sha256.Sum256(block.Bytes)
	folder := logOf(t, decided)
	const stands, nothing = "at least 1 image, 1 workload and 1 pod depend on ", "0 images"
	for _, row := range []struct{ reason, signer, want string }{
		{"a key's file", key, stands},
		{"its fingerprint", hex.EncodeToString(sum[:]), stands},
		{"another key", strings.Repeat("ab", 32), nothing},
		{"the image's digest", signed.Manifest.Digest, stands},
		{"another digest", "sha256:" + strings.Repeat("0", 64), nothing},
		{"the policy", "policy:ClusterPolicy/signed", stands},
		{"another policy", "policy:ClusterPolicy/other", nothing},
		{"an identity that signed nothing", "release@example.com", nothing},
	} {
		for _, source := range [][]string{{"--gateway", server.URL}, {"--decision-log", folder}} {
			code, out, errs := quaymaster(t, append([]string{"scan", "--signer", row.signer}, source...)...)
			if code != command.ExitAllowed || !strings.Contains(out, row.want) || (row.want == stands) != strings.Contains(out, "shop ReplicaSet/web") {
				t.Errorf("%s, %s: %d\n%s%s", row.reason, source[0], code, out, errs)
			}
		}
	}
}

// logOf is a decision log with one decision.
func logOf(t *testing.T, d report.Decided) (folder string) {
	t.Helper()
	chain, err := decisionlog.NewChain("gateway-0", decisionlog.Position{})
	if err != nil {
		t.Fatal(err)
	}
	var text []byte
	for _, line := range decisionlog.Decisions(d) {
		text, err = chain.Append(text, &decisionlog.Entry{Kind: decisionlog.KindDecision, Time: d.Occasion.Time, Decision: &line})
		if err != nil {
			t.Fatal(err)
		}
	}
	folder = t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, decisionlog.SegmentName(1)), text, 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

// TestScanDeletions lists the objects that the next run of a policy would delete, and denies nothing.
func TestScanDeletions(t *testing.T) {
	folder := t.TempDir()
	path := func(name string) string { return filepath.Join(folder, name) }
	for name, text := range map[string]string{
		"pods.yaml": scanPods,
		"cleanup.yaml": "apiVersion: kyverno.io/v2\nkind: ClusterCleanupPolicy\nmetadata: {name: old}\nspec:\n  schedule: 0 3 * * *\n" +
			"  match: {any: [{resources: {kinds: [Pod], names: ['b-*']}}]}\n",
		"unsure.yaml": "apiVersion: kyverno.io/v2\nkind: ClusterCleanupPolicy\nmetadata: {name: old}\nspec:\n  schedule: 0 3 * * *\n" +
			"  match: {any: [{resources: {kinds: [Pod]}}]}\n  conditions: {all: [{key: '{{ target.metadata.labels.team }}', operator: Equals, value: x}]}\n",
		"never.yaml": "apiVersion: kyverno.io/v2\nkind: ClusterCleanupPolicy\nmetadata: {name: old}\nspec:\n  schedule: never\n  match: {any: [{resources: {kinds: [Pod]}}]}\n",
	} {
		if err := os.WriteFile(path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		policy, format string
		code           int
		want           string
	}{
		{"cleanup.yaml", "text", 0, "would delete 2\n  delete  Pod/default/b-1\n  delete  Pod/default/b-2\nprotected: the namespaces kube-node-lease, "},
		{"cleanup.yaml", "json", 0, `"policy": "ClusterCleanupPolicy/old"`},
		{"unsure.yaml", "text", command.ExitError, "would delete 1, 2 could not be evaluated\n  delete  Pod/default/a\n  keep    Pod/default/b-1: could not be evaluated, and is kept: "},
		{"never.yaml", "text", command.ExitUsage, ""},
	} {
		code, out, errs := quaymaster(t, "scan", "--policy", path(c.policy), "-f", path("pods.yaml"), "-o", c.format)
		if code != c.code || !strings.Contains(out, c.want) {
			t.Errorf("%s as %s: status %d, want %d and %q\n%s%s", c.policy, c.format, code, c.code, c.want, out, errs)
		}
	}
}

// TestScanEveryKind: a file's objects of another version, and of another kind of a group, are scanned.
func TestScanEveryKind(t *testing.T) {
	folder := t.TempDir()
	path := func(name string) string { return filepath.Join(folder, name) }
	scaler := func(version, name, most string) string {
		return "apiVersion: autoscaling/" + version + "\nkind: HorizontalPodAutoscaler\nmetadata: {name: " + name + ", namespace: shop}\nspec: {maxReplicas: " + most + "}\n---\n"
	}
	custom := func(kind, size string) string {
		return "apiVersion: example.com/v1\nkind: " + kind + "\nmetadata: {name: a, namespace: shop}\nspec: {maxReplicas: " + size + "}\n---\n"
	}
	about := func(kinds string) string {
		return "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: small}, spec: {rules: [{name: small, match: {any: [{resources: {kinds: [" + kinds +
			"]}}]}, validate: {failureAction: Enforce, message: too many, pattern: {spec: {maxReplicas: '<10'}}}}]}}"
	}
	for _, c := range []struct {
		reason, kinds, objects string
		code                   int
	}{
		{"two versions, the second one too large", "HorizontalPodAutoscaler", scaler("v2", "a", "5") + scaler("v1", "b", "100"), 1},
		{"two versions, both small", "HorizontalPodAutoscaler", scaler("v2", "a", "5") + scaler("v1", "b", "5"), 0},
		{"a version that the policy does not name", "autoscaling/v2/HorizontalPodAutoscaler", scaler("v1", "a", "100"), 3},
		{"the version that it names", "autoscaling/v2/HorizontalPodAutoscaler", scaler("v2", "a", "5"), 0},
		{"two custom kinds, the second one too large", "'example.com/*/*'", custom("Apple", "5") + custom("Pear", "100"), 1},
		{"two custom kinds, both small", "'example.com/*/*'", custom("Apple", "5") + custom("Pear", "5"), 0},
	} {
		for name, text := range map[string]string{"policy.yaml": about(c.kinds), "objects.yaml": c.objects} {
			if err := os.WriteFile(path(name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if code, out, errs := quaymaster(t, "scan", "--policy", path("policy.yaml"), "-f", path("objects.yaml")); code != c.code {
			t.Errorf("%s: status %d, want %d\n%s%s", c.reason, code, c.code, out, errs)
		}
	}
}

// TestDefinitions: whether a policy about a custom resource is about an object is known from the
// definition alone, where the resource is not the regular plural of the kind.
func TestDefinitions(t *testing.T) {
	folder := t.TempDir()
	path := func(name string) string { return filepath.Join(folder, name) }
	for _, name := range []string{"data.yaml", "definition.yaml", "open.yaml", "closed.yaml"} {
		if err := os.WriteFile(path(name), []byte(applyFiles[name]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, command := range []string{"scan", "verify"} {
		for _, row := range []struct {
			reason string
			args   []string
			code   int
		}{
			{"without a definition", []string{"-f", path("open.yaml")}, 3},
			{"with it, an object that it denies", []string{"-f", path("open.yaml"), "--resource", path("definition.yaml")}, 1},
			{"with it, an object that it admits", []string{"-f", path("closed.yaml"), "--resource", path("definition.yaml")}, 0},
			{"with it among the objects", []string{"-f", path("open.yaml"), "-f", path("definition.yaml")}, 1},
		} {
			code, out, errs := quaymaster(t, append([]string{command, "--policy", path("data.yaml")}, row.args...)...)
			if code != row.code {
				t.Errorf("%s, %s: status %d, want %d\n%s%s", command, row.reason, code, row.code, out, errs)
			}
			if strings.Contains(errs, "is not used for look-ups") {
				t.Errorf("%s, %s: %s", command, row.reason, errs)
			}
		}
	}
}
