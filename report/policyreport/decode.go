package policyreport

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/quaymaster/quaymaster/report/policyreport/internal/merge"

	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/result"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ErrForeign is returned for an object that has the name of a report and was made by
// somebody else.
var ErrForeign = errors.New("the report was made by somebody else")

// original is a part as it was read.
type original struct {
	api  API
	meta metav1.ObjectMeta
	// essence tells apart what readers see.
	essence [sha256.Size]byte
}

// Parts returns of how many parts a report is, by its first one.
func Parts(first []byte) int {
	var object struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	if len(first) > maxRead || json.Unmarshal(first, &object) != nil {
		return 1
	}
	n, err := strconv.Atoi(object.Metadata.Annotations[PartsAnnotation])
	if err != nil {
		return 1
	}
	return min(max(n, 1), MaxParts)
}

// Decode reads the parts of a report, which Encode made once and anybody may have
// edited since: what makes no sense is left out, and comes back with the next look at
// the object. An error means that a part is no report of a known API, is larger than
// any that can be stored, or is not ours (ErrForeign).
func Decode(at Place, show Selection, parts [][]byte) (*Report, error) {
	r := New(at, show)
	for _, text := range parts {
		object, api, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("read the report %s/%s: %w", at.Namespace, at.Name, err)
		}
		r.read = append(r.read, original{api: api, meta: kept(object.ObjectMeta), essence: essence(object)})
		if !sameScope(object.Scope, at.Scope) {
			continue // of an object that had the name before
		}
		r.said.Pods = r.said.Pods || object.Annotations[SpeakersAnnotation] == podsSpeak
		maps.Copy(r.said.Unlisted, merge.ParseTokens(object.Annotations[UnlistedAnnotation]))
		r.include(object.Results)
	}
	r.said.ForgetUseless()
	return r, nil
}

func parse(text []byte) (PolicyReport, API, error) {
	if len(text) > maxRead {
		return PolicyReport{}, "", fmt.Errorf("it has %d bytes: want at most %d", len(text), maxRead)
	}
	var object PolicyReport
	if err := json.Unmarshal(text, &object); err != nil {
		return PolicyReport{}, "", err
	}
	api, ok := apiOf(object.APIVersion, object.Kind)
	switch {
	case !ok:
		return PolicyReport{}, "", fmt.Errorf("%s %s is no report: want one of %v", object.APIVersion, object.Kind, APIs())
	case object.Labels[ManagedByLabel] != ManagedBy:
		return PolicyReport{}, "", fmt.Errorf("%w: its label %s is %q", ErrForeign, ManagedByLabel, object.Labels[ManagedByLabel])
	}
	return object, api, nil
}

// kept is what an update sends back of a part's metadata.
func kept(of metav1.ObjectMeta) metav1.ObjectMeta {
	annotations := maps.Clone(of.Annotations)
	maps.DeleteFunc(annotations, func(name, _ string) bool {
		return slices.Contains([]string{PartsAnnotation, PartOfAnnotation, UnlistedAnnotation, SpeakersAnnotation}, name)
	})
	return metav1.ObjectMeta{
		Name: of.Name, UID: of.UID, ResourceVersion: of.ResourceVersion, Labels: of.Labels, Annotations: annotations, Finalizers: of.Finalizers,
		OwnerReferences: of.OwnerReferences,
	}
}

// keepIn adds what others have written to the metadata of a part that is updated.
func (o original) keepIn(meta *metav1.ObjectMeta) {
	meta.UID, meta.ResourceVersion, meta.Finalizers = o.meta.UID, o.meta.ResourceVersion, o.meta.Finalizers
	meta.Labels = joined(o.meta.Labels, meta.Labels)
	meta.Annotations = joined(o.meta.Annotations, meta.Annotations)
	for _, owner := range o.meta.OwnerReferences {
		if !slices.ContainsFunc(meta.OwnerReferences, func(own metav1.OwnerReference) bool { return own.UID == owner.UID }) {
			meta.OwnerReferences = append(meta.OwnerReferences, owner)
		}
	}
}

func joined(theirs, ours map[string]string) map[string]string {
	all := maps.Clone(theirs)
	if all == nil {
		return ours
	}
	maps.Copy(all, ours)
	return all
}

// essence hashes what readers see of a part: everything but its version, and how and
// when its results came about.
func essence(o PolicyReport) [sha256.Size]byte {
	o.TypeMeta = metav1.TypeMeta{}
	o.ObjectMeta = metav1.ObjectMeta{
		Labels: o.Labels, Annotations: o.Annotations, OwnerReferences: o.OwnerReferences,
	}
	o.Results = slices.Clone(o.Results)
	for i := range o.Results {
		each := &o.Results[i]
		each.Timestamp = metav1.Timestamp{}
		each.Properties = maps.Clone(each.Properties)
		delete(each.Properties, processProperty)
		delete(each.Properties, evidenceProperty)
		if each.Result == "error" {
			each.Description = "" // as alike has it
		}
	}
	text, err := json.Marshal(o)
	if err != nil {
		return [sha256.Size]byte{} // equal to no other
	}
	return sha256.Sum256(text)
}

// include takes in what a part says.
func (r *Report) include(entries []openreports.ReportResult) {
	for _, entry := range entries {
		if w, ok := resultOf(entry); ok {
			r.said.Include(w)
		}
	}
}

// Results returns what one part of a report says, which Encode made once and anybody may
// have edited since: what makes no sense is left out. Each result is about the object
// that it names, which runs for the report's scope where the two differ; one that names
// none is about the scope. What is about another namespace than the report's is left out,
// since who may write reports in one has no say about others. An error is as Decode's.
func Results(part []byte) ([]result.Result, error) {
	object, _, err := parse(part)
	if err != nil {
		return nil, fmt.Errorf("read a report: %w", err)
	}
	var scope report.Resource
	if object.Scope != nil {
		scope = resourceOf(*object.Scope)
	}
	var results []result.Result
	for _, entry := range object.Results {
		r, ok := resultOf(entry)
		switch {
		case !ok, r.Resource.Name == "" && scope.Name == "":
			continue
		case r.Resource.Name == "":
			r.Resource = scope
		case scope.Name != "" && merge.Identity(r.Resource) != merge.Identity(scope):
			r.Resource.Owner = &report.Owner{APIVersion: scope.APIVersion, Kind: scope.Kind, Name: scope.Name, UID: scope.UID}
		}
		if r.Resource.Namespace == object.Namespace {
			results = append(results, r)
		}
	}
	return results, nil
}
