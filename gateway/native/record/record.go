package record

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/internal/strictjson"
)

// The ConfigMaps, each with its only writer, and the key of both.
const (
	// Enforced is written by the role native: States.
	Enforced = "quaymaster-native"
	// Covered is written by the leader that keeps the webhook configurations: Coverage.
	Covered = "quaymaster-native-webhooks"
	// Key is the key of the data.
	Key = "policies"
)

// maxReason bounds a reason and MaxBytes a record, in bytes: a ConfigMap has at most 1 MiB.
const (
	maxReason = 256
	MaxBytes  = 900 << 10
)

// State says which side enforces a policy.
type State struct {
	// Hash is that of the policy's document (policy.Policy.Hash): the state is about no other version.
	Hash string `json:"hash"`
	// Native means that every API server evaluates the policy; its webhook is not needed.
	Native bool `json:"native"`
	// Objects identifies the native policies that were written for it; empty before.
	Objects string `json:"objects,omitempty"`
	// Reason says why the policy stays in the webhook, or why its change-over is not complete. Empty if Native.
	Reason string `json:"reason,omitempty"`
}

// States are the states of policies by their IDs (policy.Policy.ID).
type States map[string]State

// Enforces reports whether the API servers evaluate this version of a policy.
func (s States) Enforces(id, hash string) bool {
	state, ok := s[id]
	return ok && hash != "" && state.Hash == hash && state.Native
}

// Equal reports whether states are recorded alike: reasons are equal if they are after they were cut.
func (s States) Equal(other States) bool {
	return maps.EqualFunc(s, other, func(a, b State) bool {
		a.Reason, b.Reason = cut(a.Reason), cut(b.Reason)
		return a == b
	})
}

// cut bounds a reason. A reason that was cut stays as it is.
func cut(reason string) string {
	if len(reason) <= maxReason {
		return reason
	}
	return limit.Text(reason, maxReason-len("..."))
}

// Coverage says which policies the webhooks enforce.
type Coverage struct {
	// States is the resourceVersion of the ConfigMap Enforced that the webhook configurations were made by: with other
	// states they may leave out more.
	States string `json:"states"`
	// Policies has the hashes of the policies that the webhook configurations hold, by their IDs, once the API servers use
	// these configurations.
	Policies map[string]string `json:"policies"`
}

// Covers reports whether the webhooks enforce this version of a policy, in knowledge of the states with a
// resourceVersion.
func (c Coverage) Covers(states, id, hash string) bool {
	return states != "" && c.States == states && hash != "" && c.Policies[id] == hash
}

// Encode returns the data of a ConfigMap. Reasons are cut after 256 bytes; more than MaxBytes are an error.
func (s States) Encode() (map[string]string, error) {
	short := make(States, len(s))
	for id, state := range s {
		state.Reason = cut(state.Reason)
		short[id] = state
	}
	return encode(short)
}

// Encode returns the data of a ConfigMap. More than MaxBytes are an error.
func (c Coverage) Encode() (map[string]string, error) { return encode(c) }

func encode(value any) (map[string]string, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("the states of the policies have %d bytes, more than %d", len(text), MaxBytes)
	}
	return map[string]string{Key: string(text)}, nil
}

// DecodeStates reads the data of the ConfigMap Enforced. An error means that nothing is known: every policy then needs
// its webhook.
func DecodeStates(data map[string]string) (States, error) {
	states, err := decode[States](data)
	if err != nil {
		return nil, err
	}
	for id, state := range states {
		if state.Hash == "" || state.Native == (state.Reason != "") || state.Native && state.Objects == "" {
			return nil, fmt.Errorf("policies[%q]: want a hash, the objects if it is native, and else a reason", id)
		}
	}
	return states, nil
}

// DecodeCoverage reads the data of the ConfigMap Covered. An error means that no policy is known to have a webhook.
func DecodeCoverage(data map[string]string) (Coverage, error) { return decode[Coverage](data) }

func decode[T any](data map[string]string) (decoded T, err error) {
	text, ok := data[Key]
	switch {
	case !ok:
		return decoded, fmt.Errorf("the key %q is missing", Key)
	case len(text) > MaxBytes:
		return decoded, fmt.Errorf("%s: %d bytes are more than %d", Key, len(text), MaxBytes)
	}
	problems, err := strictjson.Decode([]byte(text), &decoded)
	if err == nil && len(problems) > 0 {
		err = problems[0]
	}
	if err != nil {
		var none T
		return none, fmt.Errorf("%s: %w", Key, err)
	}
	return decoded, nil
}
