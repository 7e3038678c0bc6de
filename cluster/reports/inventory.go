package reports

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/quaymaster/quaymaster/report/inventory"
	"github.com/quaymaster/quaymaster/report/inventory/recall"
	"github.com/quaymaster/quaymaster/report/policyreport"
	"github.com/quaymaster/quaymaster/report/publish"
	"github.com/quaymaster/quaymaster/report/result"
)

// ErrNone means that the cluster serves no reports.
var ErrNone = errors.New("the cluster serves neither PolicyReports nor OpenReports")

// Inventory fills an inventory with the gateway's reports in a cluster, and returns the number of
// reports that cannot be read.
func Inventory(ctx context.Context, client dynamic.Interface) (known *inventory.Inventory, unread int, err error) {
	known, err = inventory.New(inventory.Options{Replica: "reports"})
	if err != nil {
		return nil, 0, err
	}
	var reported recall.Reported
	served := false
	for _, api := range policyreport.APIs() {
		store, err := NewStore(client, api)
		if err != nil {
			return nil, 0, err
		}
		is, left, err := readReports(ctx, store, &reported)
		if err != nil {
			return nil, 0, err
		}
		served, unread = served || is, unread+left
	}
	if !served {
		return nil, 0, ErrNone
	}
	reported.Fill(known, time.Now())
	return known, unread, nil
}

// readReports reads the gateway's reports of one API; false: it is not served. Users with write
// access to reports can create invalid ones; they are counted and skipped.
func readReports(ctx context.Context, from *Store, into *recall.Reported) (served bool, unread int, err error) {
	for _, namespace := range []string{Everywhere, ""} {
		err := from.Each(ctx, namespace, policyreport.ManagedByLabel+"="+policyreport.ManagedBy, func(text []byte) error {
			results, err := policyreport.Results(text)
			if err != nil {
				unread++
				return nil //nolint:nilerr // it is counted
			}
			into.Add(slices.DeleteFunc(results, func(r result.Result) bool { return r.Image == nil }))
			return nil
		})
		switch {
		case errors.Is(err, publish.ErrNotServed):
			return false, unread, nil
		case errors.Is(err, publish.ErrRejected):
			return false, unread, fmt.Errorf("list is wanted on the reports of every namespace: %w", err)
		case err != nil:
			return false, unread, err
		}
	}
	return true, unread, nil
}
