package policy

import (
	"encoding/json"
	"fmt"
	"sync"
)

// MaxRequest bounds the text of an AdmissionRequest without its objects, in bytes. Groups
// and extra values of a user are the largest parts, and come to some ten KiB.
const MaxRequest = 256 << 10

// Request is an AdmissionRequest without its objects, or the members of one that are
// known. It is immutable and safe for concurrent use. Of the zero Request no member is
// known.
type Request struct {
	members func() (map[string]any, error) // nil: none
	whole   bool
}

// RequestFrom returns a request as the API server sent it: a member that is missing is
// absent. It is decoded when it is first read. The text must not be modified. A text that
// exceeds MaxRequest counts as one that cannot be read.
func RequestFrom(text []byte) Request {
	return Request{whole: true, members: sync.OnceValues(func() (map[string]any, error) {
		if len(text) > MaxRequest {
			return nil, fmt.Errorf("the request without its objects has %d bytes, more than %d (MaxRequest)", len(text), MaxRequest)
		}
		var members map[string]any
		if err := json.Unmarshal(text, &members); err != nil {
			return nil, fmt.Errorf("reading the request: %w", err)
		}
		return members, nil
	})}
}

// RequestOf returns a request of which some members are known: a member that is missing
// is unknown. The members, decoded JSON, must not be modified.
func RequestOf(members map[string]any) Request {
	if len(members) == 0 {
		return Request{}
	}
	return Request{members: func() (map[string]any, error) { return members, nil }}
}

// IsWhole reports whether a missing member is absent; else it is unknown.
func (r Request) IsWhole() bool { return r.whole }

// Members returns the known members, which must not be modified; nil for none.
func (r Request) Members() (map[string]any, error) {
	if r.members == nil {
		return nil, nil
	}
	return r.members()
}
