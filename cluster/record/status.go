package record

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// Object identifies an object with a status.
type Object struct {
	Resource        schema.GroupVersionResource
	Namespace, Name string
	// UID is its UID: a later object with the same name is ignored. Required.
	UID types.UID
	// Within is the field of the status that contains the conditions, and the field ready with
	// the status of the condition. It is empty where the conditions are in the status itself,
	// without ready.
	Within string
}

// Desired is the status that an object is to have.
type Desired struct {
	Object
	Condition metav1.Condition
	// Fields are further fields of the status, each with a value for JSON.
	Fields map[string]any
	// Overwrite replaces conditions that cannot be read: their writer does not follow the
	// definition. Otherwise they are an error.
	Overwrite bool
	// Remedy completes the error of a forbidden write: what else to do than to grant the right. It may
	// be empty.
	Remedy string
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

// conditionsOf returns the conditions in a status, or in a field of it.
func conditionsOf(object *unstructured.Unstructured, within string) ([]metav1.Condition, error) {
	status, ok := object.Object["status"].(map[string]any)
	if ok && within != "" {
		status, ok = status[within].(map[string]any)
	}
	if !ok {
		return nil, nil
	}
	var known struct {
		Conditions []metav1.Condition `json:"conditions"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"conditions": status["conditions"]}, &known); err != nil {
		return nil, fmt.Errorf("read the conditions that are there: %w", err)
	}
	return known.Conditions, nil
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
