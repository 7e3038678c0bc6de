package rulecontext

import (
	"slices"

	"github.com/quaymaster/quaymaster/internal/spelling"
	"github.com/quaymaster/quaymaster/policy/internal/admissionrequest"
	"github.com/quaymaster/quaymaster/policy/internal/field"
)

// A variable of a name that nothing defines is absent in every evaluation: a default always
// replaces it, and a list of it is always empty. Kyverno refuses such a policy when it is written.

// Undefined returns an error if a variable in a JSON value reads a name that is neither in every
// context nor known.
func Undefined(value any, path string, known []string) error {
	var r Reading
	r.Value(value)
	return r.undefined(path, known)
}

// UndefinedExpression is Undefined for an expression without braces.
func UndefinedExpression(source, path string, known []string) error {
	var r Reading
	r.Expression(source)
	return r.undefined(path, known)
}

// Misspelt returns an error if a variable in a JSON value reads a member of the request in other cases. Unlike
// Undefined, it is for values of which a statement gives further names.
func Misspelt(value any, path string) error {
	var r Reading
	r.Value(value)
	return r.spelling(path)
}

// undefinedEntries is Undefined for the entries of a context, which may read each other; inOrder
// checks their order.
func undefinedEntries(list []Document, path string, known []string) error {
	known = slices.Clone(known)
	for _, entry := range list {
		known = append(known, entry.Name)
	}
	var r Reading
	r.Entries(list)
	return r.undefined(path, known)
}

func (r *Reading) spelling(path string) error {
	if r.misspelt == "" {
		return nil
	}
	return field.Fail(path, "a variable reads request.%s, which no request has: write request.%s", r.misspelt, admissionrequest.Misspelt(r.misspelt))
}

func (r *Reading) undefined(path string, known []string) error {
	if err := r.spelling(path); err != nil {
		return err
	}
	for _, name := range r.names {
		if Reserved(name) || slices.Contains(known, name) || isConstant(name) {
			continue
		}
		if name == "" {
			return field.Fail(path, `a variable reads "", a member without a name, which nothing defines: write '' for an empty text`)
		}
		all := append([]string{"request", "images", "serviceAccountName", "serviceAccountNamespace"}, known...)
		if nearest := spelling.Nearest(name, all); nearest != "" {
			return field.Fail(path, "a variable reads %s, which nothing defines%s", name, spelling.DidYouMean(nearest))
		}
		return field.Fail(path, "a variable reads %s, which nothing defines: name an entry of the context, or request", name)
	}
	return nil
}

// isConstant reports whether a name is one that authors write for a constant: as a name it is
// absent, and so null, which a condition takes for false.
func isConstant(name string) bool { return name == "null" || name == "false" }
