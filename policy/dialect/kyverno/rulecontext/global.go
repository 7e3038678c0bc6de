package rulecontext

import (
	"context"
	"errors"
	"fmt"

	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// global is an entry with the data of a GlobalContextEntry.
type global struct {
	name       *variable.Template
	expression *variable.Expression
	globals    Globals
}

func (c compiler) global(doc *globalDocument, path string) (loader, error) {
	if doc.Name == "" {
		return nil, field.Fail(path+".name", "is empty")
	}
	if c.Namespace != "" { // entries hold what is of all namespaces (CVE-2026-100703)
		return nil, field.Fail(path, "a Policy in namespace %s cannot read entries of the whole cluster: use a ClusterPolicy", c.Namespace)
	}
	g := &global{globals: c.Globals}
	var errs [2]error
	g.name, errs[0] = c.template(doc.Name, path+".name")
	g.expression, errs[1] = c.expression(doc.JMESPath, path+".jmesPath")
	return g, errors.Join(errs[:]...)
}

func (g *global) reads(r *reads) {
	r.template(g.name)
	r.expression(g.expression, true)
}

func (g *global) load(ctx context.Context, data variable.Context) (any, error) {
	name, err := text(g.name, data)
	if err != nil {
		return nil, err
	}
	if g.globals == nil {
		return nil, fmt.Errorf("GlobalContextEntry %s: there are none here", name)
	}
	found, err := g.globals.Global(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("GlobalContextEntry %s: %w", name, err)
	}
	return selected(g.expression, found, data)
}
