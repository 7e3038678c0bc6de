package source

import "encoding/json"

// Metadata holds the fields that are read of metadata; the API server adds others.
type Metadata struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace"`
	Annotations map[string]string `json:"annotations"`
}

// Metadata reads metadata. Values that are no text are refused: an unreadable namespace is
// not an empty one. Missing fields stay empty.
func (c *Conversion) Metadata(raw json.RawMessage, at string) Metadata {
	var m Metadata
	if len(raw) == 0 {
		return m
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		c.unreadable(at, err)
	}
	return m
}
