package e2e

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	admission "k8s.io/api/admission/v1"
	registration "k8s.io/api/admissionregistration/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/test/docs"
	"github.com/quaymaster/quaymaster/test/e2e/controlplane"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
	"github.com/quaymaster/quaymaster/test/peers"
)

// comparison has the fields of a Comparison that tests read.
type comparison struct {
	Summary struct {
		Agree      int `json:"agree"`
		Newly      int `json:"newlyDenied"`
		Unreadable int `json:"unreadable"`
	} `json:"summary"`
	Saved struct {
		Milliseconds *float64 `json:"milliseconds"`
		By           string   `json:"by"`
	} `json:"saved"`
	Differences []struct {
		Class, Namespace, Name, MatchedBy string
		Theirs, Ours                      *struct{ Word, Code, Message, Where string }
	} `json:"differences"`
}

// comparedScene is a scene with an API server that keeps an audit log, a gateway that admits
// everything and records it, and another engine beside it.
type comparedScene struct {
	*scene
	folder string // in which the command is called
	binary string
}

// auditPolicy records the requests about pods.
const auditPolicy = `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [{"level": "RequestResponse", "resources": [{"group": "", "resources": ["pods"]}]}, {"level": "None"}]}`

func beside(t *testing.T) *comparedScene {
	t.Helper()
	if testing.Short() {
		t.Skip("builds and runs a Kubernetes API server")
	}
	folder := t.TempDir()
	policy, log := filepath.Join(folder, "audit.json"), filepath.Join(folder, "audit.log")
	must(t, os.WriteFile(policy, []byte(auditPolicy), 0o600))
	own, err := controlplane.Start(t.Context(), controlplane.Options{
		Folder: t.TempDir(), Flags: []string{"--audit-policy-file=" + policy, "--audit-log-path=" + log, "--audit-log-mode=blocking"},
	})
	must(t, err)
	t.Cleanup(own.Close)
	c := &comparedScene{folder: folder, scene: &scene{plane: own, env: openEnv(t, registrytest.Options{}), namespace: "compare"}}
	must(t, own.Namespace(t.Context(), "compare"), own.Namespace(t.Context(), "quiet"))
	c.client = clientset(t, own.Admin())
	c.identity, err = own.Install(t.Context())
	must(t, err, controlplane.WriteKubeconfig(filepath.Join(folder, "kubeconfig"), own.Admin()))
	define(t, own)
	c.binary, err = shared.binary()
	must(t, err)
	var configuration gateway.Configuration
	configuration.DecisionLog.Folder, configuration.DecisionLog.Fsync = filepath.Join(folder, "decisions"), "always"
	configuration.Mode = "shadow"
	configuration.Scan.Disabled = true
	configuration.Reports.APIs = &[]string{}
	c.gateway = c.start(t, configuration)
	must(t, c.gateway.Ready(t.Context()))
	text, err := c.env.YAML(env.Policy{Name: "compare", Namespaces: []string{"compare", "quiet"}, Rule: map[string]any{"mutateDigest": false, "verifyDigest": false}})
	must(t, err)
	c.effect(t, func(ctx context.Context) error { return c.plane.ApplyYAML(ctx, text) })
	probe, err := c.env.Signed("probe", "1.0")
	must(t, err)
	eventually(t, func(ctx context.Context) error {
		if _, err := c.dryRun(ctx, pod("probe", probe.Name)); err != nil {
			return err
		}
		lines, err := c.gateway.Lines()
		if err == nil && !slices.ContainsFunc(lines, func(line map[string]any) bool { return line["msg"] == "verdict" && line["name"] == "probe" }) {
			err = errNotYet
		}
		return err
	})
	c.other(t)
	return c
}

// other is a webhook in place of Kyverno, which denies the pods that are called strict.
func (c *comparedScene) other(t *testing.T) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admission.AdmissionReview
		body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		if err != nil || json.Unmarshal(body, &review) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		review.Response = &admission.AdmissionResponse{UID: review.Request.UID, Allowed: review.Request.Name != "strict"}
		if !review.Response.Allowed {
			review.Response.Result = &meta.Status{Code: http.StatusBadRequest, Message: "\n\nresource Pod/compare/strict was blocked due to the following policies \n\ncompare:\n  signed: 'failed to verify image: .attestors[0].entries[0].keys: no matching signatures'\n"}
		}
		review.Request = nil
		_ = json.NewEncoder(w).Encode(review) // a failed write is an error of the client
	}))
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	none, fail := registration.SideEffectClassNone, registration.Fail
	_, err := c.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), &registration.ValidatingWebhookConfiguration{
		ObjectMeta: meta.ObjectMeta{Name: "kyverno-resource-validating-webhook-cfg"},
		Webhooks: []registration.ValidatingWebhook{{
			Name: "validate.kyverno.svc-fail", ClientConfig: registration.WebhookClientConfig{URL: &server.URL, CABundle: authority},
			SideEffects: &none, FailurePolicy: &fail, AdmissionReviewVersions: []string{"v1"},
			NamespaceSelector: &meta.LabelSelector{MatchLabels: map[string]string{core.LabelMetadataName: "compare"}},
			Rules: []registration.RuleWithOperations{{
				Operations: []registration.OperationType{registration.Create},
				Rule:       registration.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
		}},
	}, meta.CreateOptions{})
	must(t, err)
	eventually(t, func(ctx context.Context) error {
		if _, err := c.dryRun(ctx, pod("strict", "registry.example/none:1")); !apierrors.IsBadRequest(err) {
			return fmt.Errorf("the other engine denies nothing yet: %w", err)
		}
		return nil
	})
}

// reported has Kyverno say something of a pod in a report, as it writes them.
func (c *comparedScene) reported(t *testing.T, of *core.Pod, result, message string) {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"apiVersion": "wgpolicyk8s.io/v1alpha2", "kind": "PolicyReport",
		"metadata": map[string]any{
			"name": string(of.UID), "namespace": of.Namespace, "labels": map[string]any{"app.kubernetes.io/managed-by": "kyverno"},
			"ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "Pod", "name": of.Name, "uid": of.UID}},
		},
		"scope": map[string]any{"apiVersion": "v1", "kind": "Pod", "namespace": of.Namespace, "name": of.Name, "uid": of.UID},
		"results": []any{map[string]any{
			"source": "kyverno", "policy": "compare", "rule": "signed", "result": result, "message": message, "scored": true,
			"timestamp": map[string]any{"seconds": time.Now().Unix(), "nanos": 0}, "properties": map[string]any{"process": "background scan"},
		}},
		"summary": map[string]any{"pass": 0, "fail": 0, "warn": 0, "error": 0, "skip": 0},
	})
	must(t, err, c.plane.ApplyYAML(t.Context(), string(text)))
}

// run calls the command, and returns its exit status and the comparison.
func (c *comparedScene) run(t *testing.T, args ...string) (int, comparison) {
	t.Helper()
	file := filepath.Join(c.folder, "out.json")
	command := exec.CommandContext(t.Context(), c.binary, append([]string{"scan", "--compare", "-o", "json=" + file}, args...)...)
	command.Dir, command.Env = c.folder, []string{"KUBECONFIG=" + filepath.Join(c.folder, "kubeconfig"), "HOME=" + c.folder}
	out, _ := command.CombinedOutput()
	text, err := os.ReadFile(file)
	must(t, err)
	var got comparison
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("%v\n%s%s", err, out, text)
	}
	return command.ProcessState.ExitCode(), got
}

// TestCompare: Kyverno's reports, events and denials in parallel with a gateway that recorded
// its decisions; each kind of difference is found, and where nothing differs nothing is.
func TestCompare(t *testing.T) {
	c := beside(t)
	signed, err := c.env.Signed("shop/web", "1.0")
	must(t, err)
	bare := c.env.Unsigned("shop/bare", "1.0")
	quiet := *c
	quiet.scene = c.in(t, "quiet")
	same, err := quiet.create(t, pod("same", signed.Name))
	must(t, err)
	c.reported(t, same, "pass", "verified image signatures for "+signed.Name)

	t.Run("nothing differs", func(t *testing.T) {
		code, got := c.run(t, "--decision-log", "decisions")
		if code != 0 || got.Summary.Agree == 0 || got.Summary.Newly != 0 {
			t.Errorf("status %d: %+v %+v", code, got.Summary, got.Differences)
		}
	})

	for name, row := range map[string]struct{ image, result, message string }{
		"wrong":  {bare.Name, "pass", "verified from cache"},
		"absent": {c.env.Registry.Host() + "/shop/absent:1.0", "pass", "verified from cache"},
		"denied": {signed.Name, "fail", "failed to verify image " + signed.Name + ": .attestors[0].entries[0].keys: no matching signatures"},
		"error":  {signed.Name, "error", "failed to fetch image descriptor: TOOMANYREQUESTS"},
		"alone":  {signed.Name, "", ""},
	} {
		made, err := c.create(t, pod(name, row.image))
		must(t, err)
		if row.result != "" {
			c.reported(t, made, row.result, row.message)
		}
	}
	ghost := pod("ghost", signed.Name)
	ghost.Namespace, ghost.UID = "compare", "ghost"
	c.reported(t, ghost, "fail", "unverified image "+signed.Name)
	if _, err := c.create(t, pod("strict", signed.Name)); !apierrors.IsBadRequest(err) {
		t.Fatalf("the other engine did not deny it: %v", err)
	}
	c.measured(t)

	t.Run("each way to differ", func(t *testing.T) {
		code, got := c.run(t, "--decision-log", "decisions", "--audit-log", "audit.log", "--metrics", "metrics.txt")
		if code != 1 {
			t.Errorf("status %d", code)
		}
		classes := map[string]string{}
		for _, d := range got.Differences {
			if d.Namespace == "compare" {
				classes[d.Name] += d.Class
			}
		}
		for name, want := range map[string]string{
			"wrong": "wrongly-admitted", "absent": "error", "denied": "denied-only-there", "error": "error-there",
			"ghost": "only-there", "strict": "denied-only-there", "alone": "",
		} {
			if classes[name] != want {
				t.Errorf("%s: %q, want %q", name, classes[name], want)
			}
		}
		if got.Saved.Milliseconds == nil || got.Saved.By != "the API server" || got.Summary.Unreadable != 0 {
			t.Errorf("%+v %+v", got.Saved, got.Summary)
		}
	})
	t.Run("the page", c.page)
}

// measured logs the API server's metrics.
func (c *comparedScene) measured(t *testing.T) {
	t.Helper()
	text, err := c.client.RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	must(t, err, os.WriteFile(filepath.Join(c.folder, "metrics.txt"), text, 0o600))
}

// page runs the commands of the page.
func (c *comparedScene) page(t *testing.T) {
	checkout, err := peers.Checkout()
	must(t, err)
	site, err := docs.Load(checkout)
	must(t, err)
	commands, err := site.Pages["docs/compare.md"].Commands()
	must(t, err)
	if len(commands) == 0 {
		t.Fatal("the page has no commands")
	}
	must(t, docs.Shell{
		Folder: c.folder,
		Env:    []string{"HOME=" + c.folder, "KUBECONFIG=" + filepath.Join(c.folder, "kubeconfig"), "PATH=" + programs(t) + ":" + os.Getenv("PATH"), "NO_COLOR=1", "NO_PROXY=127.0.0.1"},
	}.Run(t.Context(), "docs/compare.md", commands))
}
