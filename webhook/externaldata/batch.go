package externaldata

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/webhook/internal/review"
)

// answer reads the request and decides it. Without items it returns a system error.
func (h *Handler) answer(ctx context.Context, w http.ResponseWriter, r *http.Request) (Batch, []item, string) {
	body, err := h.bodies.ReadJSON(ctx, w, r)
	defer body.Release()
	if err != nil {
		cause := review.ReadCause(err)
		if cause == QueueFull {
			return Batch{Cause: cause, Err: err}, nil, cause.Sentence()
		}
		return Batch{Cause: cause, Err: err}, nil, review.Plain(err.Error(), maxError)
	}
	keys, err := decode(body.Bytes)
	if err != nil {
		return Batch{Cause: Malformed, Err: err}, nil, review.Plain(err.Error(), maxError)
	}
	results, items := h.decideAll(ctx, keys)
	return Batch{Items: results}, items, ""
}

// decideAll decides the valid keys and answers all of them.
func (h *Handler) decideAll(ctx context.Context, keys []string) ([]Item, []item) {
	results := make([]Item, len(keys))
	parsed := make([]key, len(keys))
	var valid []int
	for i, text := range keys {
		results[i].Key, results[i].Cause = text, Malformed
		parsed[i], results[i].Err = h.config.Keys.parse(text)
		if results[i].Err == nil {
			valid = append(valid, i)
		}
	}
	if len(valid) > 0 {
		images := make([]key, len(valid))
		for n, i := range valid {
			images[n] = parsed[i]
		}
		decided := h.decide(ctx, images)
		for n, i := range valid {
			results[i].Cause, results[i].Err = decided.Cause, decided.Err
			if decided.Cause == Decided {
				results[i].Outcome, results[i].Err = decided.Value.outcomes[n], decided.Value.unread[images[n].namespace]
			}
		}
	}
	items := make([]item, len(keys))
	for i := range results {
		items[i] = h.itemOf(&results[i], parsed[i].image)
		results[i].Allowed = items[i].Error == ""
	}
	return results, items
}

// decided is the gate's result for images.
type decided struct {
	outcomes []gate.Outcome
	// unread are the errors of reading the labels of namespaces.
	unread map[string]error
}

// decide waits for a slot and for the gate.
func (h *Handler) decide(ctx context.Context, images []key) review.Result[decided] {
	leave, err := h.config.Queue.Enter(ctx, "")
	if err != nil {
		return review.Result[decided]{Cause: QueueFull, Err: err}
	}
	r := review.Run(ctx, leave, func(ctx context.Context) (decided, error) {
		requests, unread, err := h.requests(ctx, images)
		if err != nil {
			return decided{}, err
		}
		return decided{h.config.Decider.DecideAll(ctx, requests, nil), unread}, nil
	})
	if r.Cause == Decided && len(r.Value.outcomes) != len(images) {
		r.Cause, r.Err = Panicked, cmp.Or(r.Err, fmt.Errorf("%d outcomes for %d keys", len(r.Value.outcomes), len(images)))
	}
	return r
}
