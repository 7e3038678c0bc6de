// Package pair measures the least cost of a pair of admission webhooks.
//
// It runs the program noop, which allows everything or answers with one patch, and has the
// API server ask it about the pods of one namespace, when they are mutated and when they are
// validated.
package pair

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"

	registration "k8s.io/api/admissionregistration/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/quaymaster/quaymaster/test/e2e/controlplane"
	"github.com/quaymaster/quaymaster/test/e2e/process"
	"github.com/quaymaster/quaymaster/test/peers"
)

// Options of a pair. All but Patch are required.
type Options struct {
	Plane *controlplane.ControlPlane
	// Folder holds the program, its certificate and its log.
	Folder string
	// Namespace of its pods; it must exist.
	Namespace string
	// Patch answers every mutation; empty: none is made.
	Patch string
}

// Pair is a pair of webhooks that runs.
type Pair struct {
	*process.Process
	url    string
	client *http.Client
}

// Start runs a pair. The API server calls it a moment later: use Asked. The caller calls Kill
// in the end.
func Start(ctx context.Context, o Options) (*Pair, error) {
	p, err := start(ctx, o)
	if err != nil {
		if p != nil {
			p.Kill()
		}
		return nil, fmt.Errorf("start the no-op pair for %s: %w", o.Namespace, err)
	}
	return p, nil
}

func start(ctx context.Context, o Options) (*Pair, error) {
	if o.Plane == nil || o.Folder == "" || o.Namespace == "" {
		return nil, errors.New("Plane, Folder and Namespace are required")
	}
	serving, err := o.Plane.Serving()
	if err != nil {
		return nil, err
	}
	certificate, key := filepath.Join(o.Folder, "noop.crt"), filepath.Join(o.Folder, "noop.key")
	for file, content := range map[string][]byte{certificate: serving.Certificate, key: serving.Key} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			return nil, err
		}
	}
	program, err := build(ctx, o.Folder)
	if err != nil {
		return nil, err
	}
	address, err := process.FreeAddress(ctx)
	if err != nil {
		return nil, err
	}
	arguments := []string{address, certificate, key}
	if o.Patch != "" {
		arguments = append(arguments, o.Patch)
	}
	p := &Pair{url: "https://" + address}
	p.client, err = rest.HTTPClientFor(o.Plane.Admin())
	if err != nil { // it trusts the same authority
		return nil, err
	}
	p.Process, err = process.Start(process.Options{Path: program, Folder: o.Folder, Args: arguments})
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(o.Plane.Admin())
	if err != nil {
		return p, err
	}
	return p, register(ctx, client, p.url, o.Namespace, o.Plane.Admin().CAData)
}

// Asked creates pods until the API server asks both halves about each: they do not take
// effect together.
func (p *Pair) Asked(ctx context.Context, create func(context.Context) error) error {
	return p.Await(ctx, func(ctx context.Context) error {
		before, err := p.count(ctx)
		if err != nil {
			return err
		}
		if err := create(ctx); err != nil {
			return err
		}
		if after, err := p.count(ctx); err != nil || after != before+2 {
			return fmt.Errorf("one pod made %d requests, want 2 (%w)", after-before, err)
		}
		return nil
	})
}

// count is how many requests it had.
func (p *Pair) count(ctx context.Context) (count int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/count", nil)
	if err != nil {
		return 0, err
	}
	response, err := p.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	_, err = fmt.Fscan(response.Body, &count)
	return count, err
}

func build(ctx context.Context, folder string) (string, error) {
	checkout, err := peers.Checkout()
	if err != nil {
		return "", err
	}
	program := filepath.Join(folder, "noop")
	command := exec.CommandContext(ctx, "go", "build", "-o", program, "./noop")
	command.Dir = filepath.Join(checkout, "test", "e2e")
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the no-op pair: %w\n%s", err, output)
	}
	return program, nil
}

// register registers the webhooks for the pods of one namespace.
func register(ctx context.Context, client *kubernetes.Clientset, url, namespace string, ca []byte) error {
	rules := []registration.RuleWithOperations{{
		Operations: []registration.OperationType{registration.Create, registration.Update},
		Rule:       registration.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
	}}
	selector := &meta.LabelSelector{MatchLabels: map[string]string{core.LabelMetadataName: namespace}}
	none, fail, again := registration.SideEffectClassNone, registration.Fail, registration.IfNeededReinvocationPolicy
	mutate, validate := url+"/mutate", url+"/validate"
	_, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(ctx, &registration.MutatingWebhookConfiguration{
		ObjectMeta: meta.ObjectMeta{Name: namespace},
		Webhooks: []registration.MutatingWebhook{{
			Name: "mutate.noop.example", ClientConfig: registration.WebhookClientConfig{URL: &mutate, CABundle: ca}, Rules: rules,
			NamespaceSelector: selector, SideEffects: &none, FailurePolicy: &fail, ReinvocationPolicy: &again, AdmissionReviewVersions: []string{"v1"},
		}},
	}, meta.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(ctx, &registration.ValidatingWebhookConfiguration{
		ObjectMeta: meta.ObjectMeta{Name: namespace},
		Webhooks: []registration.ValidatingWebhook{{
			Name: "validate.noop.example", ClientConfig: registration.WebhookClientConfig{URL: &validate, CABundle: ca}, Rules: rules,
			NamespaceSelector: selector, SideEffects: &none, FailurePolicy: &fail, AdmissionReviewVersions: []string{"v1"},
		}},
	}, meta.CreateOptions{})
	return err
}
