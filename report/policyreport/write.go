package policyreport

import (
	"fmt"
	"io"
	"maps"
	"slices"

	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/result"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Write writes the results of decisions as YAML documents of an API, one for each namespace, in
// the order of namespaces. Within a document, results keep the given order. Results of
// cluster-scoped objects are in a cluster report, which is also written, empty, if there are no
// results at all. Each result names its resource, except for an image without an object. Commands
// use it: it merges nothing.
func Write(w io.Writer, api API, decided []report.Decided) error {
	if !slices.Contains(APIs(), api) {
		return fmt.Errorf("write reports of %q: want one of %v", api, APIs())
	}
	entries := map[string][]openreports.ReportResult{}
	for _, d := range decided {
		for _, r := range result.Of(d) {
			r = bounded(r)
			namespace := r.Resource.Namespace
			if r.Resource.Name == "" {
				r.Resource = report.Resource{}
			}
			entries[namespace] = append(entries[namespace], entryOf(r))
		}
	}
	if len(entries) == 0 {
		entries[""] = nil
	}
	for i, namespace := range slices.Sorted(maps.Keys(entries)) {
		object := New(Place{Namespace: namespace, Name: ofAll}, Selection{}).object(page{entries: entries[namespace]}, 1, 1)
		object.TypeMeta = metav1.TypeMeta{APIVersion: string(api), Kind: api.Kind(namespace)}
		if err := writeDocument(w, api, object, i > 0); err != nil {
			return fmt.Errorf("write reports of %s: %w", api, err)
		}
	}
	return nil
}

func writeDocument(w io.Writer, api API, object PolicyReport, follows bool) error {
	text, err := marshal(api, object)
	if err != nil {
		return err
	}
	text, err = yaml.JSONToYAML(text)
	if err != nil {
		return err
	}
	if follows {
		text = append([]byte("---\n"), text...)
	}
	_, err = w.Write(text)
	return err
}
