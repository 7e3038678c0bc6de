// Package patch applies the patches of mutation rules, and computes the operations between
// two objects.
//
// A Merge is `patchStrategicMerge` of Kyverno ("Mutate Rules", 1.19): a strategic merge
// patch of Kubernetes with the anchors (x), <(x) and +(x). A JSON is its
// `patchesJson6902`: operations of RFC 6902 on pointers of RFC 6901. Diff returns the
// changes of a patch as operations. Objects are decoded JSON and are never modified:
// changed parts are copied, the rest is shared.
//
// # Strategic merge
//
// Objects merge member by member and null deletes. Lists merge by the keys of Kubernetes'
// own types (containers by name, ports by containerPort and protocol), with the elements
// of the patch first, as Kyverno orders them, except that existing elements of lists with
// two keys stay where they are. Other lists, and all lists of custom resources, are
// replaced. `$patch` may be delete, replace or merge.
//
// The replacement of a string is a string: 3 becomes "3", as in Kyverno, so that labels
// and annotations can be computed.
//
// An element of a list with (x) in it is merged into every element that meets its
// conditions. One with <(x) in it is a condition only: the patch is skipped unless it
// holds for some element. A condition that fails outside of a list skips the whole patch:
// Apply returns the unchanged object and a *SkippedError. `$patch` deletes an object only
// where the nested conditions hold as well, and <(x) also decides about a list that is
// deleted or replaced.
//
// The behaviour follows Kyverno's documentation. Kyverno's code deviates from it, or from
// the obvious result, in a few places. This package behaves differently there:
//
//   - `emptyDir: {}` is written; Kyverno drops empty objects from patches.
//   - An element with a plain merge key and +(x) applies to that element alone;
//     Kyverno patches every element of the list.
//   - +(x) is decided for each element by itself; Kyverno decides it for the first.
//   - (x) with an object is a condition only; Kyverno writes the object's plain
//     members too, wildcards included. With +(y) in it, it means that x exists.
//   - (x) in a list without merge key patches elements where they are; Kyverno
//     replaces the list by the elements that have a name.
//   - <(x) fails for an empty list as for a missing one.
//   - Kyverno bundles the types of Kubernetes 1.21, this package those of 1.37.
//   - `$setElementOrder`, `$retainKeys`, `$deleteFromPrimitiveList` and the anchors
//     that only patterns have are refused at load; Kyverno writes them as fields.
//
// # JSON patch
//
// As in Kyverno, `add` creates missing parents and `remove` of a missing value does
// nothing. A negative index counts from the end. Unlike in Kyverno, lists are not padded with
// null, and no operation replaces the whole object.
//
// A JSON patch is usually a YAML text with variables in it. Kyverno substitutes the
// variables and then parses the text. This package parses the text once, with the
// variables as placeholders, so that a value never becomes policy. A variable that is a
// whole plain scalar gives its value with its type. If it, or a plain scalar around it, is
// a string, it is parsed as the plain scalar that it would be in Kyverno's text
// (`value: {{ x }}` with "3" is the number 3, with "yes" it is true, with "" it is null).
// In quotes and blocks it is always text. Variables that would have to be structure are
// refused at load.
//
// # Values
//
// Every variable of a patch is evaluated, whether its part is used or not, and an
// undefined one is an error. A value is data: `$patch` or an anchor in it is a member like
// any other.
//
// In a merge {{@}} is the value that the object has at this location, and undefined where
// it has none. In an element that anchors select it is that of each element, where Kyverno
// takes the one at the patch's index.
//
// `\$(x)` is written $(x), as in Kyverno; $(x), which would be a reference to a field of
// the policy there, is refused.
package patch

import (
	"fmt"

	"github.com/quaymaster/quaymaster/policy/lang/patch/internal/jsonvalue"
	"github.com/quaymaster/quaymaster/policy/lang/patch/internal/operation"
)

// ErrTooLarge is wrapped by errors about a bound.
var ErrTooLarge = jsonvalue.ErrTooLarge

// ErrTestFailed is wrapped by the error about an operation `test` that fails.
var ErrTestFailed = operation.ErrTestFailed

// Budget is the remaining output that successive patches may write together: as much as one
// alone may.
type Budget = jsonvalue.Budget

// NewBudget returns the full budget of one patch.
func NewBudget() *Budget {
	budget := Budget(jsonvalue.MaxAdded)
	return &budget
}

// Error reports why a patch cannot be applied to an object, and the location in the
// object.
type Error struct {
	Path string // a JSON pointer
	Err  error
}

func (e *Error) Error() string { return fmt.Sprintf("patch at %s: %v", e.Path, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// SkippedError reports that a patch does not apply to this object, since the condition of
// an anchor does not hold. Kyverno reports such a rule as skipped.
type SkippedError struct {
	Path   string // of the anchor, in the object
	Anchor string // as in the policy, such as <(image)
	Err    error  // expected and actual value

	global bool // <(x)
}

func (e *SkippedError) Error() string {
	return fmt.Sprintf("not for this object: %s at %s: %v", e.Anchor, e.Path, e.Err)
}

func (e *SkippedError) Unwrap() error { return e.Err }

func fail(path, format string, args ...any) error {
	return &Error{Path: path, Err: fmt.Errorf(format, args...)}
}
