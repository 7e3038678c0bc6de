package policyreport

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/quaymaster/quaymaster/report/policyreport/internal/merge"

	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"

	corev1 "k8s.io/api/core/v1"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/result"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// page is the content of one part.
type page struct {
	entries  []openreports.ReportResult
	unlisted map[merge.Token]result.Status
}

// entries returns the entries of the report. Policy Reporter identifies a result by the report's
// scope, or without one by its resource, and by its content. Equal results of several objects or
// containers therefore have an ID.
func (r *Report) entries() []openreports.ReportResult {
	type known struct{ who, policy, rule, result, category, message string }
	results := r.content.All()
	entries := make([]openreports.ReportResult, len(results))
	by := make([]known, len(results))
	times := map[known]int{}
	for i, w := range results {
		who := ""
		if r.place.Scope.Name == "" {
			who = merge.Identity(w.Resource)
		}
		entries[i] = entryOf(w)
		by[i] = known{who, w.Policy.String(), w.Rule, string(w.Status), w.Policy.Category, w.Message}
		times[by[i]]++
	}
	for i, w := range results {
		if times[by[i]] == 1 {
			continue
		}
		who := r.place.Scope
		if w.Resource != (report.Resource{}) {
			who = w.Resource
		}
		entries[i].Properties[idProperty] = merge.Code(w, who)
	}
	return entries
}

// split divides the content into pages within the limits.
func (r *Report) split(limits Limits) ([]page, error) {
	empty, err := json.Marshal(openReport(r.object(page{}, MaxParts, MaxParts)))
	if err != nil {
		return nil, err
	}
	const frame = len(`"annotations":{"`+UnlistedAnnotation+`":"pass= fail= warn= error= skip= . . . . ."},"results":[],`) + 5*len("99999")
	room := limits.Bytes - len(empty) - frame - r.foreign()
	if room < MinBytes/2 {
		return nil, fmt.Errorf("labels and annotations that others have added leave %d bytes in a report of %d", room, limits.Bytes)
	}
	var pages []page
	left, results := 0, 0
	next := func(size int) *page {
		if size > left {
			pages = append(pages, page{unlisted: map[merge.Token]result.Status{}})
			left, results = room, 0
		}
		left -= size
		return &pages[len(pages)-1]
	}
	for _, entry := range r.entries() {
		text, err := json.Marshal(entry)
		if err != nil {
			return nil, err
		}
		if results == limits.Results {
			left = 0
		}
		of := next(len(text) + len(","))
		of.entries = append(of.entries, entry)
		results++
	}
	for _, t := range r.content.Tokens() {
		next(len(t.String())).unlisted[t] = r.content.Unlisted[t]
	}
	if len(pages) > MaxParts {
		return nil, errTooLarge
	}
	return pages, nil
}

// foreign is the maximum size of other writers' additions to a part.
func (r *Report) foreign() int {
	most := 0
	for _, each := range r.read {
		text, err := json.Marshal(metav1.ObjectMeta{
			Labels: each.meta.Labels, Annotations: each.meta.Annotations, Finalizers: each.meta.Finalizers, OwnerReferences: each.meta.OwnerReferences,
		})
		if err == nil {
			most = max(most, len(text))
		}
	}
	return most
}

// object creates one part from a page.
func (r *Report) object(of page, number, parts int) PolicyReport {
	o := PolicyReport{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.place.Namespace, Name: PartName(r.place.Name, number), Labels: map[string]string{ManagedByLabel: ManagedBy},
		},
		Results: of.entries,
	}
	annotate := func(name, value string) {
		if o.Annotations == nil {
			o.Annotations = map[string]string{}
		}
		o.Annotations[name] = value
	}
	if number == 1 && parts > 1 || number == MaxParts {
		annotate(PartsAnnotation, strconv.Itoa(parts))
	}
	if number > 1 {
		annotate(PartOfAnnotation, r.place.Name)
	}
	if r.content.Pods && !hasPods(r.place.Scope) {
		annotate(SpeakersAnnotation, podsSpeak)
	}
	if len(of.unlisted) > 0 {
		annotate(UnlistedAnnotation, merge.FormatTokens(of.unlisted))
	}
	if scope := r.place.Scope; scope.Name != "" {
		named := reference(scope)
		o.Scope = &named
		if scope.UID != "" {
			o.OwnerReferences = []metav1.OwnerReference{{APIVersion: scope.APIVersion, Kind: scope.Kind, Name: scope.Name, UID: types.UID(scope.UID)}}
		}
	}
	o.Summary = r.summary(of)
	return o
}

func (r *Report) summary(of page) openreports.ReportSummary {
	counts := map[result.Status]int{}
	for _, each := range of.entries {
		counts[result.Status(each.Result)]++
	}
	for _, status := range of.unlisted {
		if r.content.Counts(status) {
			counts[status]++
		}
	}
	return openreports.ReportSummary{
		Pass: counts[result.Pass], Fail: counts[result.Fail], Warn: counts[result.Warn], Error: counts[result.Error], Skip: counts[result.Skip],
	}
}

func openReport(o PolicyReport) openreports.Report {
	return openreports.Report{TypeMeta: o.TypeMeta, ObjectMeta: o.ObjectMeta, Source: result.Source, Scope: o.Scope, Summary: o.Summary, Results: o.Results}
}

// sameScope reports whether a report's scope is that of its place.
func sameScope(of *corev1.ObjectReference, scope report.Resource) bool {
	if of == nil {
		return scope.Name == ""
	}
	return merge.Identity(resourceOf(*of)) == merge.Identity(scope)
}
