package override

import (
	"encoding/json"
	"time"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
)

// partial is the readable part of a broken document.
type partial struct {
	name, reason string
	effect       policy.OverrideEffect
	expires      time.Time
	namespaces   []string
	digests      []image.Digest
	repositories []string
	signers      []policy.OverrideSigner
}

// parsePartial reads each field by itself; unreadable fields stay empty.
func parsePartial(data []byte) partial {
	var out partial
	top := fieldsOf(data)
	meta := fieldsOf(top["metadata"])
	spec := fieldsOf(top["spec"])
	match := fieldsOf(spec["match"])
	out.name = textOf(meta["name"])
	out.effect = policy.OverrideEffect(textOf(spec["effect"]))
	out.reason, _ = readReason(textOf(spec["reason"]))
	out.expires, _ = readExpires(textOf(spec["expires"]))
	var namespaces []string
	if json.Unmarshal(spec["namespaces"], &namespaces) == nil {
		var err error
		out.namespaces, err = readNamespaces(namespaces)
		if err != nil {
			out.namespaces = nil // everywhere
		}
	}
	out.digests = rest(match["digests"], readDigest)
	out.repositories = rest(match["repositories"], readRepository)
	out.signers = rest(match["signers"], func(s signer, path string) (policy.OverrideSigner, error) {
		return s.read(out.effect, path)
	})
	return out
}

// rest returns the readable entries of a list, also beyond the bound of a valid list: the
// effect of a Deny must not depend on their order.
func rest[T, V any](data json.RawMessage, read func(entry T, path string) (V, error)) []V {
	var entries []json.RawMessage
	if json.Unmarshal(data, &entries) != nil {
		return nil
	}
	var out []V
	for _, raw := range entries {
		var entry T
		if json.Unmarshal(raw, &entry) != nil {
			continue
		}
		if value, err := read(entry, ""); err == nil {
			out = append(out, value)
		}
	}
	return out
}

func fieldsOf(data json.RawMessage) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		return nil
	}
	return fields
}

func textOf(data json.RawMessage) string {
	var text string
	if json.Unmarshal(data, &text) != nil {
		return ""
	}
	return text
}
