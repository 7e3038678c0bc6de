package manifests

import "github.com/quaymaster/quaymaster/policy/dialect/kyverno/verifyimages/imageverification"

// Document is validate.manifests as it is written.
type Document struct {
	Attestors        []imageverification.AttestorSet `json:"attestors"`
	AnnotationDomain string                          `json:"annotationDomain"`
	IgnoreFields     []ignoredFields                 `json:"ignoreFields"`
	DryRun           dryRun                          `json:"dryRun"`
	Repository       string                          `json:"repository"`
}

type ignoredFields struct {
	Fields  []string          `json:"fields"`
	Objects []objectReference `json:"objects"`
}

type objectReference struct {
	Group     string `json:"group"`
	Version   string `json:"version"`
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

type dryRun struct {
	Enable    bool   `json:"enable"`
	Namespace string `json:"namespace"`
}
