package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/quaymaster/quaymaster/internal/limit"
)

// maxCall bounds the response of a Call in bytes.
const maxCall = 8 << 20

// Call sends a request for a path with its query to the API server, as kubectl get --raw does,
// with the gateway's own permissions. Method is GET, or POST for a review of
// authorization.k8s.io. Secrets are refused: the gateway may read them, and the authors of
// policies may not. The response is decoded JSON of at most 8 MiB, with whole numbers as int64.
// Errors are *Error, except for an invalid path.
func (c *Client) Call(ctx context.Context, method, at string, body []byte) (any, error) {
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "" || u.Host != "" || u.RawPath != "" || path.Clean(u.Path) != u.Path {
		return nil, fmt.Errorf("%q is no plain path of the API server", at)
	}
	segments := strings.Split(strings.TrimPrefix(u.Path, "/"), "/")
	switch {
	case segments[0] != "api" && segments[0] != "apis" && u.Path != "/version":
		return nil, fmt.Errorf("%q: want a path below /api or /apis", at)
	case isSecret(segments):
		return nil, fmt.Errorf("%q: Secrets are not shown to policies", at)
	case method == http.MethodPost && (!strings.HasPrefix(u.Path, "/apis/authorization.k8s.io/") || !strings.HasSuffix(u.Path, "reviews")),
		method != http.MethodGet && method != http.MethodPost:
		return nil, fmt.Errorf("%s %q: only reviews of authorization.k8s.io are made for policies: a request must change nothing in the cluster", method, at)
	}
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	request := c.raw.Verb(method).AbsPath(u.Path).SetHeader("Accept", "application/json")
	for name, values := range u.Query() {
		for _, value := range values {
			request = request.Param(name, value)
		}
	}
	if body != nil {
		request = request.SetHeader("Content-Type", "application/json").Body(body)
	}
	stream, err := request.Stream(ctx)
	if err != nil {
		return nil, classifyPath(at, err)
	}
	text, err := limit.ReadAll(stream, maxCall, "the answer of "+u.Path)
	if err = errors.Join(err, stream.Close()); err != nil {
		return nil, classifyPath(at, err)
	}
	var answer any
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, classifyPath(at, err)
	}
	return answer, nil
}

// isSecret reports whether a path, split at its slashes, refers to Secrets of the core group:
// /api/v1/secrets, in a namespace, and either as a watch.
func isSecret(segments []string) bool {
	if len(segments) < 3 || segments[0] != "api" {
		return false
	}
	rest := segments[2:]
	if rest[0] == "watch" {
		rest = rest[1:]
	}
	if len(rest) > 2 && rest[0] == "namespaces" {
		rest = rest[2:]
	}
	return len(rest) > 0 && rest[0] == "secrets"
}

// classifyPath converts an error for a path to an *Error.
func classifyPath(at string, err error) error {
	made := &Error{Kind: "path", Name: at, Reason: ErrUnavailable, Cause: err}
	switch {
	case apierrors.IsNotFound(err):
		made.Reason = ErrNotFound
	case apierrors.IsForbidden(err):
		made.Reason, made.Right = ErrForbidden, "get on "+at
	}
	return made
}
