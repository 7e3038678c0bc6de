package predicate

import (
	"encoding/json"
	"fmt"
)

// vexName is a vulnerability or product of OpenVEX: a text in 0.0, an object since 0.2.
type vexName struct {
	name    string
	aliases []string
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *vexName) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &n.name) == nil {
		return nil
	}
	var object struct {
		ID      string `json:"@id"`
		Name    string `json:"name"`
		Aliases []string
		// Identifiers of a product, purl and cpe among them.
		Identifiers map[string]string
	}
	if err := json.Unmarshal(b, &object); err != nil {
		return fmt.Errorf("want a text or an object: %w", err)
	}
	n.aliases = object.Aliases
	for _, name := range []string{object.Name, object.ID, object.Identifiers["purl"]} {
		if name != "" {
			n.name = name
			break
		}
	}
	return nil
}
