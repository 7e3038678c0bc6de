package calls

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/globalcontext"
)

// Rules implements the calls of rules' contexts: to the API server with the gateway's own
// rights, and to listed services without any.
type Rules struct {
	Cluster  *cluster.Client // nil without a cluster
	Services *Caller
}

// API implements rulecontext.Caller.
func (r Rules) API(ctx context.Context, call rulecontext.APICall) (any, error) {
	if r.Cluster == nil {
		return nil, fmt.Errorf("%s: there is no cluster to ask", call.Path)
	}
	body, err := bodyOf(call.Body)
	if err != nil {
		return nil, err
	}
	return r.Cluster.Call(ctx, call.Method, call.Path, body)
}

// Service implements rulecontext.Caller.
func (r Rules) Service(ctx context.Context, call rulecontext.ServiceCall) (any, error) {
	body, err := bodyOf(call.Body)
	if err != nil {
		return nil, err
	}
	made := &globalcontext.Call{URL: call.URL, Method: call.Method, CABundle: call.CABundle, Body: body}
	for _, name := range slices.Sorted(maps.Keys(call.Headers)) {
		made.Headers = append(made.Headers, globalcontext.Header{Name: name, Value: call.Headers[name]})
	}
	return r.Services.Fetch(ctx, made)
}

// bodyOf encodes the body of a request; nil for none.
func bodyOf(value any) ([]byte, error) {
	if value == nil {
		return nil, nil
	}
	body, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("the body cannot be written as JSON: %w", err)
	}
	return body, nil
}
