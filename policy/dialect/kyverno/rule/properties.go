package rule

import (
	"errors"
	"maps"
	"slices"

	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// Properties are a rule's `reportProperties`: the author's words for reports, by key. They are
// immutable and safe for concurrent use.
type Properties struct {
	written   map[string]string
	templates map[string]*variable.Template // of those with variables
}

// Data are the entries of a rule's context, and the properties that read them.
type Data struct {
	rulecontext.Entries
	Properties Properties
}

// CompileProperties reads `reportProperties`. Path is its location, for errors.
func CompileProperties(engine *jmespath.Engine, written map[string]string, path string) (Properties, error) {
	p := Properties{written: written, templates: map[string]*variable.Template{}}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(written)) {
		if Plain([]byte(written[key])) {
			continue
		}
		var err error
		p.templates[key], err = variable.Compile(engine, written[key])
		errs = append(errs, field.Below(path+"."+key, err))
	}
	return p, errors.Join(errs...)
}

// In returns the properties with their variables resolved. They decide nothing: a property with a
// variable that cannot be resolved stays as written. The result is not to be changed.
func (p Properties) In(data variable.Context) map[string]string {
	if len(p.templates) == 0 || data == nil {
		return p.written
	}
	resolved := maps.Clone(p.written)
	for key, template := range p.templates {
		if value, err := template.Execute(data); err == nil {
			resolved[key] = jmespath.Text(value)
		}
	}
	return resolved
}

// Found is In with data that is found out only where a property has a variable.
func (p Properties) Found(data func() (variable.Context, error)) map[string]string {
	if len(p.templates) == 0 {
		return p.written
	}
	found, _ := data() // without it they stay as written
	return p.In(found)
}

// With returns the same joined with those of a check, which do not replace the author's.
func (p Properties) With(data variable.Context, of map[string]string) map[string]string {
	own := p.In(data)
	switch {
	case len(of) == 0:
		return own
	case len(own) == 0:
		return of
	}
	joined := maps.Clone(of)
	maps.Copy(joined, own)
	return joined
}
