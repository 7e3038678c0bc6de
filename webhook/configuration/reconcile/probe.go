package reconcile

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/cluster/probe"
	"github.com/quaymaster/quaymaster/webhook/configuration"
)

const (
	probeName = "probe.quaymaster.dev"
	// probeSeconds bounds one call. The endpoint evaluates nothing.
	probeSeconds = 3
	// hashLength and saltLength are in hexadecimal digits.
	hashLength, saltLength = 32, 16
)

// addProbes adds to each configuration the webhook by which an API server shows that it has loaded
// the whole configuration. Its path ends with a mark: the hash of all webhooks of the
// configuration, and a salt that is new with each write. Without the salt, a configuration from
// which another client removed a webhook would have the same path as its replacement.
func addProbes(c *configuration.Configurations, in configuration.Input) error {
	mutating, err := markPath("mutating", c.Mutating.Webhooks)
	if err != nil {
		return err
	}
	validating, err := markPath("validating", c.Validating.Webhooks)
	if err != nil {
		return err
	}
	w := probeWebhook(in, validating)
	c.Validating.Webhooks = append(c.Validating.Webhooks, w)
	never := admission.NeverReinvocationPolicy
	c.Mutating.Webhooks = append(c.Mutating.Webhooks, admission.MutatingWebhook{
		Name: w.Name, ClientConfig: in.Client(mutating), Rules: w.Rules, FailurePolicy: w.FailurePolicy, MatchPolicy: w.MatchPolicy,
		NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector, SideEffects: w.SideEffects, TimeoutSeconds: w.TimeoutSeconds,
		AdmissionReviewVersions: w.AdmissionReviewVersions, ReinvocationPolicy: &never,
	})
	return nil
}

// probeWebhook returns the webhook for labelled ConfigMaps of the gateway's namespace, with a path. It
// fails open.
func probeWebhook(in configuration.Input, at string) admission.ValidatingWebhook {
	match, failure, effects := admission.Equivalent, admission.Ignore, admission.SideEffectClassNone
	wait, scope := int32(probeSeconds), admission.NamespacedScope
	return admission.ValidatingWebhook{
		Name: probeName, ClientConfig: in.Client(at),
		Rules: []admission.RuleWithOperations{{
			Operations: []admission.OperationType{admission.Create},
			Rule:       admission.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}, Scope: &scope},
		}},
		FailurePolicy: &failure, MatchPolicy: &match, SideEffects: &effects, TimeoutSeconds: &wait, AdmissionReviewVersions: []string{"v1"},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: in.Namespace}},
		ObjectSelector:    &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: probe.Label, Operator: metav1.LabelSelectorOpExists}}},
	}
}

// markPath returns the path of the probe of some webhooks, without a salt.
func markPath(which string, webhooks any) (string, error) {
	text, err := json.Marshal(webhooks)
	if err != nil {
		return "", fmt.Errorf("webhook configurations: the hash of the %s one: %w", which, err)
	}
	sum := sha256.Sum256(append([]byte(which+" "), text...))
	return configuration.ProbePath + "/" + hex.EncodeToString(sum[:])[:hashLength], nil
}

// newSalt returns a random salt that identifies one write of a configuration.
func newSalt() string {
	var random [saltLength / 2]byte
	_, _ = rand.Read(random[:]) // never fails, as crypto/rand documents
	return hex.EncodeToString(random[:])
}

// markOf returns the mark in the path of a probe webhook; empty if there is none.
func markOf(c admission.WebhookClientConfig) string {
	at := ""
	switch {
	case c.URL != nil:
		at = *c.URL
	case c.Service != nil && c.Service.Path != nil:
		at = *c.Service.Path
	}
	if mark := path.Base(at); strings.HasSuffix(at, configuration.ProbePath+"/"+mark) {
		return mark
	}
	return ""
}

// marked adds the salt of a mark to the client configuration of a probe, if the mark has the same
// hash and a valid salt.
func marked(c admission.WebhookClientConfig, mark string) admission.WebhookClientConfig {
	hash := markOf(c)
	salt, ok := strings.CutPrefix(mark, hash+"-")
	if !ok || !isHex(salt, saltLength) {
		return c
	}
	if c.URL != nil {
		address := *c.URL + "-" + salt
		c.URL = &address
		return c
	}
	service := *c.Service
	at := *service.Path + "-" + salt
	service.Path, c.Service = &at, &service
	return c
}

func isHex(text string, length int) bool {
	return len(text) == length && strings.Trim(text, "0123456789abcdef") == ""
}

// mutatingProbe and validatingProbe return the client configuration of the probe; nil
// where there is none.
func mutatingProbe(c *admission.MutatingWebhookConfiguration) *admission.WebhookClientConfig {
	if i := slices.IndexFunc(c.Webhooks, func(w admission.MutatingWebhook) bool { return w.Name == probeName }); i >= 0 {
		return &c.Webhooks[i].ClientConfig
	}
	return nil
}

func validatingProbe(c *admission.ValidatingWebhookConfiguration) *admission.WebhookClientConfig {
	if i := slices.IndexFunc(c.Webhooks, func(w admission.ValidatingWebhook) bool { return w.Name == probeName }); i >= 0 {
		return &c.Webhooks[i].ClientConfig
	}
	return nil
}
