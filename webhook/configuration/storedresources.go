package configuration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	admission "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// StoredResources is the annotation of the validating configuration with the resources behind it, in
// JSON: rules do not contain kinds. A replica that becomes the leader during a partial failure of
// discovery restores them from it.
const StoredResources = "quaymaster.dev/resources"

// maxStored bounds the resources in it. An object has 256 KiB of annotations at most, and one
// resource takes about 150 bytes.
const maxStored = 500

// encodeResources encodes the resources of both endpoints.
func (q *requirements) encodeResources(other *requirements) (string, error) {
	both := maps.Clone(q.known)
	maps.Copy(both, other.known)
	known := slices.SortedFunc(maps.Values(both), compareResources)
	if len(known) > maxStored {
		q.warnings = append(q.warnings,
			Warning{Message: fmt.Sprintf("policies match %d resources, of which %d are stored for a failure of discovery", len(known), maxStored)})
		known = known[:maxStored]
	}
	text, err := json.Marshal(append([]Resource{}, known...))
	if err != nil {
		return "", fmt.Errorf("webhook configurations: the annotation %s: %w", StoredResources, err)
	}
	return string(text), nil
}

// restoreResources returns the resources of the failed group versions from a configuration's annotation. An
// invalid annotation is an error, because ignoring it would remove the webhooks of those resources.
func restoreResources(c *admission.ValidatingWebhookConfiguration, failed []schema.GroupVersion) ([]Resource, error) {
	text := c.Annotations[StoredResources]
	if text == "" {
		return nil, nil
	}
	var stored []Resource
	if err := json.Unmarshal([]byte(text), &stored); err != nil {
		return nil, fmt.Errorf("the annotation %s is not valid, and discovery of %v failed: restore discovery, or delete the annotation: %w", StoredResources, failed, err)
	}
	return slices.DeleteFunc(stored, func(r Resource) bool {
		return r.Name == "" || r.Kind == "" || !slices.Contains(failed, schema.GroupVersion{Group: r.Group, Version: r.Version})
	}), nil
}

// completed adds the resources of failed group versions from the stored configuration.
func (in Input) completed(current *admission.ValidatingWebhookConfiguration) (Input, error) {
	stored, err := restoreResources(current, in.Failed)
	if err != nil {
		return Input{}, err
	}
	in.Resources = slices.Clone(in.Resources)
	for _, r := range stored {
		if !slices.ContainsFunc(in.Resources, func(known Resource) bool { return compareResources(known, r) == 0 }) {
			in.Resources = append(in.Resources, r)
		}
	}
	return in, nil
}

// input returns the current input, including deleted policies and failed group versions.
func (r *Reconciler) input(ctx context.Context) (Input, error) {
	in, err := r.options.Source.Input(ctx)
	if err != nil {
		return Input{}, err
	}
	in = r.recentDeletions.with(in, time.Now())
	if len(in.Failed) == 0 {
		return in, nil
	}
	current, err := r.options.Validating.Get(ctx, Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return in, nil
	}
	if err != nil {
		return Input{}, fmt.Errorf("read the stored resources after discovery of %v failed: %w", in.Failed, err)
	}
	return in.completed(current)
}
