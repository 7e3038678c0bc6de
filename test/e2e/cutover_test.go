package e2e

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	review "k8s.io/api/admission/v1"
	admission "k8s.io/api/admissionregistration/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/report/decisionlog"
	"github.com/quaymaster/quaymaster/test/e2e/env"
)

// engine is another engine beside the gateway: a pair of webhooks that refuses images
// with "bare" in their names, and notes which pods it was asked to judge.
type engine struct {
	mu      sync.Mutex
	judged  map[string]int
	refused map[string]bool
	// held has the mutation of a pod of the name "held" wait: it takes a channel that is
	// closed when it may go on.
	held chan chan struct{}
}

// beside installs it until the test ends, in namespaces with a label, but for those that
// are cut over. The API server has configurations mutate in the order of their names.
func (s *scene) beside(t *testing.T, name, label string) *engine {
	t.Helper()
	e := &engine{judged: map[string]int{}, refused: map[string]bool{}, held: make(chan chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /mutate", func(w http.ResponseWriter, r *http.Request) { e.answer(t, w, r, false) })
	mux.HandleFunc("POST /validate", func(w http.ResponseWriter, r *http.Request) { e.answer(t, w, r, true) })
	server := httptest.NewTLSServer(mux)
	t.Cleanup(server.Close)
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	at := func(path string) admission.WebhookClientConfig {
		url := server.URL + path
		return admission.WebhookClientConfig{URL: &url, CABundle: bundle}
	}
	selector := &meta.LabelSelector{
		MatchLabels:      map[string]string{label: "true"},
		MatchExpressions: []meta.LabelSelectorRequirement{{Key: "quaymaster.dev/mode", Operator: meta.LabelSelectorOpNotIn, Values: []string{"enforce"}}},
	}
	fail, none := admission.Fail, admission.SideEffectClassNone
	rules := []admission.RuleWithOperations{{Operations: []admission.OperationType{admission.Create}, Rule: admission.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}}
	named, registered := meta.ObjectMeta{Name: name}, s.client.AdmissionregistrationV1()
	_, err := registered.MutatingWebhookConfigurations().Create(t.Context(), &admission.MutatingWebhookConfiguration{ObjectMeta: named, Webhooks: []admission.MutatingWebhook{{
		Name: "mutate.another.example", ClientConfig: at("/mutate"), Rules: rules, FailurePolicy: &fail, NamespaceSelector: selector, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
	}}}, meta.CreateOptions{})
	must(t, err)
	_, err = registered.ValidatingWebhookConfigurations().Create(t.Context(), &admission.ValidatingWebhookConfiguration{ObjectMeta: named, Webhooks: []admission.ValidatingWebhook{{
		Name: "validate.another.example", ClientConfig: at("/validate"), Rules: rules, FailurePolicy: &fail, NamespaceSelector: selector, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
	}}}, meta.CreateOptions{})
	must(t, err)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = registered.MutatingWebhookConfigurations().Delete(ctx, named.Name, meta.DeleteOptions{})
		_ = registered.ValidatingWebhookConfigurations().Delete(ctx, named.Name, meta.DeleteOptions{})
	})
	return e
}

func (e *engine) answer(t *testing.T, w http.ResponseWriter, r *http.Request, judges bool) {
	var asked review.AdmissionReview
	var about core.Pod
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || json.Unmarshal(asked.Request.Object.Raw, &about) != nil {
		t.Errorf("the other engine cannot read a review: %v", err)
		return
	}
	if !judges && about.Name == "held" {
		<-<-e.held
	}
	answer := review.AdmissionReview{TypeMeta: asked.TypeMeta, Response: &review.AdmissionResponse{UID: asked.Request.UID, Allowed: true}}
	if judges {
		bare := strings.Contains(about.Spec.Containers[0].Image, "bare")
		e.mu.Lock()
		e.judged[about.Name]++
		e.refused[about.Name] = bare
		e.mu.Unlock()
		if bare {
			answer.Response.Allowed, answer.Response.Result = false, &meta.Status{Message: "the other engine refuses it"}
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// TestCutOver: while a namespace is cut over and back under load, by the one command of
// the manual, each pod is judged by exactly one engine, and no unsigned image comes in.
func TestCutOver(t *testing.T) {
	s, other, log := besides(t, "another-engine", "cut-over")
	kubectl := s.kubectl(t)
	signed, err := s.env.Signed("shop/web", "1.0")
	must(t, err)
	answered := s.flip(t, kubectl, signed.Name, s.env.Unsigned("shop/bare", "1.0").Name)
	ctx, cancel := context.WithTimeout(t.Context(), awaitTimeout)
	defer cancel()
	must(t, s.gateway.Stop(ctx))
	count(t, log, other, answered)
}

// TestCutOverInFlight: a pod that the other engine mutates, after the gateway's turn, when
// the label comes is refused where it is not pinned, and admitted when it is created again;
// one by digest is at once.
func TestCutOverInFlight(t *testing.T) {
	s, other, _ := besides(t, "yet-another-engine", "cut-over-flight")
	kubectl := s.kubectl(t)
	signed, err := s.env.Signed("shop/web", "1.0")
	must(t, err)
	bare := s.env.Unsigned("shop/bare", "1.0")
	for _, row := range []struct{ what, image, code string }{
		{"a tag", signed.Name, "missing-digest"},
		{"a tag and its digest", env.Pinned(signed), ""},
		{"an unsigned digest", bare.ByDigest(), "unsigned"},
	} {
		_, err := kubectl("label", "namespace", s.namespace, "quaymaster.dev/mode-")
		must(t, err)
		eventually(t, func(ctx context.Context) error { // the API server knows the other one, and the label
			if _, err := s.dryRun(ctx, pod("probe", bare.Name)); err == nil || !strings.Contains(err.Error(), "another.example") {
				return errors.Join(errAdmitted, err)
			}
			return nil
		})
		refused := make(chan error)
		go func() {
			_, err := s.dryRun(context.WithoutCancel(t.Context()), pod("held", row.image))
			refused <- err
		}()
		goOn := make(chan struct{})
		other.held <- goOn
		_, err = kubectl("label", "namespace", s.namespace, "quaymaster.dev/mode=enforce")
		must(t, err)
		s.awaitRefused(t, bare.Name, "[unsigned]")
		close(goOn)
		switch err := <-refused; {
		case row.code != "":
			denied(t, row.what, err, row.code)
		case err != nil:
			t.Errorf("%s: %v", row.what, err)
		}
	}
	s.awaitAdmitted(t, signed.Name)
}

// besides makes a scene of two engines, of which the gateway stands in the shadow.
func besides(t *testing.T, name, namespace string) (s *scene, other *engine, log string) {
	t.Helper()
	s = unguarded(t, namespace)
	_, err := s.kubectl(t)("label", "namespace", namespace, namespace+"=true", "--overwrite")
	must(t, err)
	log = s.shadowed(t, env.Policy{Name: namespace, Namespaces: []string{namespace}, FailurePolicy: "Fail"})
	other = s.beside(t, name, namespace)
	bare := s.env.Unsigned("probe/bare", "1.0")
	eventually(t, func(ctx context.Context) error { // the API server knows the other one
		if _, err := s.dryRun(ctx, pod("probe", bare.Name)); err == nil {
			return errAdmitted
		}
		return nil
	})
	return s, other, log
}

// answer is what became of a pod.
type answer struct {
	admitted bool
	// between: the other engine mutated it and the gateway judged it, for the label came in
	// between.
	between bool
}

// flip creates pods all the time while the label comes and goes, and returns the answers. As
// a controller does, it creates a pod again that fell between the engines.
func (s *scene) flip(t *testing.T, kubectl func(...string) (string, error), signed, bare string) map[string]answer {
	t.Helper()
	const workers, flips, between = 4, 12, 40
	var mu sync.Mutex
	answered, total := map[string]answer{}, atomic.Int64{}
	create := func(ctx context.Context, name, image string) answer {
		_, err := s.dryRun(ctx, pod(name, image))
		got := answer{admitted: err == nil, between: err != nil && image == signed && strings.Contains(err.Error(), "[missing-digest]")}
		mu.Lock()
		defer mu.Unlock()
		answered[name] = got
		return got
	}
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				image, name := signed, fmt.Sprintf("signed-%d-%d", worker, n)
				if n%2 == 1 {
					image, name = bare, fmt.Sprintf("bare-%d-%d", worker, n)
				}
				got := create(context.WithoutCancel(ctx), name, image)
				if got.admitted && image == bare {
					t.Errorf("%s was admitted", name)
				}
				if got.between && !create(context.WithoutCancel(ctx), name+"-again", image).admitted {
					t.Errorf("%s fell between the engines, and again", name)
				}
				total.Add(1)
			}
		})
	}
	for n := range flips {
		word := "quaymaster.dev/mode=enforce"
		if n%2 == 1 {
			word = "quaymaster.dev/mode-"
		}
		_, err := kubectl("label", "namespace", s.namespace, word)
		must(t, err)
		before := total.Load()
		eventually(t, func(context.Context) error {
			if now := total.Load(); now < before+between {
				return fmt.Errorf("%d of %d pods since the label changed", now-before, between)
			}
			return nil
		})
	}
	stop()
	group.Wait()
	fell := 0
	for _, a := range answered {
		if a.between {
			fell++
		}
	}
	if fell > workers*flips/2 { // those in flight when the label comes
		t.Errorf("%d pods fell between the engines", fell)
	}
	t.Logf("%d pods fell between the engines", fell)
	return answered
}

// count holds that each pod was judged once: by the other engine, or by the gateway
// where it enforces.
func count(t *testing.T, log string, other *engine, answered map[string]answer) {
	t.Helper()
	ours, shadowed := map[string]bool{}, map[string]bool{}
	for line, err := range decisionlog.Read(log, 1) {
		must(t, err)
		switch d := line.Decision; {
		case d == nil:
		case d.Shadow:
			shadowed[d.Object.Name] = true
		case d.Endpoint == "validate", !d.Allowed:
			ours[d.Object.Name] = true
		}
	}
	byOurs, byOther := 0, 0
	for name, got := range answered {
		judges := other.judged[name]
		byOther += judges
		if ours[name] {
			judges, byOurs = judges+1, byOurs+1
		}
		if judges != 1 {
			t.Errorf("%s was judged by %d engines: by the gateway %v, by the other one %d", name, judges, ours[name], other.judged[name])
		}
		if !got.admitted && !got.between && strings.HasPrefix(name, "signed") {
			t.Errorf("%s was refused", name)
		}
	}
	if byOurs < 100 || byOther < 100 || len(shadowed) == 0 {
		t.Errorf("of %d pods the gateway judged %d and the other engine %d; %d were shadowed", len(answered), byOurs, byOther, len(shadowed))
	}
	t.Logf("%d pods: %d judged by the gateway, %d by the other engine, none by both or neither; %d shadowed", len(answered), byOurs, byOther, len(shadowed))
}
