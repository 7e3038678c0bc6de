package scan

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/quaymaster/quaymaster/cluster/reports"
	"github.com/quaymaster/quaymaster/report/inventory"
	"github.com/quaymaster/quaymaster/report/inventory/recall"
	"github.com/quaymaster/quaymaster/report/policyreport"
	"github.com/quaymaster/quaymaster/report/publish"
	"github.com/quaymaster/quaymaster/report/result"
)

// standsInReports runs a gateway's query on the reports in a cluster: it fills an inventory with
// them.
func standsInReports(ctx context.Context, client dynamic.Interface, query url.Values) (*stands, error) {
	known, err := inventory.New(inventory.Options{Replica: "reports"})
	if err != nil {
		return nil, err
	}
	var said recall.Reported
	served, unread := false, 0
	for _, api := range policyreport.APIs() {
		store, err := reports.NewStore(client, api)
		if err != nil {
			return nil, err
		}
		is, left, err := readReports(ctx, store, &said)
		if err != nil {
			return nil, err
		}
		served, unread = served || is, unread+left
	}
	if !served {
		return nil, errors.New("the cluster serves neither PolicyReports nor OpenReports: ask the gateway (--gateway)")
	}
	said.Fill(known, time.Now())
	if key := query.Get("key"); len(key) > recall.ReportedKey {
		query.Set("key", key[:recall.ReportedKey])
	}
	found, err := standsIn(known, query)
	if err != nil {
		return nil, err
	}
	found.inReports, found.NotRead = true, unread
	return found, nil
}

// readReports reads the gateway's reports of one API; false: it is not served. Users with write
// access to reports can create invalid ones; they are counted and skipped.
func readReports(ctx context.Context, from *reports.Store, into *recall.Reported) (served bool, unread int, err error) {
	for _, namespace := range []string{reports.Everywhere, ""} {
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
