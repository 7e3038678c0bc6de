package peers

import (
	"errors"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/quaymaster/quaymaster/internal/limit"
)

// Memory is what this replica remembers; a gate.Gate is one.
type Memory interface {
	// Remembered returns the facts that are known, by key.
	Remembered(keys []string) map[string][]byte
}

// Door answers the questions of other replicas. It is safe for concurrent use.
type Door struct {
	secret secret
	memory Memory
	now    func() time.Time
}

// DoorConfig is what a Door cannot do without.
type DoorConfig struct {
	// Key is the replicas' own, of at least 32 random bytes.
	Key    []byte
	Memory Memory
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// NewDoor makes a Door.
func NewDoor(config DoorConfig) (*Door, error) {
	s, err := newSecret(config.Key)
	if err != nil {
		return nil, err
	}
	if config.Memory == nil {
		return nil, errors.New("the door for replicas: want a memory")
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	return &Door{secret: s, memory: config.Memory, now: config.Now}, nil
}

// ServeHTTP implements http.Handler. Strangers get 403 and no reason.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, err := limit.ReadAll(r.Body, maxRequest, "question of a replica")
	if err != nil {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	q, err := d.secret.open(body, r.Header.Get(macHeader), d.now())
	switch {
	case errors.Is(err, errForeign):
		w.WriteHeader(http.StatusForbidden)
		return
	case err != nil:
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	reply, err := json.Marshal(answer{Facts: fitting(d.memory.Remembered(q.Keys))}, json.Deterministic(true))
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set(macHeader, d.secret.ofAnswer(q.Nonce, reply))
	_, _ = w.Write(reply) // who has left knows nothing
}

// fitting leaves out what an answer has no room for; it is then asked of the
// registry.
func fitting(facts map[string][]byte) map[string][]byte {
	room := maxFacts
	out := map[string][]byte{}
	for key, fact := range facts {
		if size := len(key) + len(fact); len(fact) <= maxFact && size <= room {
			room -= size
			out[key] = fact
		}
	}
	return out
}
