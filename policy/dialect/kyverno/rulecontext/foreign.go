package rulecontext

import (
	"strings"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// Reading returns the options for expressions that read these entries: for data from an image,
// imageRegistry and values derived from it, an order comparison with null is indeterminate.
// Compile refuses an entry that does not compile.
func (o Options) Reading(list []Document) Options {
	constants := variable.Context{}
	for _, doc := range list {
		if o.foreign(doc, constants) {
			o.Engine = o.Engine.Foreign(doc.Name)
		}
		doc.constant(o.Engine, constants)
	}
	return o
}

// constant adds the entry to the constants if no author of objects has an influence on it, and else removes those of its name.
func (d Document) constant(engine *jmespath.Engine, constants variable.Context) {
	if v := d.Variable; v != nil && v.Value != nil {
		if value, is := variable.Constant(engine, v.Value, v.JMESPath, constants); is {
			constants[d.Name] = value
			return
		}
	}
	head, _, _ := strings.Cut(d.Name, ".")
	delete(constants, head)
}

// ReadingElements returns the options for expressions that read the elements of a list, and
// the names that the elements have.
func (o Options) ReadingElements(list *variable.Expression, names ...string) Options {
	if list != nil && list.Foreign() {
		o.Engine = o.Engine.Foreign(names...)
	}
	return o
}

func (o Options) foreign(doc Document, constants variable.Context) bool {
	if doc.ImageRegistry != nil || doc.Variable == nil {
		return doc.ImageRegistry != nil
	}
	for _, value := range []any{doc.Variable.Value, doc.Variable.Default} {
		if t, err := variable.Compile(o.Engine, value); err == nil && t.Foreign() {
			return true
		}
	}
	if doc.Variable.JMESPath == "" {
		return false
	}
	e, err := variable.CompileExpression(o.Engine, variable.Substitute(o.Engine, doc.Variable.JMESPath, constants), "")
	return err == nil && e.Foreign()
}
