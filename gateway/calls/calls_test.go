package calls

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// TestCalls: only hosts that are listed are asked for policies, and what does not
// answer is unknown.
func TestCalls(t *testing.T) {
	answers := func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/object":
			var body map[string]any
			_ = json.NewDecoder(r.Body).Decode(&body)
			_, _ = fmt.Fprintf(w, `{"method": %q, "name": %q, "count": 3, "who": %q}`, r.Method, fmt.Sprint(body["name"]), r.Header.Get("Who"))
		case "/list":
			w.WriteHeader(http.StatusTeapot)
			_, _ = fmt.Fprint(w, `[1, 2]`)
		case "/away":
			http.Redirect(w, r, "http://metadata.example/", http.StatusFound)
		case "/large":
			_, _ = fmt.Fprint(w, strings.Repeat(" ", maxCallAnswer+1))
		}
	}
	plain, secure := httptest.NewServer(http.HandlerFunc(answers)), httptest.NewTLSServer(http.HandlerFunc(answers))
	defer plain.Close()
	defer secure.Close()
	host := func(s *httptest.Server) string { _, rest, _ := strings.Cut(s.URL, "://"); return rest }
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}))
	c := New([]string{host(plain), host(secure), "gone.invalid"}, engine.GuardedTransport)
	for _, row := range []struct {
		reason  string
		request cel.HTTPRequest
		want    string // as JSON
		unknown string // why it is not known
		fault   string // of the call
	}{
		{reason: "an object", request: cel.HTTPRequest{Method: "GET", URL: plain.URL + "/object", Headers: map[string]string{"Who": "ann"}}, want: `{"count":3,"method":"GET","name":"\u003cnil\u003e","statusCode":200,"who":"ann"}`},
		{reason: "a body", request: cel.HTTPRequest{Method: "POST", URL: plain.URL + "/object", Body: map[string]any{"name": "web"}}, want: `{"count":3,"method":"POST","name":"web","statusCode":200,"who":""}`},
		{reason: "a list and its status", request: cel.HTTPRequest{Method: "GET", URL: plain.URL + "/list"}, want: `{"body":[1,2],"statusCode":418}`},
		{reason: "nothing", request: cel.HTTPRequest{Method: "GET", URL: plain.URL + "/none"}, want: `{"body":null,"statusCode":200}`},
		{reason: "a redirect is not followed", request: cel.HTTPRequest{Method: "GET", URL: plain.URL + "/away"}, want: `{"body":null,"statusCode":302}`},
		{reason: "an authority of the policy", request: cel.HTTPRequest{Method: "GET", URL: secure.URL + "/none", CABundle: authority}, want: `{"body":null,"statusCode":200}`},
		{reason: "an unknown authority", request: cel.HTTPRequest{Method: "GET", URL: secure.URL + "/none"}, unknown: "did not answer"},
		{reason: "no authority at all", request: cel.HTTPRequest{Method: "GET", URL: secure.URL + "/none", CABundle: "x"}, fault: "no PEM certificate"},
		{reason: "an answer above the bound", request: cel.HTTPRequest{Method: "GET", URL: plain.URL + "/large"}, unknown: "1048576"},
		{reason: "another port", request: cel.HTTPRequest{Method: "GET", URL: "http://127.0.0.1:1/"}, unknown: "httpHosts does not list it"},
		{reason: "another host", request: cel.HTTPRequest{Method: "GET", URL: "http://metadata.example/"}, unknown: "httpHosts does not list it"},
		{reason: "a host by its user", request: cel.HTTPRequest{Method: "GET", URL: "http://" + host(plain) + "@metadata.example/"}, unknown: "httpHosts does not list it"},
		{reason: "another scheme", request: cel.HTTPRequest{Method: "GET", URL: "file:///etc/passwd"}, unknown: "httpHosts does not list it"},
		{reason: "a host that is not there", request: cel.HTTPRequest{Method: "GET", URL: "http://gone.invalid/"}, unknown: "did not answer"},
		{reason: "no URL", request: cel.HTTPRequest{Method: "GET", URL: "http://%"}, fault: "cannot be read"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			got, err := c.Do(t.Context(), row.request)
			text, _ := json.Marshal(got)
			gap := (*cel.UnknownError)(nil)
			switch said := fmt.Sprint(err); {
			case row.want != "" && (err != nil || string(text) != row.want):
				t.Errorf("%s, %v, want %s", text, err, row.want)
			case row.unknown != "" && (!errors.As(err, &gap) || !strings.Contains(said, row.unknown)):
				t.Errorf("%v, want unknown: %q", err, row.unknown)
			case row.fault != "" && (err == nil || errors.As(err, &gap) || !strings.Contains(said, row.fault)):
				t.Errorf("%v, want a fault: %q", err, row.fault)
			}
		})
	}
}
