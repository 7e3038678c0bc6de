package calls

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/internal/dial"
	"github.com/quaymaster/quaymaster/policy/globalcontext"
)

// TestGlobalServices: only hosts that are listed are asked, nothing of the gateway's
// goes with it, and addresses that policies must not reach are refused at the dial.
func TestGlobalServices(t *testing.T) {
	var seen http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header.Clone()
		switch r.URL.Path {
		case "/list":
			var body map[string]any
			_ = json.NewDecoder(r.Body).Decode(&body)
			_, _ = fmt.Fprintf(w, `{"method":%q,"a":%q,"n":1}`, r.Method, fmt.Sprint(body["a"]))
		case "/away":
			http.Redirect(w, r, "/list", http.StatusFound)
		case "/sad":
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = fmt.Fprint(w, `[]`)
		case "/large":
			_, _ = fmt.Fprint(w, strings.Repeat(" ", globalcontext.MaxValue+1))
		case "/text":
			_, _ = fmt.Fprint(w, "none")
		}
	}))
	defer server.Close()
	c := New([]string{strings.TrimPrefix(server.URL, "http://"), "169.254.169.254", "169.254.1.1", "metadata.invalid"}, engine.GuardedTransport)
	call := func(method, url string, body []byte, headers ...globalcontext.Header) *globalcontext.Call {
		return &globalcontext.Call{Method: method, URL: url, Body: body, Headers: headers}
	}
	for _, row := range []struct {
		reason string
		call   *globalcontext.Call
		want   any
		says   string
	}{
		{"an object", call(http.MethodGet, server.URL+"/list", nil), map[string]any{"method": "GET", "a": "<nil>", "n": int64(1)}, ""},
		{"data and a header", call(http.MethodPost, server.URL+"/list", []byte(`{"a":"b"}`), globalcontext.Header{Name: "Who", Value: "ann"}), map[string]any{"method": "POST", "a": "b", "n": int64(1)}, ""},
		{"a redirect", call(http.MethodGet, server.URL+"/away", nil), nil, "302"},
		{"an error with a body", call(http.MethodGet, server.URL+"/sad", nil), nil, "500"},
		{"too much", call(http.MethodGet, server.URL+"/large", nil), nil, "larger"},
		{"no JSON", call(http.MethodGet, server.URL+"/text", nil), nil, "did not return JSON"},
		{"another host", call(http.MethodGet, "http://elsewhere.example/list", nil), nil, "httpHosts does not list it"},
		{"another port", call(http.MethodGet, "http://127.0.0.1:1/list", nil), nil, "httpHosts does not list it"},
		{"a host by its user", call(http.MethodGet, strings.Replace(server.URL, "http://", "http://elsewhere.example:80@", 1)+"1/list", nil), nil, "httpHosts does not list it"},
		{"metadata, though it is listed", call(http.MethodGet, "http://169.254.169.254/latest/meta-data", nil), nil, "not connected to"},
		{"link-local, though it is listed", call(http.MethodGet, "http://169.254.1.1/", nil), nil, "not connected to"},
	} {
		got, err := c.Fetch(t.Context(), row.call)
		if !reflect.DeepEqual(got, row.want) || (err == nil) != (row.says == "") || err != nil && !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v, %v; want %v, %q", row.reason, got, err, row.want, row.says)
		}
		if refused := (*dial.RefusedError)(nil); strings.Contains(row.says, "connected") && !errors.As(err, &refused) {
			t.Errorf("%s: %v is not refused at the dial", row.reason, err)
		}
	}
	for name := range seen {
		if !slices.Contains([]string{"Accept", "Accept-Encoding", "User-Agent", "Content-Type", "Content-Length"}, name) {
			t.Errorf("%s went with a call", name)
		}
	}
}
