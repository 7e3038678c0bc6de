package policyreport

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/quaymaster/quaymaster/internal/strictjson"
	"github.com/quaymaster/quaymaster/report/policyreport/internal/merge"

	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/result"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ErrForeign is returned for an object with the name of a report and another creator.
var ErrForeign = errors.New("the report belongs to another program")

// original is a part as it was read.
type original struct {
	api  API
	meta metav1.ObjectMeta
	// essence is the hash of the visible content.
	essence [sha256.Size]byte
}

// Parts returns the number of parts of a report, from its first part.
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

// Decode reads the parts of a report. Encode wrote them, and users may have edited them since:
// invalid content is ignored, and the next evaluation of the object restores it. It fails if a
// part is no report of a known API, exceeds the largest storable size, or was created by another
// program (ErrForeign).
func Decode(at Place, show Selection, parts [][]byte) (*Report, error) {
	r := New(at, show)
	for _, text := range parts {
		object, api, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("read the report %s/%s: %w", at.Namespace, at.Name, err)
		}
		r.read = append(r.read, original{api: api, meta: kept(object.ObjectMeta), essence: essence(object)})
		if !sameScope(object.Scope, at.Scope) {
			continue // of an earlier object with the same name
		}
		r.content.Pods = r.content.Pods || object.Annotations[SpeakersAnnotation] == podsSpeak
		maps.Copy(r.content.Unlisted, merge.ParseTokens(object.Annotations[UnlistedAnnotation]))
		r.include(object.Results)
	}
	r.content.ForgetUseless()
	return r, nil
}

func parse(text []byte) (PolicyReport, API, error) {
	if len(text) > maxRead {
		return PolicyReport{}, "", fmt.Errorf("it has %d bytes: want at most %d", len(text), maxRead)
	}
	var object PolicyReport
	if err := json.Unmarshal(text, &object); err != nil {
		return PolicyReport{}, "", strictjson.Readable(err)
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

// kept returns the metadata of a part that an update retains.
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

// keepIn adds the metadata of other writers to an updated part.
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

// essence hashes the visible content of a part: everything but its version, and the process and
// time of its results.
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
			each.Description = "" // alike ignores it, too
		}
	}
	text, err := json.Marshal(o)
	if err != nil {
		return [sha256.Size]byte{} // equal to no other
	}
	return sha256.Sum256(text)
}

// include adds the results of a part.
func (r *Report) include(entries []openreports.ReportResult) {
	for _, entry := range entries {
		if w, ok := resultOf(entry); ok {
			r.content.Include(w)
		}
	}
}

// Results returns the results of one part of a report. Encode wrote it, and users may have edited
// it since: invalid content is ignored. Each result applies to the object that it names, with the
// report's scope as its owner where the two differ, or to the scope where it names none. Results
// for another namespace than the report's are left out, since write access to reports in one
// namespace grants nothing in others. It fails like Decode.
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
