package report

import (
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
)

// Process says what kind of work came to a decision. The words are a contract: they
// stand in reports and in the decision log, spelt as readers of reports know them.
type Process string

// The processes.
const (
	ProcessAdmission Process = "admission review"
	ProcessScan      Process = "background scan"
	ProcessCommand   Process = "command line"
	// ProcessShadow is what reports call an admission review of which nothing came.
	ProcessShadow Process = "admission review in shadow"
)

// Occasion is when and for whom something was decided.
type Occasion struct {
	Time    time.Time
	Process Process
	// Door is the way by which the question came, as in validate; empty for a scan.
	Door string
	// UID is the request's, the key by which the API server's audit log knows it too.
	UID string
	// Operation is what the request would do, as in CREATE; empty where there is none.
	Operation string
	// User and Groups are who asked; empty where nobody knows.
	User   string
	Groups []string
	// DryRun: nothing comes of the request.
	DryRun bool
	// Allowed is what who asked was told, which a shadow, a mirror pod or a failure
	// setting may have made of the answer.
	Allowed bool
	// Shadow: who asked was told yes whatever the outcome, and nothing was changed.
	Shadow bool
	// Undecided says why nobody could decide (a queue that was full, a time that was
	// up, a request that makes no sense); empty where there is an outcome.
	Undecided string
}

// OnlyAsked reports whether somebody asked at a door that is no webhook's: the object need
// not be in the cluster, nor be there as it was told.
func (o Occasion) OnlyAsked() bool { return o.Process == ProcessAdmission && o.Operation == "" }

// Decided is one outcome with its occasion: what every Sink is handed. Nobody changes it.
type Decided struct {
	Occasion Occasion
	// Outcome is zero where Occasion.Undecided says why.
	Outcome gate.Outcome
	// About names the object where there is no outcome.
	About Resource
}

// Resource returns the object that it is about. It reads the object, which may have to
// be decoded first, so that a Sink asks for it after Take.
func (d Decided) Resource() Resource {
	if d.Outcome.Subject == nil {
		return d.About
	}
	return ResourceOf(d.Outcome)
}

// Sink keeps what was decided, or passes it on: the decision log, reports in the
// cluster, the dashboard. Take is called on the path of requests, from many
// goroutines: it waits for nobody, and changes nothing in what it is handed.
type Sink interface {
	Take(d Decided)
}

// Resource is an object as it is known to its cluster.
type Resource struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name,omitempty"`
	// UID is empty for an object that is not in a cluster yet, or never will be.
	UID string `json:"uid,omitempty"`
	// Owner is the controller that made the object; nil where none says so. It is the
	// object's own word.
	Owner *Owner `json:"owner,omitempty"`
}

// Owner is the controller of an object, in the object's namespace or in none.
type Owner struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
}

// ResourceOf returns the object of an outcome. Where the object has no name yet, its
// generateName stands for it, with a star.
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

// metadataOf returns the metadata of the object, or at its deletion of what it was.
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
