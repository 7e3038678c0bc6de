package gate

import "context"

// Peers are the other replicas, which may have proved a moment ago what is asked
// now. Whoever implements it proves that the answers are theirs (a MAC under
// the replicas' key), and bounds the time.
type Peers interface {
	// Recall asks for facts by their keys; what nobody knows is absent from the
	// answer. It never fails: a peer that does not answer knows nothing.
	Recall(ctx context.Context, keys []string) map[string][]byte
}
