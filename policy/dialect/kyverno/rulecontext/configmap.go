package rulecontext

import (
	"context"
	"errors"
	"fmt"

	"github.com/quaymaster/quaymaster/internal/waittime"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// configMap is an entry that holds a ConfigMap.
type configMap struct {
	name, namespace *variable.Template
	path            string
	only            string // the one namespace that it may be in; empty means any
	lookup          Lookup
}

func (c compiler) configMap(doc *configMapDocument, path string) (loader, error) {
	if doc.Name == "" {
		return nil, field.Fail(path+".name", "is empty")
	}
	namespace := doc.Namespace
	if namespace == "" {
		namespace = "default"
		if c.Namespace != "" {
			namespace = c.Namespace
		}
	}
	m := &configMap{path: path, only: c.Namespace, lookup: c.Lookup}
	var errs [3]error
	m.name, errs[0] = c.template(doc.Name, path+".name")
	m.namespace, errs[1] = c.template(namespace, path+".namespace")
	if errs[1] == nil && m.namespace.Plain() {
		errs[2] = m.allowed(namespace)
	}
	return m, errors.Join(errs[:]...)
}

// allowed keeps a namespaced Policy in its namespace, because its author may have no right to
// read other namespaces.
func (m *configMap) allowed(namespace string) error {
	if m.only != "" && namespace != m.only {
		return field.Fail(m.path+".namespace", "a Policy in namespace %s cannot read from namespace %s: use a ClusterPolicy", m.only, namespace)
	}
	return nil
}

func (m *configMap) reads(r *reads) {
	r.template(m.name)
	r.template(m.namespace)
}

func (m *configMap) load(ctx context.Context, data variable.Context) (any, error) {
	name, err := text(m.name, data)
	if err != nil {
		return nil, err
	}
	namespace, err := text(m.namespace, data)
	if err != nil {
		return nil, err
	}
	if err := m.allowed(namespace); err != nil {
		return nil, err
	}
	if m.lookup == nil {
		return nil, fmt.Errorf("ConfigMap %s/%s: there is no cluster to read it from; give the ConfigMap as a file", namespace, name)
	}
	defer waittime.Begin(ctx)()
	found, err := m.lookup.ConfigMap(ctx, namespace, name)
	if err != nil {
		return nil, fmt.Errorf("ConfigMap %s/%s: %w", namespace, name, err)
	}
	loaded := map[string]any{"data": map[string]any{}, "metadata": map[string]any{}}
	for _, field := range []string{"data", "metadata"} {
		if found[field] != nil {
			loaded[field] = found[field]
		}
	}
	return loaded, nil
}
