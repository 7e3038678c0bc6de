package scan

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"k8s.io/client-go/dynamic"

	"github.com/quaymaster/quaymaster/cluster/reports"
	"github.com/quaymaster/quaymaster/report/decisionlog"
	"github.com/quaymaster/quaymaster/report/inventory"
	"github.com/quaymaster/quaymaster/report/inventory/recall"
)

// maxSignerLines bounds the lines of a decision log that --signer reads, the latest.
const maxSignerLines = 1_000_000

// standsInLog runs a gateway's query on a decision log's folder: it fills an inventory with the
// last week of the log.
func standsInLog(folder string, query url.Values) (*stands, error) {
	segments, err := decisionlog.Segments(folder)
	if err != nil {
		return nil, err
	}
	if len(segments) == 0 {
		return nil, fmt.Errorf("%s: there is no decision log in it; in a cluster each replica writes into a folder of its own name there", folder)
	}
	known, err := inventory.New(inventory.Options{Replica: folder})
	if err != nil {
		return nil, err
	}
	if _, err := recall.Fill(known, recall.Source{Folder: folder, Lines: maxSignerLines}); err != nil {
		return nil, err
	}
	return standsIn(known, query)
}

// standsInReports runs a gateway's query on the reports in a cluster.
func standsInReports(ctx context.Context, client dynamic.Interface, query url.Values) (*stands, error) {
	known, unread, err := reports.Inventory(ctx, client)
	if errors.Is(err, reports.ErrNone) {
		err = fmt.Errorf("%w: ask the gateway (--gateway)", err)
	}
	if err != nil {
		return nil, err
	}
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

// standsIn runs a gateway's query on an inventory.
func standsIn(known *inventory.Inventory, query url.Values) (*stands, error) {
	found := newStands()
	found.About = known.About()
	for offset := 0; ; {
		page, err := known.Images(inventory.ImageQuery{
			Digest: query.Get("digest"), Policy: query.Get("policy"), Key: query.Get("key"), Signer: query.Get("signer"),
			Sort: inventory.ByReference, Page: inventory.Page{Offset: offset, Limit: inventory.MaxPage},
		})
		if err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			if details, ok := known.Image(item.ID); ok {
				details.Record = nil
				found.Images = append(found.Images, details)
			}
		}
		offset += len(page.Items)
		if len(page.Items) == 0 || offset >= page.Total {
			return found, nil
		}
	}
}
