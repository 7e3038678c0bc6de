// Package action implements the actions of failed Kyverno rules.
//
// It compiles validationFailureAction with its overrides by namespace and emitWarning
// (kyverno.io/v1, Kyverno 1.19, "Validate Rules").
package action

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/internal/logic"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// Override is an entry of validationFailureActionOverrides as it is written.
type Override struct {
	Action            string          `json:"action"`
	Namespaces        []string        `json:"namespaces"`
	NamespaceSelector *match.Selector `json:"namespaceSelector"`
}

// Actions are the default effects of a failure, for rules and entries without their own. They are
// immutable and safe for concurrent use.
type Actions struct {
	usual     policy.Action
	warns     bool // emitWarning: the requester is warned of failures that Audit admits
	overrides []override
}

type override struct {
	action     policy.Action
	namespaces []string
	selector   *match.Selector
}

// Parse reads an action; the lower-case spelling is Kyverno's old one.
func Parse(text, path string) (policy.Action, error) {
	switch strings.ToLower(text) {
	case "enforce":
		return policy.Enforce, nil
	case "audit":
		return policy.Audit, nil
	}
	return "", field.Fail(path, "unknown action %q: want Enforce or Audit", text)
}

// Document holds the action fields of a policy.
type Document struct {
	// Usual is validationFailureAction; empty means Audit.
	Usual     string
	Overrides []Override
	// Warns is emitWarning, which is a policy's alone.
	Warns bool
}

// Compile reads the actions of a policy. Errors are about fields of spec.
func Compile(d Document) (Actions, error) {
	usual := Actions{usual: policy.Audit, warns: d.Warns} // Kyverno's default
	return usual.with(d, "spec.validationFailureAction", "spec.validationFailureActionOverrides")
}

// With returns the actions of a rule at a path with its own settings. The rule's overrides come first,
// then its action, and without one the policy's overrides and action (Kyverno 1.19).
func (a Actions) With(d Document, path string) (Actions, error) {
	return a.with(d, path+".failureAction", path+".failureActionOverrides")
}

func (a Actions) with(d Document, usual, overrides string) (Actions, error) {
	var errs []error
	var err error
	if d.Usual != "" {
		a.usual, err = Parse(d.Usual, usual)
		errs = append(errs, err)
		a.overrides = nil
	}
	inherited := a.overrides
	a.overrides = nil
	for i, o := range d.Overrides {
		path := overrides + "[" + strconv.Itoa(i) + "]"
		action, err := Parse(o.Action, path+".action")
		switch {
		case len(o.Namespaces) == 0 && o.NamespaceSelector == nil:
			errs = append(errs, field.Fail(path+".namespaces",
				"is missing or empty, and there is no namespaceSelector: say which namespaces are meant, * for all of them"))
		case o.Namespaces != nil && len(o.Namespaces) == 0:
			errs = append(errs, field.Fail(path+".namespaces", "is empty: name namespaces, or leave the field out"))
		}
		for k, namespace := range o.Namespaces {
			errs = append(errs, match.CheckNamespace(namespace, path+".namespaces["+strconv.Itoa(k)+"]"))
		}
		errs = append(errs, err, o.NamespaceSelector.Validate(path+".namespaceSelector"))
		a.overrides = append(a.overrides, override{action: action, namespaces: o.Namespaces, selector: o.NamespaceSelector})
	}
	a.overrides = append(a.overrides, inherited...)
	return a, errors.Join(errs...)
}

// Enforces reports whether a failure denies where no override applies.
func (a Actions) Enforces() bool { return a.usual == policy.Enforce }

// CanEnforce reports whether a failure denies anywhere.
func (a Actions) CanEnforce() bool {
	for i := range a.overrides {
		o := &a.overrides[i]
		if o.action == policy.Enforce || o.isForAll() {
			return o.action == policy.Enforce
		}
	}
	return a.usual == policy.Enforce
}

// Of returns the action for a subject: the entry's own, else the first override
// that fits, else the usual one. An error means that it is indeterminate, since some
// readings deny; the action then denies.
func (a Actions) Of(s *policy.Subject, own policy.Action) (policy.Action, error) {
	action := own
	var err error
	if action == "" {
		action, err = a.inherited(s)
		if err != nil {
			return policy.Enforce, err
		}
	}
	if action == policy.Audit && a.warns {
		return policy.Warn, nil
	}
	return action, nil
}

// inherited follows the overrides in order. One that is indeterminate leaves two readings,
// which matters if they differ.
func (a Actions) inherited(s *policy.Subject) (policy.Action, error) {
	var unknown error
	var possible policy.Action // of the overrides that are indeterminate
	settle := func(action policy.Action) (policy.Action, error) {
		if unknown == nil || possible == action {
			return action, nil
		}
		return policy.Enforce, unknown
	}
	for _, o := range a.overrides {
		switch fits := o.fits(s); {
		case fits.True():
			return settle(o.action)
		case fits.Cause() == nil:
		case unknown == nil:
			unknown, possible = fits.Cause(), o.action
		case possible != o.action:
			return policy.Enforce, unknown
		}
	}
	return settle(a.usual)
}

// isForAll reports whether the override applies everywhere, also where there is no namespace.
func (o *override) isForAll() bool {
	return o.selector == nil && slices.Contains(o.namespaces, "*")
}

// fits evaluates the namespace and its labels. A cluster-scoped object, such as a Namespace, has
// no namespace labels. To weaken an action, an override must also match in Kyverno's reading. To
// strengthen it, a match by the object's own name and labels is enough, although the requester
// writes them.
func (o *override) fits(s *policy.Subject) logic.Value {
	namespace, labels, known := s.Namespace, s.NamespaceLabels, s.NamespaceKnown
	switch {
	case o.isForAll():
		return logic.Is(true)
	case s.Bare && namespace == "":
		return logic.Indeterminate(match.Unknown("the object's namespace (validationFailureActionOverrides)"))
	case s.Home() == "" && o.action != policy.Enforce:
		return logic.Is(o.selector == nil && wildcard.Any(o.namespaces, ""))
	case s.Home() == "":
		known = true
	}
	switch {
	case len(o.namespaces) > 0 && !wildcard.Any(o.namespaces, namespace):
		return logic.Is(false)
	case o.selector == nil:
		return logic.Is(true)
	case !known:
		return logic.Indeterminate(match.ErrNamespaceUnknown)
	}
	return logic.Is(o.selector.Matches(labels))
}
