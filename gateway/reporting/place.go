package reporting

import (
	"encoding/json"
	"fmt"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/policyreport"
)

// PlaceOf returns the location of a report, and whether this is its first part.
func PlaceOf(text []byte) (policyreport.Place, bool, error) {
	var r struct {
		Metadata metav1.ObjectMeta     `json:"metadata"`
		Scope    *core.ObjectReference `json:"scope"`
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return policyreport.Place{}, false, fmt.Errorf("read a report: %w", err)
	}
	at := policyreport.Place{Namespace: r.Metadata.Namespace, Name: r.Metadata.Name}
	if s := r.Scope; s != nil {
		at.Scope = report.Resource{APIVersion: s.APIVersion, Kind: s.Kind, Namespace: s.Namespace, Name: s.Name, UID: string(s.UID)}
	}
	_, later := r.Metadata.Annotations[policyreport.PartOfAnnotation]
	return at, !later, nil
}
