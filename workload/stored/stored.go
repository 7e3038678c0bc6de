// Package stored converts objects of built-in kinds from files to the form in which an API server has
// them (Kubernetes 1.37): it decodes them into the types of their kinds, so that a null, zero or empty
// member is absent and a quantity is text in its canonical form. The stringData of a Secret is in its
// data, and a pod has both names of its ServiceAccount. Rules about a file then see what they see at
// admission. What the API server adds is not added: defaults, and the empty objects that a type always
// writes, as resources of a container.
package stored

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	kubejson "sigs.k8s.io/json"

	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/workload"
)

// Object returns an object as an API server has it. One of another kind, one that the type of its kind cannot
// hold, which an API server refuses, and one with a quantity beyond the bounds of package limit stays as it is.
func Object(o workload.Object) workload.Object {
	if o.IsZero() {
		return o
	}
	typed, err := scheme.Scheme.New(schema.FromAPIVersionAndKind(o.APIVersion(), o.Kind()))
	if err != nil || o.IsDocument() || hasLargeQuantity(decode(o.JSON())) {
		return o
	}
	if kubejson.UnmarshalCaseSensitivePreserveInts(o.JSON(), typed) != nil {
		return o
	}
	text, err := json.Marshal(typed)
	if err != nil {
		return o
	}
	written, decoded := decode(o.JSON()), decode(text)
	content := likeObject(written, decoded, reflect.TypeOf(typed))
	if o.Kind() == "Secret" {
		moveStringData(content)
	}
	if spec := podSpec(content, o.Kind()); spec != nil {
		setServiceAccount(spec)
	}
	if reflect.DeepEqual(content, decode(o.JSON())) {
		return o
	}
	changed, err := o.With(content)
	if err != nil {
		return o
	}
	return changed
}

// hasLargeQuantity reports whether a value of an object, apart from its metadata, may take minutes to be parsed.
func hasLargeQuantity(value any) bool {
	switch v := value.(type) {
	case string:
		return limit.Quantity(v) != nil
	case json.Number:
		return limit.Quantity(v.String()) != nil
	case []any:
		return slices.ContainsFunc(v, hasLargeQuantity)
	case map[string]any:
		for name, member := range v {
			if name != "metadata" && hasLargeQuantity(member) {
				return true
			}
		}
	}
	return false
}

// Fits reports whether the type of an object's kind can hold it: an API server refuses one that it cannot. Every
// object of a kind that is not built in fits.
func Fits(o workload.Object) bool {
	typed, err := scheme.Scheme.New(schema.FromAPIVersionAndKind(o.APIVersion(), o.Kind()))
	return err != nil || kubejson.UnmarshalCaseSensitivePreserveInts(o.JSON(), typed) == nil
}

// In returns an object with the namespace in its metadata, as an API server sets it; an empty one removes it, as
// from an object of a cluster-scoped kind.
func In(o workload.Object, namespace string) workload.Object {
	if o.IsZero() || o.IsDocument() || o.Namespace() == namespace {
		return o
	}
	content := decode(o.JSON())
	meta, _ := content["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
	}
	content["metadata"] = meta
	if namespace == "" {
		delete(meta, "namespace")
	} else {
		meta["namespace"] = namespace
	}
	placed, err := o.With(content)
	if err != nil {
		return o // not possible: it was read from the same text
	}
	return placed
}

// decode keeps numbers as they are written: a float64 rounds large integers.
func decode(text []byte) (object map[string]any) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	_ = decoder.Decode(&object) // the text is that of an object
	return object
}

// likeObject returns a written object with the values of the decoded one, of a type. A member that the
// type does not have stays: rules that look for it decide about it.
func likeObject(written, decoded map[string]any, of reflect.Type) map[string]any {
	out := maps.Clone(written)
	isMap := of != nil && valueType(of).Kind() == reflect.Map // of which each key is data
	for name, value := range written {
		now, has := decoded[name]
		member := memberOf(of, name)
		switch {
		case has && (isMap || now != nil):
			out[name] = like(value, now, member)
		case isEmpty(value) || member != nil:
			delete(out, name)
		}
	}
	return out
}

func like(written, decoded any, of reflect.Type) any {
	switch v := written.(type) {
	case map[string]any:
		if now, ok := decoded.(map[string]any); ok {
			return likeObject(v, now, of)
		}
	case []any:
		now, ok := decoded.([]any)
		if !ok || len(now) != len(v) {
			return v
		}
		var element reflect.Type
		if list := valueType(of); list != nil && list.Kind() == reflect.Slice {
			element = list.Elem()
		}
		out := slices.Clone(v)
		for i := range v {
			out[i] = like(v[i], now[i], element)
		}
		return out
	}
	return decoded
}

// memberOf returns the type of a member of a type's JSON; nil for none.
func memberOf(of reflect.Type, name string) reflect.Type {
	of = valueType(of)
	switch {
	case of == nil:
		return nil
	case of.Kind() == reflect.Map:
		return of.Elem()
	case of.Kind() != reflect.Struct:
		return nil
	}
	for i := range of.NumField() {
		f := of.Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == name {
			return f.Type
		}
		if f.Anonymous && tag == "" {
			if member := memberOf(f.Type, name); member != nil {
				return member
			}
		}
	}
	return nil
}

func valueType(of reflect.Type) reflect.Type {
	for of != nil && of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	return of
}

// moveStringData moves the texts of a Secret into its data.
func moveStringData(secret map[string]any) {
	texts, ok := secret["stringData"].(map[string]any)
	if !ok {
		return
	}
	data := map[string]any{}
	if was, ok := secret["data"].(map[string]any); ok {
		maps.Copy(data, was)
	}
	for name, value := range texts {
		text, _ := value.(string)
		data[name] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	secret["data"] = data
	delete(secret, "stringData")
}

// podSpec returns the specification of an object's pods; nil for none.
func podSpec(content map[string]any, kind string) map[string]any {
	var path []string
	switch kind {
	case "Pod":
		path = []string{"spec"}
	case "PodTemplate":
		path = []string{"template", "spec"}
	case "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job":
		path = []string{"spec", "template", "spec"}
	case "CronJob":
		path = []string{"spec", "jobTemplate", "spec", "template", "spec"}
	}
	if path == nil {
		return nil
	}
	for _, name := range path {
		content, _ = content[name].(map[string]any)
	}
	return content
}

// setServiceAccount sets both names of a ServiceAccount; serviceAccount is the older one.
func setServiceAccount(spec map[string]any) {
	for _, name := range []string{"serviceAccountName", "serviceAccount"} {
		if account, _ := spec[name].(string); account != "" {
			spec["serviceAccountName"], spec["serviceAccount"] = account, account
			return
		}
	}
}

// isEmpty reports whether a type with an optional member does not write a value of it.
func isEmpty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}
