package dependents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/inventory"
)

// maxResponse bounds a response of a gateway, in bytes.
const maxResponse = 32 << 20

// Gateway is a client of a gateway's dashboard.
type Gateway struct {
	Base   *url.URL
	Client *http.Client
	Token  string // a bearer token; empty for none
}

// Read reads all images that match the query, with their workloads.
func (g *Gateway) Read(ctx context.Context, q Query) (*List, error) {
	found, query := newList(), q.values()
	for offset := 0; ; {
		query.Set("offset", strconv.Itoa(offset))
		query.Set("limit", strconv.Itoa(inventory.MaxPage))
		query.Set("sort", string(inventory.ByReference))
		var page struct {
			About inventory.About   `json:"about"`
			Total int               `json:"total"`
			Items []inventory.Image `json:"items"`
		}
		if err := g.get(ctx, "/api/v1/images?"+query.Encode(), &page); err != nil {
			return nil, err
		}
		found.About = page.About
		for _, item := range page.Items {
			var details inventory.Details
			if err := g.get(ctx, "/api/v1/images/"+url.PathEscape(item.ID), &details); err != nil {
				return nil, err
			}
			details.Record = nil
			found.Images = append(found.Images, details)
		}
		offset += len(page.Items)
		if len(page.Items) == 0 || offset >= page.Total {
			return found, nil
		}
	}
}

func (g *Gateway) get(ctx context.Context, path string, into any) (err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, g.Base.String()+path, http.NoBody)
	if err != nil {
		return err
	}
	if g.Token != "" {
		request.Header.Set("Authorization", "Bearer "+g.Token)
	}
	response, err := g.Client.Do(request)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	body, err := limit.ReadAll(response.Body, maxResponse, "the answer")
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", response.Status, report.Escape(report.FirstLine(string(body))))
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("this is no answer of a gateway's dashboard: %w", err)
	}
	return nil
}
