package generate

import (
	"errors"
	"strings"

	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/internal/builtin"
	"github.com/quaymaster/quaymaster/policy/internal/document"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// The fields that name an object, of one to generate and of a target. Those that can name none by
// their text are refused: the rule would fail, or find nothing, for every trigger.

// plainKind refuses an apiVersion and a kind that are not known beforehand, and those that
// Kubernetes' own groups do not have.
func plainKind(apiVersion, kind, path string) error {
	var errs []error
	for _, f := range []struct{ name, value string }{{"apiVersion", apiVersion}, {"kind", kind}} {
		switch place := path + "." + f.name; {
		case f.value == "":
			errs = append(errs, field.Fail(place, "is empty"))
		case wildcard.Contains(f.value) || containsVariable(f.value):
			errs = append(errs, document.Unsupported(place, "a wildcard or a variable ("+f.value+")"))
		case f.name == "kind" && containsSlash(f.value):
			errs = append(errs, document.Unsupported(place, "a subresource or a kind with its group ("+f.value+")"))
		case f.name == "apiVersion" && strings.Count(f.value, "/") > 1:
			errs = append(errs, field.Fail(place, "%q: want VERSION or GROUP/VERSION", f.value))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return match.CheckKind(groupOf(apiVersion), kind, path+".kind")
}

// groupOf returns the group of an apiVersion, empty for the core group.
func groupOf(apiVersion string) string {
	group, _, found := strings.Cut(apiVersion, "/")
	if !found {
		return ""
	}
	return group
}

// undefinedNames refuses variables that nothing defines in the fields that name the object.
func undefinedNames(name, namespace, path string, known []string) error {
	return errors.Join(rulecontext.Undefined(name, path+".name", known), rulecontext.Undefined(namespace, path+".namespace", known))
}

// checkTarget refuses a target that is no object of any cluster. The name and the namespace may be
// patterns.
func checkTarget(doc targetDocument, path string) error {
	var errs []error
	if doc.Name != "" && !containsVariable(doc.Name) {
		errs = append(errs, match.CheckName(doc.Name, path+".name"))
	}
	of, known := builtin.Find(groupOf(doc.APIVersion), doc.Kind)
	switch {
	case doc.Namespace == "":
	case known && of.Cluster:
		errs = append(errs, field.Fail(path+".namespace", "a %s is in no namespace, and so the target would find nothing: leave it out", doc.Kind))
	case !containsVariable(doc.Namespace):
		errs = append(errs, match.CheckNamespace(doc.Namespace, path+".namespace"))
	}
	return errors.Join(errs...)
}
