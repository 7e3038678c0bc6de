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

// Write writes the results of what was decided as YAML documents of an API, one for each
// namespace, in the order of namespaces, and in it all results in the order in which they
// are given. What is in no namespace is in a report of the cluster, which is written
// with no result where there is none at all. Each result names its resource, but for an
// image that was named alone. It is what a command writes: nothing is merged.
func Write(w io.Writer, api API, decided []report.Decided) error {
	if !slices.Contains(APIs(), api) {
		return fmt.Errorf("write reports of %q: want one of %v", api, APIs())
	}
	entries := map[string][]openreports.ReportResult{}
	for _, d := range decided {
		for _, r := range result.Of(d) {
			r = worded(r)
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
	if text, err = yaml.JSONToYAML(text); err != nil {
		return err
	}
	if follows {
		text = append([]byte("---\n"), text...)
	}
	_, err = w.Write(text)
	return err
}
