package health_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	admission "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	authorization "k8s.io/api/authorization/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/health"
	"github.com/quaymaster/quaymaster/webhook/configuration"
	"github.com/quaymaster/quaymaster/webhook/configuration/reconcile"
)

// The paths of the API server that are read.
const (
	settingsPath    = "/api/v1/namespaces/quaymaster/configmaps/quaymaster"
	deploymentsPath = "/apis/apps/v1/namespaces/quaymaster/deployments"
	podsPath        = "/api/v1/namespaces/quaymaster/pods"
	leasesPath      = "/apis/coordination.k8s.io/v1/namespaces/quaymaster/leases"
	mutatingPath    = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/quaymaster"
	validatingPath  = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/quaymaster"
	reviewsPath     = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
)

// now is the time of the API server in these tests.
func now() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }

// apiServer is an API server with fixed objects.
type apiServer struct {
	objects map[string]any    // by path; none: 404
	texts   map[string]string // responses of pods by path; a text that begins with 503 has that status
	refused map[string]bool   // paths that are forbidden
	lacks   string            // "verb resource" that no review allows
	date    time.Time

	mu      sync.Mutex
	reviews int
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Date", s.date.Format(http.TimeFormat))
	path := r.URL.Path
	text, isText := s.texts[path]
	object, found := s.objects[path]
	switch {
	case s.refused[path]:
		respond(w, http.StatusForbidden, apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "", nil).Status())
	case path == "/version":
		respond(w, http.StatusOK, map[string]string{"gitVersion": "v1.37.0"})
	case path == reviewsPath:
		s.review(w, r)
	case isText:
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if rest, ok := strings.CutPrefix(text, "503 "); ok {
			w.WriteHeader(http.StatusServiceUnavailable)
			text = rest
		}
		_, _ = io.WriteString(w, text)
	case found:
		respond(w, http.StatusOK, object)
	default:
		respond(w, http.StatusNotFound, apierrors.NewNotFound(schema.GroupResource{Resource: "x"}, path).Status())
	}
}

func respond(w http.ResponseWriter, status int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(object)
}

func (s *apiServer) review(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	review := &authorization.SubjectAccessReview{}
	if err == nil {
		_, _, err = scheme.Codecs.UniversalDeserializer().Decode(body, nil, review)
	}
	if err != nil {
		respond(w, http.StatusBadRequest, apierrors.NewBadRequest(err.Error()).Status())
		return
	}
	s.mu.Lock()
	s.reviews++
	s.mu.Unlock()
	of := review.Spec.ResourceAttributes
	review.Status.Allowed = of.Verb+" "+of.Resource != s.lacks
	respond(w, http.StatusCreated, review)
}

// shelf stores one webhook configuration.
type shelf[T any] struct{ object *T }

func (s *shelf[T]) Get(context.Context, string, metav1.GetOptions) (*T, error) {
	if s.object == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, configuration.Name)
	}
	return s.object, nil
}

func (s *shelf[T]) Create(_ context.Context, object *T, _ metav1.CreateOptions) (*T, error) {
	s.object = object
	return object, nil
}

func (s *shelf[T]) Update(_ context.Context, object *T, _ metav1.UpdateOptions) (*T, error) {
	s.object = object
	return object, nil
}

// source is the input of webhook configurations.
type source struct{ in configuration.Input }

func (s source) Input(context.Context) (configuration.Input, error) { return s.in, nil }

// webhooksOf are configurations as a gateway writes them, with an authority until a time.
func webhooksOf(t *testing.T, until time.Time) (*admission.MutatingWebhookConfiguration, *admission.ValidatingWebhookConfiguration) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ok(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: until, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	ok(t, err)
	var mutating shelf[admission.MutatingWebhookConfiguration]
	var validating shelf[admission.ValidatingWebhookConfiguration]
	r, err := reconcile.New(reconcile.Options{Mutating: &mutating, Validating: &validating, Source: source{configuration.Input{
		Resources: []configuration.Resource{{Version: "v1", Name: "pods", Kind: "Pod", Namespaced: true}}, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Endpoint: configuration.Endpoint{Namespace: "quaymaster", Service: "quaymaster"}, Namespace: "quaymaster",
		Documents: []schema.GroupResource{{Group: "kyverno.io", Resource: "clusterpolicies"}}, Mirrors: configuration.MirrorsClosed,
	}}})
	ok(t, err)
	ok(t, r.Reconcile(t.Context()))
	return mutating.object, validating.object
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// leaseOf is a Lease that its holder renewed, and the API server stored at a time.
func leaseOf(name, holder string, renewed, stored time.Time, labels map[string]string) coordination.Lease {
	duration, at, then := int32(12), metav1.NewMicroTime(renewed), metav1.NewTime(stored)
	return coordination.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "quaymaster", Time: &then}}},
		Spec:       coordination.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &duration, RenewTime: &at},
	}
}

func podOf(name string, ready bool) core.Pod {
	status := core.ConditionFalse
	if ready {
		status = core.ConditionTrue
	}
	return core.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "quaymaster"},
		Spec:       core.PodSpec{Containers: []core.Container{{Name: "gateway", Ports: []core.ContainerPort{{Name: "plain", ContainerPort: 8123}}}}},
		Status:     core.PodStatus{Phase: core.PodRunning, PodIP: "10.0.0.1", Conditions: []core.PodCondition{{Type: core.PodReady, Status: status}}},
	}
}

func proxyPath(pod, path string) string {
	return podsPath + "/http:" + pod + ":8123/proxy/" + path
}

// replicaMetrics are those of a healthy replica.
func replicaMetrics(leads bool) string {
	text := `quaymaster_build_info{go="go1.27",revision="a",version="v1.0.0"} 1
quaymaster_ready{roles="admission,scan,report,background"} 1
quaymaster_certificate_expiry_timestamp_seconds ` + fmt.Sprint(now().Add(60*24*time.Hour).Unix()) + `
quaymaster_trust_age_seconds 3600
quaymaster_registry_requests_total{host="registry.example",status="2xx"} 20
`
	if leads {
		text += "quaymaster_webhook_configurations_kept_timestamp_seconds " + fmt.Sprint(now().Add(-10*time.Second).Unix()) + "\n"
	}
	return text
}

// healthyServer is the API server of a gateway without a finding.
func healthyServer(t *testing.T) *apiServer {
	t.Helper()
	two := int32(2)
	mutating, validating := webhooksOf(t, now().Add(300*24*time.Hour))
	isReplica := map[string]string{"quaymaster.dev/component": "replica"}
	deployment := apps.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "quaymaster"}, Status: apps.DeploymentStatus{ReadyReplicas: 2},
		Spec: apps.DeploymentSpec{Replicas: &two, Template: core.PodTemplateSpec{Spec: core.PodSpec{ServiceAccountName: "quaymaster", Containers: []core.Container{{Name: "gateway", Args: []string{"serve"}}}}}},
	}
	return &apiServer{
		date: now(), refused: map[string]bool{},
		objects: map[string]any{
			settingsPath: core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "quaymaster", Namespace: "quaymaster"},
				Data: map[string]string{"gateway.yaml": "{apiVersion: quaymaster.dev/v1alpha1, kind: Configuration}"}},
			deploymentsPath: apps.DeploymentList{Items: []apps.Deployment{deployment}},
			podsPath:        core.PodList{Items: []core.Pod{podOf("a", true), podOf("b", true)}},
			leasesPath: coordination.LeaseList{Items: []coordination.Lease{
				leaseOf("quaymaster", "a", now().Add(-time.Second), now().Add(-time.Second), nil), leaseOf("quaymaster-replica-b", "b", now(), now(), isReplica),
				leaseOf("quaymaster-scan-leader", "", now().Add(-time.Hour), now().Add(-time.Hour), nil),
			}},
			mutatingPath: mutating, validatingPath: validating,
		},
		texts: map[string]string{proxyPath("a", "metrics"): replicaMetrics(true), proxyPath("b", "metrics"): replicaMetrics(false)},
	}
}

// readFrom reads the state by an API server.
func readFrom(t *testing.T, server http.Handler) (*health.State, error) {
	t.Helper()
	listener := httptest.NewServer(server)
	defer listener.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	ok(t, os.WriteFile(kubeconfig, []byte(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: "`+listener.URL+`"}}], users: [{name: u, user: {token: t}}]}`), 0o600))
	client, err := cluster.NewClient(cluster.ClientOptions{Kubeconfig: kubeconfig, Version: "test", QPS: 1000, Burst: 1000})
	ok(t, err)
	reader := health.Reader{Client: client, Namespace: "quaymaster", Now: now, Policies: func(context.Context) ([]health.Policy, error) {
		return []health.Policy{{Kind: "ClusterPolicy", Name: "signed", Ready: "True", Reason: "Active"}, {Kind: "ClusterPolicy", Name: "other", Ready: "True"}}, nil
	}}
	return reader.Read(t.Context())
}
