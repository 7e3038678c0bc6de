package patch

import "github.com/quaymaster/quaymaster/policy/lang/patch/internal/operation"

// Operation is one operation of RFC 6902, with a pointer and for add and replace a
// value: {"op": "add", "path": "/metadata/labels/a", "value": "b"} in JSON.
type Operation = operation.Operation

// Diff returns the operations that turn before into after, none if they are equal. They
// are add, remove and replace, and deterministic: members in the order of their names,
// elements of a list from the last to the first. Changes inside of a member or an element
// are made there; elements are matched by equality, or by their name. Above 10,000
// operations, whole fields at the top are written instead.
func Diff(before, after map[string]any) []Operation { return operation.Diff(before, after) }
