package record

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// Desired is the status that an object is to have.
type Desired struct {
	Object
	Condition metav1.Condition
	// Fields are further fields of the status, each with a value for JSON.
	Fields map[string]any
	// Overwrite replaces conditions that cannot be read: their writer does not follow the
	// definition. Otherwise they are an error.
	Overwrite bool
}

// write writes a status, if it differs from that of the object, and retains the conditions of
// other writers.
func write(ctx context.Context, through dynamic.Interface, d Desired) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	client := through.Resource(d.Resource).Namespace(d.Namespace)
	current, err := client.Get(ctx, d.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if current.GetUID() != d.UID {
		return nil // another object with that name
	}
	conditions, err := conditionsOf(current, d.Within)
	if err != nil && !d.Overwrite {
		return err
	}
	changed := meta.SetStatusCondition(&conditions, d.Condition)
	status := map[string]any{"conditions": conditions}
	if d.Within != "" {
		status["ready"] = d.Condition.Status == metav1.ConditionTrue
		status = map[string]any{d.Within: status}
	}
	for name, value := range d.Fields {
		status[name] = value
		changed = changed || !sameField(current, name, value)
	}
	if !changed {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		// The resourceVersion detects concurrent writes.
		"metadata": map[string]any{"resourceVersion": current.GetResourceVersion()},
		"status":   status,
	})
	if err != nil {
		return err
	}
	_, err = client.Patch(ctx, d.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// sameField reports whether a field of the status has a value already.
func sameField(current *unstructured.Unstructured, name string, value any) bool {
	found, _, err := unstructured.NestedFieldNoCopy(current.Object, "status", name)
	if err != nil {
		return false
	}
	have, err := json.Marshal(found)
	if err != nil {
		return false
	}
	return bytes.Equal(have, canonical(value))
}

// canonical encodes a value with sorted keys; nil if it cannot be encoded.
func canonical(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	var decoded any
	if json.Unmarshal(text, &decoded) != nil {
		return nil
	}
	text, err = json.Marshal(decoded)
	if err != nil {
		return nil
	}
	return text
}

const (
	// reportPause is the least time between two rounds of a Reporter, so that an unstable state
	// does not cause a flood of writes.
	reportPause = 2 * time.Second
	// reportResync is the time between two rounds without a change, to repeat failed writes.
	reportResync = time.Minute
)

// Reporter writes the status of all objects of a kind whenever it changes. One replica runs it.
type Reporter struct {
	// Kind is the kind of the objects, for errors.
	Kind   string
	Client dynamic.Interface
	// Desired returns the status of each object.
	Desired func() []Desired
	// Changed returns a channel that is closed at the next change of a status.
	Changed func() <-chan struct{}
	// Failed is called when a status was not written.
	Failed func(error)

	written map[types.UID]string
}

// Run writes changed statuses until ctx ends.
func (r *Reporter) Run(ctx context.Context) {
	for ctx.Err() == nil {
		changed := r.Changed()
		r.Round(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(reportPause):
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-time.After(reportResync):
		}
	}
}

// Round writes each changed status once.
func (r *Reporter) Round(ctx context.Context) {
	written := map[types.UID]string{}
	for _, d := range r.Desired() {
		text := fmt.Sprintf("%+v %s", d.Condition, canonical(d.Fields))
		if r.written[d.UID] != text {
			err := write(ctx, r.Client, d)
			if err != nil && !apierrors.IsNotFound(err) {
				r.Failed(fmt.Errorf("write the status of %s %s: %w", cmp.Or(r.Kind, d.Resource.Resource), d.Name, err))
				continue
			}
		}
		written[d.UID] = text
	}
	r.written = written
}
