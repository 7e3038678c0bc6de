package cleanup_test

import (
	"context"
	"fmt"

	"github.com/quaymaster/quaymaster/background/cleanup"
)

// memory keeps the records in this process alone; a gateway keeps them in a Lease.
type memory struct{ records cleanup.Records }

func (m *memory) Load(context.Context) (cleanup.Records, error) { return m.records, nil }

func (m *memory) Save(_ context.Context, r cleanup.Records) (string, error) {
	if r.Version != m.records.Version {
		return "", cleanup.ErrConflict
	}
	r.Version += "+"
	m.records = r
	return r.Version, nil
}

func ExampleNew() {
	_, err := cleanup.New(cleanup.Options{Store: &memory{}, Limit: 10})
	fmt.Println(err)
	// Output: cleanup: Cluster, Access, Policies, Namespaces, Store and Observer are required
}
