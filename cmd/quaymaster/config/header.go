package config

// The type of a configuration file.
const (
	APIVersion = "quaymaster.dev/v1alpha1"
	Kind       = "Configuration"
)

// Header is the type of a document.
type Header struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}
