package reconcile

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	admission "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/webhook/configuration"
)

// restoreResources returns the resources of the failed group versions from a configuration's annotation. An
// invalid annotation is an error, because ignoring it would remove the webhooks of those resources.
func restoreResources(c *admission.ValidatingWebhookConfiguration, failed []schema.GroupVersion) ([]configuration.Resource, error) {
	text := c.Annotations[configuration.StoredResources]
	if text == "" {
		return nil, nil
	}
	var stored []configuration.Resource
	if err := json.Unmarshal([]byte(text), &stored); err != nil {
		return nil, fmt.Errorf("the annotation %s is not valid, and discovery of %v failed: restore discovery, or delete the annotation: %w", configuration.StoredResources, failed, err)
	}
	return slices.DeleteFunc(stored, func(r configuration.Resource) bool {
		return r.Name == "" || r.Kind == "" || !slices.Contains(failed, schema.GroupVersion{Group: r.Group, Version: r.Version})
	}), nil
}

// completed adds the resources of failed group versions from the stored configuration.
func completed(in configuration.Input, current *admission.ValidatingWebhookConfiguration) (configuration.Input, error) {
	stored, err := restoreResources(current, in.Failed)
	if err != nil {
		return configuration.Input{}, err
	}
	in.Resources = slices.Clone(in.Resources)
	for _, r := range stored {
		if !slices.ContainsFunc(in.Resources, func(known configuration.Resource) bool { return known.Compare(r) == 0 }) {
			in.Resources = append(in.Resources, r)
		}
	}
	return in, nil
}

// input returns the current input, including deleted policies and failed group versions.
func (r *Reconciler) input(ctx context.Context) (configuration.Input, error) {
	in, err := r.options.Source.Input(ctx)
	if err != nil {
		return configuration.Input{}, err
	}
	in = r.recentDeletions.with(in, time.Now())
	if len(in.Failed) == 0 {
		return in, nil
	}
	current, err := r.options.Validating.Get(ctx, configuration.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return in, nil
	}
	if err != nil {
		return configuration.Input{}, fmt.Errorf("read the stored resources after discovery of %v failed: %w", in.Failed, err)
	}
	return completed(in, current)
}
