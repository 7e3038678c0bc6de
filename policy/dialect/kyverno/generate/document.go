package generate

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
)

// generateDocument is `generate` as it is written.
type generateDocument struct {
	Synchronize      bool           `json:"synchronize"`
	Orphan           bool           `json:"orphanDownstreamOnPolicyDelete"`
	GenerateExisting *bool          `json:"generateExisting"`
	ForEach          []makeDocument `json:"foreach"`
	objectDocument
}

// objectDocument is one object that is to be there, or several with cloneList.
type objectDocument struct {
	APIVersion string             `json:"apiVersion"`
	Kind       string             `json:"kind"`
	Name       string             `json:"name"`
	Namespace  string             `json:"namespace"`
	Data       any                `json:"data"`
	Clone      *cloneDocument     `json:"clone"`
	CloneList  *cloneListDocument `json:"cloneList"`
}

type cloneDocument struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

type cloneListDocument struct {
	Namespace string                `json:"namespace"`
	Kinds     []string              `json:"kinds"`
	Selector  *metav1.LabelSelector `json:"selector"`
}

func (d objectDocument) empty() bool {
	return d.APIVersion == "" && d.Kind == "" && d.Name == "" && d.Namespace == "" && d.Data == nil && d.Clone == nil && d.CloneList == nil
}

// loopDocument holds the common fields of every foreach.
type loopDocument struct {
	List          string                 `json:"list"`
	Context       []rulecontext.Document `json:"context"`
	Preconditions any                    `json:"preconditions"`
}

type makeDocument struct {
	loopDocument
	objectDocument
}

// alterDocument is `mutate` with targets as it is written. The changes of a target are read
// elsewhere.
type alterDocument struct {
	OnPolicyUpdate      *bool            `json:"mutateExistingOnPolicyUpdate"`
	Targets             []targetDocument `json:"targets"`
	ForEach             any              `json:"foreach"`
	PatchStrategicMerge any              `json:"patchStrategicMerge"`
	PatchesJSON6902     any              `json:"patchesJson6902"`
}

type targetDocument struct {
	APIVersion    string                 `json:"apiVersion"`
	Kind          string                 `json:"kind"`
	Name          string                 `json:"name"`
	Namespace     string                 `json:"namespace"`
	Selector      *match.Selector        `json:"selector"`
	Context       []rulecontext.Document `json:"context"`
	Preconditions any                    `json:"preconditions"`
}
