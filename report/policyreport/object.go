package policyreport

import (
	"slices"
	"strconv"
	"strings"
	"time"

	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/result"
)

// PolicyReport is a PolicyReport or a ClusterPolicyReport of wgpolicyk8s.io/v1alpha2.
// Scope, summary and results have the shape that they have in OpenReports.
type PolicyReport struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Scope   *corev1.ObjectReference    `json:"scope,omitempty"`
	Summary openreports.ReportSummary  `json:"summary"`
	Results []openreports.ReportResult `json:"results,omitempty"`
}

// The labels and annotations of reports.
const (
	ManagedByLabel = "app.kubernetes.io/managed-by"
	// ManagedBy is the value of that label.
	ManagedBy = result.Source
	// PartsAnnotation is the number of parts of a report, on the first of several.
	PartsAnnotation = "quaymaster.dev/parts"
	// PartOfAnnotation names the first part, on all others.
	PartOfAnnotation = "quaymaster.dev/part-of"
	// UnlistedAnnotation holds the tokens of results without an entry.
	UnlistedAnnotation = "quaymaster.dev/unlisted"
	// SpeakersAnnotation is pods where results without resources apply to the pods of the scope,
	// although the scope's kind does not imply pods.
	SpeakersAnnotation = "quaymaster.dev/speakers"
	podsSpeak          = "pods"
)

// The names of properties. They are few, because consumers use them as labels.
const (
	processProperty   = "process"
	kindProperty      = "kind" // of a policy that is neither a ClusterPolicy nor a Policy
	hashProperty      = "policyHash"
	reasonProperty    = "reason"
	exceptionProperty = "exceptions"
	containerProperty = "container"
	imageProperty     = "image"
	digestProperty    = "digest"
	signerProperty    = "signer"
	evidenceProperty  = "evidence"
	// idProperty distinguishes results that Policy Reporter would otherwise treat as one.
	idProperty = "resultID"
)

func isOwn(property string) bool {
	return slices.Contains([]string{
		processProperty, kindProperty, hashProperty, reasonProperty, exceptionProperty, containerProperty, imageProperty, digestProperty,
		signerProperty, evidenceProperty, idProperty,
	}, property)
}

// PartName returns the name of a part of a report, counted from 1.
func PartName(name string, part int) string {
	if part <= 1 {
		return name
	}
	return name + "-" + strconv.Itoa(part)
}

// entryOf converts a result to an entry of a report.
func entryOf(r result.Result) openreports.ReportResult {
	entry := openreports.ReportResult{
		Source: result.Source, Policy: r.Policy.String(), Rule: r.Rule, Category: r.Policy.Category,
		Severity:  openreports.ResultSeverity(r.Policy.Severity),
		Timestamp: metav1.Timestamp{Seconds: r.Time.Unix(), Nanos: int32(r.Time.Nanosecond())}, //nolint:gosec // below 1e9
		Result:    openreports.Result(r.Status), Scored: !r.Policy.Unscored, Description: r.Message, Properties: map[string]string{},
	}
	if r.Resource != (report.Resource{}) {
		entry.Subjects = []corev1.ObjectReference{reference(r.Resource)}
	}
	set := func(name, value string) {
		if value != "" {
			entry.Properties[name] = value
		}
	}
	for name, value := range r.Properties {
		set(name, value)
	}
	if r.Policy.Kind != defaultKind(r.Policy.Namespace != "") {
		set(kindProperty, r.Policy.Kind)
	}
	set(processProperty, string(r.Process))
	set(hashProperty, r.Policy.Hash)
	set(reasonProperty, string(r.Code))
	set(exceptionProperty, r.Exception)
	if r.Image != nil {
		set(containerProperty, r.Image.Container)
		set(imageProperty, r.Image.Written)
		set(digestProperty, r.Image.Digest)
		set(signerProperty, r.Image.Signer)
		set(evidenceProperty, r.Image.Evidence)
	}
	return entry
}

// resultOf converts an entry to a result, and returns false for an entry of another writer. Users
// may have edited the entry.
func resultOf(entry openreports.ReportResult) (result.Result, bool) {
	status := result.Status(entry.Result)
	if entry.Source != result.Source || entry.Policy == "" || !slices.Contains(result.Statuses(), status) || len(entry.Subjects) > 1 {
		return result.Result{}, false
	}
	namespace, name, namespaced := strings.Cut(entry.Policy, "/")
	if !namespaced {
		namespace, name = "", entry.Policy
	}
	of := entry.Properties
	made := result.Result{
		Policy: result.Policy{
			Kind: of[kindProperty], Namespace: namespace, Name: name, Category: entry.Category, Severity: string(entry.Severity),
			Hash: of[hashProperty], Unscored: !entry.Scored,
		},
		Rule: entry.Rule, Status: status, Code: policy.Code(of[reasonProperty]), Message: entry.Description, Exception: of[exceptionProperty],
		Time: time.Unix(entry.Timestamp.Seconds, int64(entry.Timestamp.Nanos)).UTC(), Process: report.Process(of[processProperty]), Properties: of,
		Image: &result.Image{
			Container: of[containerProperty], Written: of[imageProperty], Digest: of[digestProperty], Signer: of[signerProperty], Evidence: of[evidenceProperty],
		},
	}
	if len(entry.Subjects) == 1 {
		made.Resource = resourceOf(entry.Subjects[0])
		if made.Resource.Kind == "" || made.Resource.Name == "" {
			return result.Result{}, false
		}
	}
	return bounded(made), true
}

func defaultKind(namespaced bool) string {
	if namespaced {
		return "Policy"
	}
	return "ClusterPolicy"
}

func reference(of report.Resource) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: of.APIVersion, Kind: of.Kind, Namespace: of.Namespace, Name: of.Name, UID: types.UID(of.UID)}
}

func resourceOf(of corev1.ObjectReference) report.Resource {
	return report.Resource{APIVersion: of.APIVersion, Kind: of.Kind, Namespace: of.Namespace, Name: of.Name, UID: string(of.UID)}
}
