// Package endpointtest has the doubles that the tests of several endpoints share, and gates with a policy for
// them. It implements no specification.
package endpointtest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/internal/testkit"
)

// SignedImages wants the environment's images below shop signed.
const SignedImages = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: signed}
spec:
  validationFailureAction: Enforce
  rules:
  - name: by-key
    match: {any: [{resources: {kinds: [Pod]}}]}
    verifyImages:
    - imageReferences: ["HOST/shop/*"]
      attestors:
      - entries:
        - keys: {publicKeys: KEY, rekor: {ignoreTlog: true}}
`

// NewEnv returns an environment that ends with the test.
func NewEnv(t testing.TB) *gatetest.Env {
	t.Helper()
	env := testkit.Must(gatetest.NewEnv())(t)
	t.Cleanup(env.Close)
	return env
}

// Gate returns a gate with SignedImages; changes replace texts in it, two by two.
func Gate(t testing.TB, env *gatetest.Env, changes ...string) *gate.Gate {
	t.Helper()
	text := strings.NewReplacer(changes...).Replace(SignedImages)
	return testkit.Must(env.Gate(testkit.Must(env.Policy(text))(t)))(t)
}

// Namespaces are the labels of those that are there.
type Namespaces map[string]map[string]string

// Labels returns an error for another namespace.
func (n Namespaces) Labels(_ context.Context, name string) (map[string]string, error) {
	labels, ok := n[name]
	if !ok {
		return nil, errors.New("namespace " + name + " is not there")
	}
	return labels, nil
}

// Queue has no turn if it is Full, and no memory if it is Dry.
type Queue struct{ Full, Dry bool }

var errFull = errors.New("full")

// Reserve returns an error if the queue is Dry.
func (q Queue) Reserve(context.Context, string, int64) (func(), error) { return released(q.Dry) }

// Enter returns an error if the queue is Full.
func (q Queue) Enter(context.Context, string) (func(), error) { return released(q.Full) }

func released(full bool) (func(), error) {
	if full {
		return nil, errFull
	}
	return func() {}, nil
}

// Recorder keeps records. It is safe for concurrent use.
type Recorder[T any] struct {
	mu      sync.Mutex
	records []T
}

// Record keeps a record.
func (r *Recorder[T]) Record(_ context.Context, record T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records = append(r.records, record)
}

// All returns the records so far.
func (r *Recorder[T]) All() []T {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.records)
}

// Last returns the last record, and fails the test if there is none.
func (r *Recorder[T]) Last(t testing.TB) T {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.records) == 0 {
		t.Fatal("nothing was recorded")
	}
	return r.records[len(r.records)-1]
}
