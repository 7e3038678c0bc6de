package cluster

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/cluster/typed"
)

const (
	// kyvernoAge is the lifetime of the result: otherwise each write of a broken policy would
	// cost three lists.
	kyvernoAge = time.Minute
	// kyvernoTimeout bounds the lists; an admission request waits for them.
	kyvernoTimeout = 2 * time.Second
	// kyvernoConfigurations is the prefix of Kyverno's webhook configurations.
	kyvernoConfigurations = "kyverno-"
	// kyvernoDeployments selects Deployments of admission controllers; another label identifies
	// Kyverno's.
	kyvernoDeployments = "app.kubernetes.io/component=admission-controller"
)

// Kyverno detects whether Kyverno is installed: it has a webhook configuration or a Deployment.
// It is safe for concurrent use.
type Kyverno struct {
	client typed.Interface
	now    func() time.Time

	mu        sync.Mutex
	until     time.Time
	installed bool
}

// NewKyverno creates a Kyverno. It sends no request.
func NewKyverno(client typed.Interface, now func() time.Time) *Kyverno {
	return &Kyverno{client: client, now: now}
}

// Installed reports whether Kyverno is installed, as of at most a minute ago. If a list fails, it
// returns the previous result, which initially is false.
func (k *Kyverno) Installed(ctx context.Context) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.now().Before(k.until) {
		return k.installed
	}
	ctx, cancel := context.WithTimeout(ctx, kyvernoTimeout)
	defer cancel()
	if installed, err := k.look(ctx); err == nil || installed {
		k.installed, k.until = installed, k.now().Add(kyvernoAge)
	}
	return k.installed
}

// look returns true as soon as an object of Kyverno is found.
func (k *Kyverno) look(ctx context.Context) (bool, error) {
	admission := k.client.AdmissionregistrationV1()
	validating, err := admission.ValidatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	for i := range validating.Items {
		if strings.HasPrefix(validating.Items[i].Name, kyvernoConfigurations) {
			return true, nil
		}
	}
	mutating, err := admission.MutatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	for i := range mutating.Items {
		if strings.HasPrefix(mutating.Items[i].Name, kyvernoConfigurations) {
			return true, nil
		}
	}
	deployments, err := k.client.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: kyvernoDeployments})
	if err != nil {
		return false, err
	}
	for i := range deployments.Items {
		if slices.ContainsFunc(labelValues(deployments.Items[i].Labels), isKyverno) {
			return true, nil
		}
	}
	return false, nil
}

func isKyverno(value string) bool { return strings.Contains(value, "kyverno") }

func labelValues(labels map[string]string) []string {
	var values []string
	for _, value := range labels {
		values = append(values, value)
	}
	return values
}
