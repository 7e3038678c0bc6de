package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/cluster/reports"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/inventory"
	"github.com/quaymaster/quaymaster/report/policyreport"
	"github.com/quaymaster/quaymaster/report/publish"
	"github.com/quaymaster/quaymaster/scan"
)

// passReceivers passes the objects that a round did not find to several receivers.
type passReceivers []scan.PassReceiver

// Passed implements scan.PassReceiver.
func (f passReceivers) Passed(ctx context.Context, p scan.Pass) {
	for _, each := range f {
		each.Passed(ctx, p)
	}
}

// passReceivers are the sinks with data about objects that may be deleted.
func (s Sinks) passReceivers(excluded []string, log *slog.Logger) passReceivers {
	var all passReceivers
	if s.Reports != nil {
		all = append(all, reportCleaner{stores: s.Stores, reports: s.Reports, failed: func(err error) {
			if err != nil && !errors.Is(err, context.Canceled) {
				log.Warn("results about deleted objects were not removed from reports", slog.String("error", err.Error()))
			}
		}})
	}
	if s.Inventory != nil {
		all = append(all, inventoryCleaner{known: s.Inventory, excluded: excluded})
	}
	return all
}

// inventoryCleaner implements scan.PassReceiver: deleted objects are removed from the dashboard.
type inventoryCleaner struct {
	known    *inventory.Inventory
	excluded []string // patterns for namespaces that a scan leaves out
}

// Passed updates the inventory.
func (f inventoryCleaner) Passed(_ context.Context, p scan.Pass) {
	version := schema.GroupVersion{Group: p.Kind.Group, Version: p.Kind.Version}
	f.known.Passed(version.String(), p.Kind.Kind, p.Began, func(namespace string) bool {
		return len(f.excluded) > 0 && wildcard.Any(f.excluded, namespace)
	})
}

// reportCleaner implements scan.PassReceiver: it removes deleted objects from reports. A report
// owned by such an object is deleted with it.
type reportCleaner struct {
	stores  []*reports.Store
	reports *publish.Publisher
	failed  func(error)
}

// Passed searches the reports for objects that a round did not find.
func (f reportCleaner) Passed(ctx context.Context, p scan.Pass) {
	namespaces := ""
	if p.Kind.Namespaced {
		namespaces = reports.Everywhere
	}
	deleted := map[string]report.Resource{}
	for _, store := range f.stores {
		err := store.Each(ctx, namespaces, policyreport.ManagedByLabel+"="+policyreport.ManagedBy, func(text []byte) error {
			return listDeleted(text, p, deleted)
		})
		if err != nil && !errors.Is(err, publish.ErrNotServed) { // logged once elsewhere, and lists nothing
			f.failed(err)
		}
	}
	for _, of := range deleted {
		if err := f.reports.Remove(ctx, of, p.Began); err != nil {
			f.failed(err)
			return
		}
	}
}

// maxDeleted bounds the removed objects of one pass; the next removes others.
const maxDeleted = 10_000

// listDeleted adds the objects of a pass's kind that a report lists and the pass has not found.
func listDeleted(text []byte, p scan.Pass, deleted map[string]report.Resource) error {
	var listed struct {
		Scope   *core.ObjectReference `json:"scope"`
		Results []struct {
			Resources []core.ObjectReference `json:"resources"`
			Subjects  []core.ObjectReference `json:"subjects"`
		} `json:"results"`
	}
	if err := json.Unmarshal(text, &listed); err != nil {
		return fmt.Errorf("read a report: %w", err)
	}
	for _, r := range listed.Results {
		for _, of := range append(r.Resources, r.Subjects...) {
			version := schema.FromAPIVersionAndKind(of.APIVersion, of.Kind)
			if version.Group != p.Kind.Group || version.Kind != p.Kind.Kind || of.UID == "" || p.Has(string(of.UID)) || len(deleted) >= maxDeleted {
				continue
			}
			made := report.Resource{APIVersion: of.APIVersion, Kind: of.Kind, Namespace: of.Namespace, Name: of.Name, UID: string(of.UID)}
			if s := listed.Scope; s != nil && s.UID != of.UID && s.Kind != "Namespace" {
				made.Owner = &report.Owner{APIVersion: s.APIVersion, Kind: s.Kind, Name: s.Name, UID: string(s.UID)}
			}
			deleted[made.UID] = made
		}
	}
	return nil
}
