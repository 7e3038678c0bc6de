package kyverno

import (
	"errors"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/wildcard"
)

// actions say what a failure does where an entry does not say it itself.
type actions struct {
	usual     policy.Action
	warns     bool // emitWarning: who asks is told of what Audit admits
	overrides []override
}

type override struct {
	action     policy.Action
	namespaces []string
	selector   *labelSelector
}

// parseAction reads an action; the lower-case spelling is Kyverno's old one.
func parseAction(text, path string) (policy.Action, error) {
	switch strings.ToLower(text) {
	case "enforce":
		return policy.Enforce, nil
	case "audit":
		return policy.Audit, nil
	}
	return "", fail(path, "unknown action %q: want Enforce or Audit", text)
}

func compileActions(s spec) (actions, error) {
	a := actions{usual: policy.Audit, warns: s.EmitWarning != nil && *s.EmitWarning} // Kyverno's defaults
	var errs []error
	var err error
	if s.ValidationFailureAction != "" {
		a.usual, err = parseAction(s.ValidationFailureAction, "spec.validationFailureAction")
		errs = append(errs, err)
	}
	for i, o := range s.ValidationFailureActionOverrides {
		path := "spec.validationFailureActionOverrides[" + strconv.Itoa(i) + "]"
		action, err := parseAction(o.Action, path+".action")
		switch {
		case len(o.Namespaces) == 0 && o.NamespaceSelector == nil:
			errs = append(errs, fail(path+".namespaces", "is missing or empty, and there is no namespaceSelector: say which namespaces are meant, * for all of them"))
		case o.Namespaces != nil && len(o.Namespaces) == 0:
			errs = append(errs, fail(path+".namespaces", "is empty: name namespaces, or leave the field out"))
		}
		errs = append(errs, err, o.NamespaceSelector.validate(path+".namespaceSelector"))
		a.overrides = append(a.overrides, override{action: action, namespaces: o.Namespaces, selector: o.NamespaceSelector})
	}
	return a, errors.Join(errs...)
}

// canEnforce reports whether a failure denies anywhere.
func (a actions) canEnforce() bool {
	for _, o := range a.overrides {
		if o.action == policy.Enforce {
			return true
		}
	}
	return a.usual == policy.Enforce
}

// of returns the action for a subject: the entry's own, else the first override
// that fits, else the usual one.
func (a actions) of(s *policy.Subject, own policy.Action) (policy.Action, error) {
	action := own
	if action == "" {
		var err error
		if action, err = a.inherited(s); err != nil {
			return "", err
		}
	}
	if action == policy.Audit && a.warns {
		return policy.Warn, nil
	}
	return action, nil
}

func (a actions) inherited(s *policy.Subject) (policy.Action, error) {
	if s.Bare && s.Namespace == "" && len(a.overrides) > 0 {
		return "", unknownHere("the object's namespace (validationFailureActionOverrides)")
	}
	for _, o := range a.overrides {
		if len(o.namespaces) > 0 && !wildcard.Any(o.namespaces, s.Namespace) {
			continue
		}
		if o.selector != nil {
			if !s.NamespaceKnown {
				return "", errNamespaceUnknown
			}
			if !o.selector.matches(s.NamespaceLabels) {
				continue
			}
		}
		return o.action, nil
	}
	return a.usual, nil
}
