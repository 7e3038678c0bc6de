package report

import (
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
)

// Process is the process that made a decision. The values are a contract: reports and the
// decision log contain them, in the spelling that consumers of reports expect.
type Process string

// The processes.
const (
	ProcessAdmission Process = "admission review"
	ProcessScan      Process = "background scan"
	ProcessCommand   Process = "command line"
	// ProcessShadow is the process, in reports, of an admission review whose outcome is not
	// enforced.
	ProcessShadow Process = "admission review in shadow"
	// ProcessBackground is the process of rules about other objects: generate and mutate-existing.
	ProcessBackground Process = "background controller"
)

// Occasion is the context of a decision: the time, the process and the request.
type Occasion struct {
	Time    time.Time
	Process Process
	// Endpoint is the endpoint of the request, as in validate; empty for a scan.
	Endpoint string
	// UID is the request's UID, which the API server's audit log records, too.
	UID string
	// Operation is the operation of the request, as in CREATE; empty where there is none.
	Operation string
	// User and Groups identify the requesting user; empty where unknown.
	User   string
	Groups []string
	// DryRun: the request is not persisted.
	DryRun bool
	// Allowed is the response. A shadow, a mirror pod or a failure setting may override the
	// outcome.
	Allowed bool
	// Shadow: the response allows the request whatever the outcome, and no object is mutated.
	Shadow bool
	// Undecided is the reason why there is no decision (a full queue, a timeout, a malformed
	// request); empty where there is an outcome.
	Undecided string
}

// OnlyAsked reports whether the request came through an endpoint that is not a webhook. The
// object may then differ from the cluster's, or not exist there.
func (o Occasion) OnlyAsked() bool { return o.Process == ProcessAdmission && o.Operation == "" }

// Decided is one outcome with its occasion, as passed to every Sink. It is immutable.
type Decided struct {
	Occasion Occasion
	// Outcome is zero where Occasion.Undecided is set.
	Outcome gate.Outcome
	// About names the object where there is no outcome.
	About Resource
}

// Resource returns the object of the decision. It reads the object, which may have to be decoded
// first, so a Sink calls it after Take.
func (d Decided) Resource() Resource {
	if d.Outcome.Subject == nil {
		return d.About
	}
	return ResourceOf(d.Outcome)
}

// Sink stores or forwards decisions: the decision log, reports in the cluster, the dashboard.
// Take is called concurrently on the path of requests. It must not block and must not modify its
// argument.
type Sink interface {
	Take(d Decided)
}

// Resource identifies an object in its cluster.
type Resource struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name,omitempty"`
	// UID is empty for an object that is not in a cluster.
	UID string `json:"uid,omitempty"`
	// Owner is the controller that created the object, as the object's own metadata claims; nil
	// where it claims none.
	Owner *Owner `json:"owner,omitempty"`
}

// Owner is the controller of an object, in the object's namespace or in none.
type Owner struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
}

// ResourceOf returns the object of an outcome. For an object without a name, it returns
// generateName followed by a star.
func ResourceOf(o gate.Outcome) Resource {
	s := o.Subject
	if s == nil {
		return Resource{}
	}
	r := Resource{APIVersion: s.Version, Kind: s.Kind, Namespace: s.Namespace, Name: s.Name}
	if s.Group != "" {
		r.APIVersion = s.Group + "/" + s.Version
	}
	metadata := metadataOf(s)
	r.UID = textOf(metadata, "uid")
	if r.Name == "" {
		if prefix := textOf(metadata, "generateName"); prefix != "" {
			r.Name = prefix + "*"
		}
	}
	owners, _ := metadata["ownerReferences"].([]any)
	for _, each := range owners {
		owner, _ := each.(map[string]any)
		if isController, _ := owner["controller"].(bool); isController {
			r.Owner = &Owner{
				APIVersion: textOf(owner, "apiVersion"), Kind: textOf(owner, "kind"),
				Name: textOf(owner, "name"), UID: textOf(owner, "uid"),
			}
			break
		}
	}
	return r
}

// metadataOf returns the metadata of the object, or on deletion of the old object.
func metadataOf(s *policy.Subject) map[string]any {
	content := s.Object
	if content.IsZero() {
		content = s.OldObject
	}
	metadata, _ := content.Map()["metadata"].(map[string]any)
	return metadata
}

func textOf(of map[string]any, name string) string {
	text, _ := of[name].(string)
	return text
}
