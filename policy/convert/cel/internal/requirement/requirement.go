package requirement

import (
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/celtext"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/condition"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/jmespath"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/overlay"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/shape"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/term"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
)

// Deny are conditions that deny where they hold.
type Deny struct {
	Conditions any `json:"conditions"`
}

// Loop is an entry of foreach.
type Loop struct {
	List          string                 `json:"list"`
	ElementScope  *bool                  `json:"elementScope"`
	Context       []rulecontext.Document `json:"context"`
	Preconditions any                    `json:"preconditions"`
	Pattern       any                    `json:"pattern"`
	AnyPattern    []any                  `json:"anyPattern"`
	Deny          *Deny                  `json:"deny"`
	ForEach       []Loop                 `json:"foreach"`
}

// Rule has the parts of a rule, with the paths of its document.
type Rule struct {
	Context       []rulecontext.Document
	Preconditions any
	Message       string
	Deny          *Deny
	ForEach       []Loop
	// Untyped: the kinds may have data of any form.
	Untyped bool
	// Namespaced: the policy is one of a namespace.
	Namespaced bool
	// Inline writes the variables where they are read, as of another object than the policy's own variables read.
	Inline bool
}

// Requirement is the form of a rule.
type Requirement struct {
	// Variables are declared in this order.
	Variables []admission.Variable
	// Condition holds where the rule applies; empty for always.
	Condition string
	// Validation has the message of the author. Its expression is empty for a rule without deny and foreach.
	Validation admission.Validation
	// Fails: the source may fail, and so may the expression: then nothing excuses it.
	Fails bool
	// Doubtful: the source is indeterminate where a text of the data decides as a pattern: nothing excuses that, either.
	Doubtful bool
	// Needs are conditions under which the source does not fail.
	Needs []string
}

// deletedName is the variable for an object that may be deleted, which request.object is in the source.
const deletedName = "resource"

// Of writes a rule. What has no form is a *source.Unsupported with the path below the rule.
func Of(r Rule, scope jmespath.Scope) (Requirement, error) {
	w := writer{rule: r, scope: scope}
	if slices.Contains(scope.Operations, "DELETE") {
		w.scope.ObjectName = "variables." + deletedName
		if len(scope.Operations) == 1 {
			w.scope.ObjectName = "oldObject"
		}
	}
	if err := w.context(); err != nil {
		return Requirement{}, err
	}
	expression, err := w.expression()
	if err != nil {
		return Requirement{}, err
	}
	if err := w.preconditions(&expression); err != nil {
		return Requirement{}, err
	}
	w.out.Validation.Expression, w.out.Fails, w.out.Needs = expression.Text, expression.Fails, expression.Needs
	if err := w.message(); err != nil {
		return Requirement{}, err
	}
	w.deleted()
	w.out.Condition, w.out.Validation.Expression = celtext.Lines(w.out.Condition), celtext.Lines(w.out.Validation.Expression)
	for i := range w.out.Variables {
		w.out.Variables[i].Expression = celtext.Lines(w.out.Variables[i].Expression)
	}
	return w.out, nil
}

// writer writes one rule.
type writer struct {
	rule  Rule
	scope jmespath.Scope
	out   Requirement
	// violating are the elements of a single foreach that fail, for the message.
	violating *violating
}

// violating is a list of elements that fail.
type violating struct {
	text string
	of   shape.Shape
}

// violatingName is the variable for them.
const violatingName = "violating"

// context declares the variables of the rule, or inlines them.
func (w *writer) context() (err error) {
	if w.rule.Inline {
		w.scope, err = w.inlined(w.rule.Context, w.scope)
		return err
	}
	return w.entries()
}

// deleted declares the variable for an object that may be deleted, if an expression reads it.
func (w *writer) deleted() {
	name := "variables." + deletedName
	texts := []string{w.out.Validation.Expression, w.out.Validation.MessageExpression}
	for _, v := range w.out.Variables {
		texts = append(texts, v.Expression)
	}
	if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, name) }) {
		w.out.Variables = append([]admission.Variable{{Name: deletedName, Expression: "object != null ? object : oldObject"}}, w.out.Variables...)
	}
}

// expression writes the requirement of the rule.
func (w *writer) expression() (term.Term, error) {
	if w.rule.Deny != nil {
		made, doubtful, err := condition.CompileDeny(w.rule.Deny.Conditions, w.scope)
		w.out.Doubtful = doubtful
		return made, source.Located("validate.deny.conditions", err)
	}
	if len(w.rule.ForEach) == 0 {
		return term.Term{}, nil
	}
	made, err := w.loops(w.rule.ForEach, w.scope, 0)
	return made, source.Located("validate.foreach", err)
}

// preconditions writes where the rule applies: as a match condition, or before the expression if they read
// variables, which match conditions do not.
func (w *writer) preconditions(expression *term.Term) error {
	if w.rule.Preconditions == nil {
		return nil
	}
	holds, err := condition.CompileDemanding(w.rule.Preconditions, w.scope)
	if err != nil {
		return source.Located("preconditions", err)
	}
	if expression.Text == "" && strings.Contains(holds.Text, "variables.") {
		return &source.Unsupported{Path: "preconditions", Found: "variables beside a pattern"}
	}
	if !strings.Contains(holds.Text, "variables.") {
		w.out.Condition = holds.Text
		return nil
	}
	*expression = where(holds, *expression)
	return nil
}

// message writes the author's text. Where a variable in it is missing, the source shows the text as it is written.
func (w *writer) message() error {
	text := w.rule.Message
	if !strings.Contains(text, "{{") {
		w.out.Validation.Message = text
		return nil
	}
	scope := w.scope
	if w.violating != nil {
		scope = scope.WithElement("variables."+violatingName+"[0]", w.violating.of, 0)
	}
	made, err := jmespath.Template(text, scope)
	if err != nil {
		return source.Located("validate.message", err)
	}
	if strings.Contains(made.Text, "variables."+violatingName) {
		w.out.Variables = append(w.out.Variables, admission.Variable{Name: violatingName, Expression: w.violating.text})
	}
	w.out.Validation.MessageExpression = made.Text
	if made.Missing || made.Fails || made.Null {
		w.out.Validation.Message = text
	}
	return nil
}

// loops writes that the elements of lists meet their requirements.
func (w *writer) loops(all []Loop, scope jmespath.Scope, depth int) (term.Term, error) {
	var texts []term.Term
	for i, l := range all {
		made, err := w.loop(l, scope, depth)
		if err != nil {
			return made, source.Located(source.Index("", i), err)
		}
		texts = append(texts, made)
	}
	out := texts[0]
	for _, one := range texts[1:] {
		out = term.Term{Text: out.In(term.And) + " && " + one.In(term.And), Rank: term.And, Fails: out.Fails || one.Fails}
	}
	return out, nil
}

// loop writes one list. Elements that are null, and those of a list that is missing, are passed over.
func (w *writer) loop(l Loop, scope jmespath.Scope, depth int) (term.Term, error) {
	list, err := jmespath.Compile(l.List, scope)
	switch {
	case err != nil:
		return term.Term{}, source.Located("list", err)
	case list.List == nil || !list.Is(shape.List) || list.Instead != nil:
		return term.Term{}, &source.Unsupported{Path: "list", Found: "a value that may be no list"}
	}
	each := list.List.Each()
	if each.May(shape.Null) && each.Shape.Kinds != shape.Any || len(list.List.Levels) > 1 && list.List.Element != nil {
		return term.Term{}, &source.Unsupported{Path: "list", Found: "elements that may be null"}
	}
	var inner error
	fails := list.Fails
	text := list.List.Every(true, func(element term.Term) (string, term.Rank) {
		made, err := w.element(l, scope.WithElement(element.Text, element.Shape, depth), element, depth)
		inner, fails = err, fails || made.Fails
		if len(list.List.Levels) == 1 && list.List.Element == nil && depth == 0 && len(w.rule.ForEach) == 1 {
			text, rank := list.List.Text(true)
			w.violating = &violating{term.Grouped(text, rank, term.Primary) + ".filter(" + element.Text + ", " + term.Not(made.Text) + ")", element.Shape}
		}
		return made.Text, made.Rank
	})
	return term.Term{Text: text, Rank: term.Primary, Fails: fails}, inner
}

// inlined gives the variables of an element their expressions, since CEL declares none within a list.
func (w *writer) inlined(entries []rulecontext.Document, scope jmespath.Scope) (jmespath.Scope, error) {
	for i, entry := range entries {
		at := source.Index("context", i)
		made, err := (&writer{rule: w.rule, scope: scope}).entry(entry)
		if err != nil {
			return scope, source.Located(at, err)
		}
		scope = scope.With(entry.Name, jmespath.Binding{
			Text: made.In(term.Primary), Shape: made.Shape, Missing: made.Missing, Null: made.Null, Fails: made.Fails, Guards: made.Guards,
		})
	}
	return scope, nil
}

// element writes the requirement of an element.
func (w *writer) element(l Loop, scope jmespath.Scope, element term.Term, depth int) (term.Term, error) {
	scope, err := w.inlined(l.Context, scope)
	if err != nil {
		return term.Term{}, err
	}
	made, err := w.body(l, scope, element, depth)
	if err != nil || l.Preconditions == nil {
		return made, err
	}
	holds, err := condition.CompileDemanding(l.Preconditions, scope)
	if err != nil {
		return made, source.Located("preconditions", err)
	}
	return where(holds, made), nil
}

// where is an expression for what a condition selects. A condition that fails is no reason to admit, as it would be
// beside ||.
func where(holds, expression term.Term) term.Term {
	return term.Term{Text: holds.In(term.Or) + " ? " + expression.In(term.Or) + " : true", Rank: term.Ternary, Fails: true}
}

func (w *writer) body(l Loop, scope jmespath.Scope, element term.Term, depth int) (term.Term, error) {
	switch {
	case l.Deny != nil:
		made, doubtful, err := condition.CompileDeny(l.Deny.Conditions, scope)
		w.out.Doubtful = w.out.Doubtful || doubtful
		return made, source.Located("deny.conditions", err)
	case len(l.ForEach) > 0:
		made, err := w.loops(l.ForEach, scope, depth+1)
		return made, source.Located("foreach", err)
	case l.ElementScope != nil && !*l.ElementScope || !element.Is(shape.Object):
		return term.Term{}, &source.Unsupported{Path: "elementScope", Found: "a pattern for another value than the element"}
	case l.Pattern != nil:
		text, err := overlay.Expression(l.Pattern, overlay.Options{Object: element.Text, Untyped: w.rule.Untyped})
		return term.Term{Text: text, Rank: term.Or}, source.Located("pattern", err)
	}
	var alternatives []string
	for i, one := range l.AnyPattern {
		text, err := overlay.Expression(one, overlay.Options{Object: element.Text, OneOfSeveral: true, Untyped: w.rule.Untyped})
		if err != nil {
			return term.Term{}, source.Located(source.Index("anyPattern", i), err)
		}
		alternatives = append(alternatives, "("+text+")")
	}
	return term.Term{Text: strings.Join(alternatives, " || "), Rank: term.Or}, nil
}
