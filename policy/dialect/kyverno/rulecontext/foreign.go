package rulecontext

import "github.com/quaymaster/quaymaster/policy/lang/variable"

// Reading returns the options for expressions that read these entries: for data from an image,
// imageRegistry and values derived from it, an order comparison with null is indeterminate.
// Compile refuses an entry that does not compile.
func (o Options) Reading(list []Document) Options {
	for _, doc := range list {
		if o.foreign(doc) {
			o.Engine = o.Engine.Foreign(doc.Name)
		}
	}
	return o
}

// ReadingElements returns the options for expressions that read the elements of a list, and
// the names that the elements have.
func (o Options) ReadingElements(list *variable.Expression, names ...string) Options {
	if list != nil && list.Foreign() {
		o.Engine = o.Engine.Foreign(names...)
	}
	return o
}

func (o Options) foreign(doc Document) bool {
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
	e, err := variable.CompileExpression(o.Engine, doc.Variable.JMESPath, "")
	return err == nil && e.Foreign()
}
