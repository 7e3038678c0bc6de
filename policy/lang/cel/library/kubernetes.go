package library

import (
	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
)

// The types of the variables that Kubernetes declares for admission.
const (
	requestType   = "kubernetes.AdmissionRequest"
	namespaceType = "kubernetes.Namespace"
)

// exceptionsType is that of the variable exceptions of Kyverno.
const exceptionsType = "libs.Exception"

// ExceptionsType is that of a variable with the lists of texts allowedImages and
// allowedValues; its value is decoded JSON.
func ExceptionsType() *celgo.Type { return types.NewObjectType(exceptionsType) }

// RequestType is that of the variable request, as ValidatingAdmissionPolicy has it:
// reading another field is a compile error. Its value is decoded JSON.
func RequestType() *celgo.Type { return types.NewObjectType(requestType) }

// NamespaceType is that of the variable namespaceObject; its value is decoded JSON,
// or null for an object in no namespace.
func NamespaceType() *celgo.Type { return types.NewObjectType(namespaceType) }

// kubernetesObjects are the fields of these types.
func kubernetesObjects() map[string]map[string]*types.FieldType {
	text, texts, dict := celgo.StringType, celgo.ListType(celgo.StringType), celgo.MapType(celgo.StringType, celgo.StringType)
	const kind, resource, user, meta = "kubernetes.GroupVersionKind", "kubernetes.GroupVersionResource", "kubernetes.UserInfo", "kubernetes.NamespaceMetadata"
	const spec, status, condition = "kubernetes.NamespaceSpec", "kubernetes.NamespaceStatus", "kubernetes.NamespaceCondition"
	of := types.NewObjectType
	return map[string]map[string]*types.FieldType{
		kind:     fieldsOf(map[string]*celgo.Type{"group": text, "version": text, "kind": text}),
		resource: fieldsOf(map[string]*celgo.Type{"group": text, "version": text, "resource": text}),
		user: fieldsOf(map[string]*celgo.Type{
			"username": text, "uid": text, "groups": texts, "extra": celgo.MapType(celgo.StringType, texts),
		}),
		requestType: fieldsOf(map[string]*celgo.Type{
			"kind": of(kind), "resource": of(resource), "subResource": text,
			"requestKind": of(kind), "requestResource": of(resource), "requestSubResource": text,
			"name": text, "namespace": text, "operation": text, "userInfo": of(user), "dryRun": celgo.BoolType, "options": celgo.DynType,
		}),
		meta: fieldsOf(map[string]*celgo.Type{
			"name": text, "generateName": text, "namespace": text, "labels": dict, "annotations": dict, "UID": text,
			"creationTimestamp": celgo.TimestampType, "deletionTimestamp": celgo.TimestampType, "deletionGracePeriodSeconds": celgo.IntType,
			"generation": celgo.IntType, "resourceVersion": text, "finalizers": texts,
		}),
		spec: fieldsOf(map[string]*celgo.Type{"finalizers": texts}),
		condition: fieldsOf(map[string]*celgo.Type{
			"status": text, "type": text, "lastTransitionTime": celgo.TimestampType, "message": text, "reason": text,
		}),
		status:         fieldsOf(map[string]*celgo.Type{"conditions": celgo.ListType(of(condition)), "phase": text}),
		exceptionsType: fieldsOf(map[string]*celgo.Type{"allowedImages": texts, "allowedValues": texts}),
		namespaceType:  fieldsOf(map[string]*celgo.Type{"metadata": of(meta), "spec": of(spec), "status": of(status)}),
	}
}

// fieldsOf declares fields that are read of decoded JSON by their names.
func fieldsOf(fields map[string]*celgo.Type) map[string]*types.FieldType {
	declared := make(map[string]*types.FieldType, len(fields))
	for name, is := range fields {
		declared[name] = &types.FieldType{Type: is}
	}
	return declared
}
