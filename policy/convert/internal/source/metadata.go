package source

import "encoding/json"

// Metadata is what is read of metadata; the API server adds to it.
type Metadata struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace"`
	Annotations map[string]string `json:"annotations"`
}

// Metadata reads metadata. What is no text is refused: a namespace that cannot be read
// is not none. What is missing stays empty.
func (c *Conversion) Metadata(raw json.RawMessage, at string) Metadata {
	var m Metadata
	if len(raw) == 0 {
		return m
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		field, why := readable(err)
		c.Refuse(Below(at, field), why, "mend the document")
	}
	return m
}
