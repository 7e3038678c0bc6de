package rulecontext

import (
	"context"
	"errors"

	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// made is an entry that is made of others.
type made struct {
	path              string
	literal, fallback *variable.Template
	// expression is applied to the literal, and to the context if there is none.
	expression *variable.Expression
}

func (c compiler) variable(doc *variableDocument, path string) (loader, error) {
	if doc.Value == nil && doc.JMESPath == "" && doc.Default == nil {
		return nil, field.Fail(path, "want a value, a jmesPath or a default")
	}
	m := &made{path: path}
	var errs [3]error
	if doc.Value != nil {
		m.literal, errs[0] = c.template(doc.Value, path+".value")
	}
	if doc.Default != nil {
		m.fallback, errs[1] = c.template(doc.Default, path+".default")
	}
	m.expression, errs[2] = c.expression(doc.JMESPath, path+".jmesPath")
	return m, errors.Join(errs[:]...)
}

func (m *made) reads(r *reads) {
	r.template(m.literal)
	r.template(m.fallback)
	r.expression(m.expression, m.literal != nil)
}

// load computes the value. The default replaces only a value that the jmesPath finds absent. It
// does not replace a failed evaluation, because the author of the object could then choose the
// default.
func (m *made) load(_ context.Context, data variable.Context) (any, error) {
	loaded, err := m.evaluate(data)
	switch {
	case err == nil && loaded != nil:
		return loaded, nil
	case m.fallback != nil && m.isAbsent(err):
		return m.fallback.Execute(data)
	case err == nil:
		err = absent("the variable")
	}
	return nil, err
}

// isAbsent reports whether the value is absent in a way that also gives the default in Kyverno:
// not if a variable within the entry, or the written value, is absent.
func (m *made) isAbsent(err error) bool {
	_, unknown := errors.AsType[*unfoundError](err)
	_, undefined := errors.AsType[*jmespath.UndefinedError](err)
	_, absent := errors.AsType[*jmespath.AbsentError](err)
	switch {
	case err == nil:
		return m.literal == nil
	case unknown || m.expression == nil:
		return false
	}
	return (undefined || absent) && m.expression.Failed(err)
}

func (m *made) evaluate(data variable.Context) (any, error) {
	switch {
	case m.literal == nil && m.expression == nil:
		return nil, nil
	case m.literal == nil:
		return m.expression.Evaluate(data)
	}
	literal, err := m.literal.Execute(data)
	if err != nil {
		return nil, err
	}
	return selected(m.expression, literal, data)
}
