package offline

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway/documents"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway/lookups"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/gateway/discovery"
	"github.com/quaymaster/quaymaster/gateway/kinds"
	"github.com/quaymaster/quaymaster/gateway/mirrors"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/globalcontext"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/webhook/configuration"
	"github.com/quaymaster/quaymaster/workload"
)

// Material is the input of a gateway from a cluster and from folders, for another gateway without
// them.
type Material struct {
	// Policies are policies, exceptions, overrides and TrustRoots. Keys order them: of two for
	// the same name, the first has precedence.
	Policies []Written
	Mirrors  []Written
	// Resources are ConfigMaps, Secrets and Namespaces that policies look up.
	Resources []workload.Object
	// Kinds are the resources that the API server serves; nil means only those of Kubernetes
	// itself.
	Kinds []configuration.Resource
	// Globals are the entries of the global context.
	Globals []GlobalValue
}

// Written is a document as written.
type Written struct {
	Key, Source string
	Text        []byte
}

// GlobalValue is a GlobalContextEntry and its value.
type GlobalValue struct {
	Name     string          `json:"name"`
	Document json.RawMessage `json:"document"`
	// Value is empty if it was not available; Why is then the reason.
	Value json.RawMessage `json:"value,omitempty"`
	Why   string          `json:"why,omitempty"`
}

// lookUps stores the resources.
func (m *Material) lookUps(into *lookups.Files) error {
	known := engine.NewResources().Advising("the bundle does not have it: make it again with --resource FILE")
	into.Current.Store(known)
	var errs []error
	for _, object := range m.Resources {
		errs = append(errs, known.Add(object))
	}
	return errors.Join(errs...)
}

// adjust makes policies use the material.
func (m *Material) adjust(options *engine.CompilerOptions) error {
	if m.Kinds != nil {
		options.Kinds = constraint.Later(fixedKinds(m.Kinds))
	}
	expressions, err := jmespath.New(jmespath.Options{Now: options.Now, Random: rand.Reader})
	if err != nil {
		return err
	}
	compiler, err := globalcontext.NewCompiler(expressions)
	if err != nil {
		return err
	}
	store := globalcontext.NewStore(options.Now)
	for _, one := range m.Globals {
		if err := one.answer(compiler, store); err != nil {
			return fmt.Errorf("global context entry %s: %w", one.Name, err)
		}
	}
	options.Globals = engine.Globals{Expressions: globalcontext.Expressions{Store: store}}
	return nil
}

func (v GlobalValue) answer(compiler *globalcontext.Compiler, store *globalcontext.Store) error {
	entry, err := compiler.Compile(v.Document)
	if err != nil {
		store.Break(v.Name, err)
		return nil // as at admission: rules that read it are indeterminate
	}
	if err := store.Put(entry); err != nil {
		return err
	}
	if len(v.Value) == 0 {
		store.Fail(entry.Name, entry.Hash, errors.New(cmp.Or(v.Why, "value unknown")))
		return nil
	}
	var value any
	if err := utiljson.Unmarshal(v.Value, &value); err != nil { // integers stay integers
		return err
	}
	return store.Answer(entry.Name, entry.Hash, value)
}

// namespacePage is the number of namespaces in one response, as in kubectl.
const namespacePage = 500

// fixedKinds are resources as listed by an API server.
type fixedKinds []configuration.Resource

// Named implements constraint.Resources.
func (f fixedKinds) Named(group, name string) []constraint.Resource {
	return discovery.Named(f, group, name)
}

// fill publishes the documents.
func (m *Material) fill(into *documents.Documents) error {
	list := make([]catalog.Document, len(m.Policies))
	for i, d := range m.Policies {
		list[i] = catalog.Document{Key: d.Key, Source: d.Source, Text: d.Text}
	}
	into.Policies.Fill(list)
	given := make([]mirrors.Written, len(m.Mirrors))
	for i, d := range m.Mirrors {
		given[i] = mirrors.Written(d)
	}
	return into.Mirrors.Fill(given)
}

// Export returns the material of a Reader of a cluster, with the namespaces' labels as its only
// resources. The caller adds the content of folders.
func (r *Reader) Export(ctx context.Context) (*Material, error) {
	if r.around.Cluster == nil {
		return nil, errors.New("export: there is no cluster")
	}
	m := &Material{}
	texts := r.Texts()
	for _, entry := range r.Entries() {
		if text, ok := texts[entry.Key]; ok { // of the cluster, and not of a folder
			m.Policies = append(m.Policies, Written{Key: entry.Key, Source: entry.Source, Text: text})
		}
	}
	for _, d := range r.documents.Mirrors.Documents() {
		m.Mirrors = append(m.Mirrors, Written(d))
	}
	m.Kinds = slices.Clone(r.documents.Kinds.Resources())
	m.Globals = r.globalValues()
	var err error
	m.Resources, err = r.namespaces(ctx)
	return m, err
}

// Texts are the documents of policies of the cluster, by the keys of their entries.
func (r *Reader) Texts() map[string][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	texts := map[string][]byte{}
	for key, raw := range r.seen {
		if kinds.IsPolicy(key) {
			texts[kinds.ClusterKey(key)] = raw
		}
	}
	return texts
}

func (r *Reader) globalValues() []GlobalValue {
	r.mu.Lock()
	documents := map[string][]byte{}
	for key, raw := range r.seen {
		if kinds.IsGlobalContext(key) {
			documents[key.Name] = raw
		}
	}
	r.mu.Unlock()
	var list []GlobalValue
	for _, name := range slices.Sorted(maps.Keys(documents)) {
		one := GlobalValue{Name: name, Document: documents[name]}
		value, err := r.documents.Globals.Store.GetNative(name, "")
		if err == nil {
			one.Value, err = json.Marshal(value)
		}
		if err != nil {
			one.Why = err.Error()
		}
		list = append(list, one)
	}
	return list
}

// namespaces lists all of them with their labels.
func (r *Reader) namespaces(ctx context.Context) ([]workload.Object, error) {
	at := r.around.Cluster.Client.Metadata.Resource(core.SchemeGroupVersion.WithResource("namespaces"))
	var list []workload.Object
	options := metav1.ListOptions{Limit: namespacePage}
	for {
		page, err := at.List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("list namespaces: %w", err)
		}
		for i := range page.Items {
			object, err := namespaceObject(page.Items[i].Name, page.Items[i].Labels)
			if err != nil {
				return nil, err
			}
			list = append(list, object)
		}
		options.Continue = page.Continue
		if options.Continue == "" {
			return list, nil
		}
	}
}

func namespaceObject(name string, labels map[string]string) (workload.Object, error) {
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name, "labels": labels},
	})
	if err != nil {
		return workload.Object{}, err
	}
	return workload.Parse(text)
}
