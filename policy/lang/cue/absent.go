package cue

import (
	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
)

// checkAbsent returns an error for a field of the policy that refers to data which the document
// lacks. CUE leaves it incomplete. That is no contradiction, so the policy would hold.
func (c *Condition) checkAbsent(unified cue.Value, data map[string]any) error {
	fields, err := unified.Fields(cue.Hidden(true), cue.Definitions(true))
	if err != nil {
		return err
	}
	for fields.Next() {
		name := fields.Selector().String()
		if fields.Selector().LabelType() == cue.StringLabel {
			name = fields.Selector().Unquoted()
		}
		_, given := data[name]
		if given && c.hides || !given && c.refersTo(name, data) {
			if err := open(fields.Value()); err != nil {
				return err
			}
		}
	}
	return nil
}

// refersTo reports whether a field at the top may refer to a member of the data. A field with a
// computed name may.
func (c *Condition) refersTo(name string, data map[string]any) bool {
	if len(c.declared.byPath["."+name]) == 0 {
		return true
	}
	for member := range data {
		if c.declared.reaches(name, member, used) {
			return true
		}
	}
	return false
}

// open returns the first error in a value. A type that is left open is none.
func open(v cue.Value) error {
	if err := v.Err(); err != nil {
		return err
	}
	switch v.IncompleteKind() {
	case cue.StructKind:
		fields, err := v.Fields(cue.Hidden(true), cue.Definitions(true))
		if err != nil {
			return err
		}
		for fields.Next() {
			if err := open(fields.Value()); err != nil {
				return err
			}
		}
	case cue.ListKind:
		elements, err := v.List()
		if err != nil {
			return err
		}
		for elements.Next() {
			if err := open(elements.Value()); err != nil {
				return err
			}
		}
	}
	return nil
}

// hides reports whether a policy has hidden fields or definitions below the top,
// which are not written out with the data that they constrain.
func hides(file *ast.File) (found bool) {
	for _, d := range file.Decls {
		ast.Walk(d, func(n ast.Node) bool {
			if field, ok := n.(*ast.Field); ok && n != d {
				found = found || isHidden(field.Label)
			}
			return !found
		}, nil)
	}
	return found
}
