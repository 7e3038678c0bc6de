package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	certificates "k8s.io/api/certificates/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// namedKinds denies objects of kinds that keep a cluster running, by their names.
const namedKinds = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: named-kinds}
spec:
  background: false
  rules:
    - name: not-these
      match: {any: [{resources: {kinds: [CertificateSigningRequest, CustomResourceDefinition, Lease, Event], names: ["denied-*", "denieds.*"]}}]}
      validate: {failureAction: Enforce, message: not these, deny: {}}
`

// TestNamedKinds: kinds that keep a cluster running are asked about if a rule names them,
// and admitted while no replica runs.
func TestNamedKinds(t *testing.T) {
	s := guard(t, "named-kinds", gateway.Configuration{})
	s.put(t, namedKinds)
	dry := meta.CreateOptions{DryRun: []string{meta.DryRunAll}}
	eventually(t, func(ctx context.Context) error {
		if err := s.createLease(ctx, s.namespace, "denied-lease", dry); err == nil {
			return fmt.Errorf("the lease is admitted, while asked about are %s", s.asked(t))
		}
		return nil
	})
	kinds := map[string]func(ctx context.Context, name string, options meta.CreateOptions) error{
		"Lease": func(ctx context.Context, name string, o meta.CreateOptions) error {
			return s.createLease(ctx, s.namespace, name, o)
		},
		"Event":                     s.createEvent,
		"CertificateSigningRequest": s.createRequest,
		"CustomResourceDefinition":  s.createDefinition,
	}
	for kind, create := range kinds {
		if err := create(t.Context(), "denied-one", dry); err == nil || !strings.Contains(err.Error(), "not these") {
			t.Errorf("%s that the policy denies: %v", kind, err)
		}
		if err := create(t.Context(), "allowed-one", dry); err != nil {
			t.Errorf("%s that the policy does not select: %v", kind, err)
		}
	}
	if err := s.createLease(t.Context(), "kube-node-lease", "denied-node", meta.CreateOptions{}); err != nil {
		t.Errorf("the Lease of a node: %v", err)
	}

	s.gateway.Kill()
	for kind, create := range kinds {
		if err := create(t.Context(), "denied-down", dry); err != nil {
			t.Errorf("%s without a gateway: %v", kind, err)
		}
	}
	s.renewNode(t)
	s.elect(t)
	s.approve(t)
}

func (s *scene) createLease(ctx context.Context, namespace, name string, o meta.CreateOptions) error {
	_, err := s.client.CoordinationV1().Leases(namespace).Create(ctx, &coordination.Lease{ObjectMeta: meta.ObjectMeta{Name: name}}, o)
	return err
}

func (s *scene) createEvent(ctx context.Context, name string, o meta.CreateOptions) error {
	_, err := s.client.CoreV1().Events(s.namespace).Create(ctx, &core.Event{
		ObjectMeta: meta.ObjectMeta{Name: name}, InvolvedObject: core.ObjectReference{Namespace: s.namespace, Name: name},
	}, o)
	return err
}

// createRequest creates a certificate request with a key of its own.
func (s *scene) createRequest(ctx context.Context, name string, o meta.CreateOptions) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "ann"}}, key)
	if err != nil {
		return err
	}
	_, err = s.client.CertificatesV1().CertificateSigningRequests().Create(ctx, &certificates.CertificateSigningRequest{
		ObjectMeta: meta.ObjectMeta{Name: name},
		Spec: certificates.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificates.KubeAPIServerClientSignerName, Usages: []certificates.KeyUsage{certificates.UsageClientAuth},
		},
	}, o)
	return err
}

// createDefinition creates the definition of a kind with a name such as denied-one.
func (s *scene) createDefinition(ctx context.Context, name string, o meta.CreateOptions) error {
	client, err := dynamic.NewForConfig(s.plane.Admin())
	if err != nil {
		return err
	}
	plural := strings.Split(name, "-")[0] + "s"
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": plural + ".named.example"},
		"spec": map[string]any{
			"group": "named.example", "scope": "Namespaced", "names": map[string]any{"plural": plural, "kind": "Named"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}},
			}},
		},
	}}
	_, err = client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}).Create(ctx, definition, o)
	return err
}

// renewNode renews the Lease of a node.
func (s *scene) renewNode(t *testing.T) {
	leases := s.client.CoordinationV1().Leases("kube-node-lease")
	lease, err := leases.Get(t.Context(), "denied-node", meta.GetOptions{})
	must(t, err)
	now := meta.NowMicro()
	lease.Spec.RenewTime = &now
	if _, err := leases.Update(t.Context(), lease, meta.UpdateOptions{}); err != nil {
		t.Errorf("a node cannot renew its Lease: %v", err)
	}
	must(t, leases.Delete(t.Context(), "denied-node", meta.DeleteOptions{}))
}

// elect elects a leader by a Lease that the policy would deny.
func (s *scene) elect(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), awaitTimeout)
	defer cancel()
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: meta.ObjectMeta{Namespace: s.namespace, Name: "denied-leader"}, Client: s.client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: "one"},
		},
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { cancel() }, OnStoppedLeading: func() {}},
	})
	must(t, err)
	elector.Run(ctx)
	if !errors.Is(ctx.Err(), context.Canceled) {
		t.Error("no leader is elected without a gateway")
	}
}

// approve approves a certificate request.
func (s *scene) approve(t *testing.T) {
	const name = "denied-request"
	must(t, s.createRequest(t.Context(), name, meta.CreateOptions{}))
	requests := s.client.CertificatesV1().CertificateSigningRequests()
	request, err := requests.Get(t.Context(), name, meta.GetOptions{})
	must(t, err)
	request.Status.Conditions = append(request.Status.Conditions, certificates.CertificateSigningRequestCondition{
		Type: certificates.CertificateApproved, Status: core.ConditionTrue, Reason: "Test",
	})
	if _, err := requests.UpdateApproval(t.Context(), name, request, meta.UpdateOptions{}); err != nil {
		t.Errorf("a certificate request cannot be approved: %v", err)
	}
	must(t, requests.Delete(t.Context(), name, meta.DeleteOptions{}))
}
