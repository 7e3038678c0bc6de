package setup

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/manifest"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/workload"
)

// CompileEach compiles the documents of files and folders one by one, so that a broken one does not hide
// the others. The error is about files that cannot be read.
func (f *Flags) CompileEach(t command.Terminal, names []string) ([]catalog.Entry, error) {
	known, err := LoadResources(t, f.Resources)
	if err != nil {
		return nil, err
	}
	var objects []workload.Object
	for _, name := range names {
		read, err := manifest.ReadPolicies(name, t.In)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		objects = append(objects, read...)
	}
	isPolicy := func(o workload.Object) bool {
		return policy.IsDocument(o.Group()) && o.Kind() != "RegistryMirror" && o.Kind() != "GlobalContextEntry"
	}
	if !slices.ContainsFunc(objects, isPolicy) {
		return nil, fmt.Errorf("%s: no policy in it", strings.Join(names, ", "))
	}
	compiled, err := engine.CompileDocuments(slices.DeleteFunc(slices.Clone(objects), func(o workload.Object) bool { return !isUsed(o) }), known, true, nil)
	if err != nil {
		return nil, err
	}
	made, err := catalog.New(catalog.Options{
		Dialects: compiled.Compilers.Dialects(), Exceptions: compiled.Compilers.Exceptions(), ExceptionNamespaces: []string{"*"},
		Overrides: compiled.Compilers.Overrides(), TrustRoots: compiled.Compilers.TrustRoots,
	})
	if err != nil {
		return nil, err
	}
	var documents []catalog.Document
	for i, o := range objects {
		if !isPolicy(o) {
			continue
		}
		text, err := json.Marshal(o.Content())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.Source(), err)
		}
		documents = append(documents, catalog.Document{Key: fmt.Sprintf("%06d", i), Text: text, Source: o.Source()})
	}
	return made.Put(documents...).Entries, nil
}
