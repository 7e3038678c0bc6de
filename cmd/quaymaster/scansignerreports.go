package main

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

// standsInReports asks the reports in a cluster what a gateway would be asked, from the
// same memory, filled with what they say.
func standsInReports(ctx context.Context, client dynamic.Interface, query url.Values) (*stands, error) {
	known, err := inventory.New(inventory.Options{Replica: "reports"})
	if err != nil {
		return nil, err
	}
	var said recall.Reported
	served := false
	for _, api := range policyreport.APIs() {
		store, err := reports.NewStore(client, api)
		if err != nil {
			return nil, err
		}
		is, err := readReports(ctx, store, &said)
		if err != nil {
			return nil, err
		}
		served = served || is
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
	found.inReports = true
	return found, nil
}

// readReports reads those of one API that are the gateway's; false: it is not served.
func readReports(ctx context.Context, from *reports.Store, into *recall.Reported) (served bool, err error) {
	for _, namespace := range []string{reports.Everywhere, ""} {
		err := from.Each(ctx, namespace, policyreport.ManagedByLabel+"="+policyreport.ManagedBy, func(text []byte) error {
			results, err := policyreport.Results(text)
			if err != nil {
				return err
			}
			into.Add(slices.DeleteFunc(results, func(r result.Result) bool { return r.Image == nil }))
			return nil
		})
		switch {
		case errors.Is(err, publish.ErrNotServed):
			return false, nil
		case errors.Is(err, publish.ErrRejected):
			return false, fmt.Errorf("list is wanted on the reports of every namespace: %w", err)
		case err != nil:
			return false, err
		}
	}
	return true, nil
}
