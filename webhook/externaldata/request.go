package externaldata

import (
	"context"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/internal/review"
)

// requests converts keys to requests, with one object for each image, because the original objects
// are unknown. unread are the errors of reading the labels of namespaces.
func (h *Handler) requests(ctx context.Context, keys []key) (requests []gate.Request, unread map[string]error, err error) {
	now := time.Now()
	requests = make([]gate.Request, len(keys))
	subjects := make([]*policy.Subject, len(keys))
	for i, k := range keys {
		requests[i], err = gate.ForImages(k.namespace, k.account, []string{k.image})
		if err != nil {
			return nil, nil, err
		}
		requests[i].Pinning, requests[i].Anonymous = h.config.pinning(), h.config.Keys != Qualified
		requests[i].Subject = policy.Subject{Version: "v1", Kind: "Pod", Namespace: k.namespace, Operation: "CREATE", Shape: policy.Shape{Bare: true}, Time: now}
		subjects[i] = &requests[i].Subject
	}
	return requests, review.SetLabels(ctx, h.config.Namespaces, subjects...), nil
}
