package source

import "encoding/json"

// Metadata is what is read of metadata; the API server adds to it.
type Metadata struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace"`
	Annotations map[string]string `json:"annotations"`
}

// MetadataOf reads metadata, as far as it is readable.
func MetadataOf(raw json.RawMessage) Metadata {
	var m Metadata
	_ = json.Unmarshal(raw, &m) // what cannot be read stays empty, and is refused by its users
	return m
}
