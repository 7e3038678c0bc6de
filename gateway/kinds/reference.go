package kinds

import (
	"encoding/json"

	core "k8s.io/api/core/v1"

	"github.com/quaymaster/quaymaster/policy"
)

// Reference names a policy in events.
func Reference(p *policy.Policy) core.ObjectReference {
	return core.ObjectReference{APIVersion: APIVersionOf(p.Kind), Kind: p.Kind, Namespace: p.Namespace, Name: p.Name}
}

// Generation reads metadata.generation of a document; 0 where there is none.
func Generation(text []byte) int64 {
	var head struct {
		Metadata struct {
			Generation int64 `json:"generation"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(text, &head) // the condition then has no generation
	return head.Metadata.Generation
}
