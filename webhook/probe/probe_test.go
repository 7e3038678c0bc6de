package probe_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admission "k8s.io/api/admission/v1"

	warned "github.com/quaymaster/quaymaster/cluster/probe"
	"github.com/quaymaster/quaymaster/webhook/probe"
)

const mark = "0123456789abcdef0123456789abcdef-0123456789abcdef"

func body(t testing.TB) string {
	t.Helper()
	text, err := json.Marshal(admission.AdmissionReview{Request: &admission.AdmissionRequest{UID: "u-1"}})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func ask(method, path, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	probe.New("/probe").ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return w
}

// TestHandler: the response allows, and its one warning is the mark of the path.
func TestHandler(t *testing.T) {
	for _, row := range []struct {
		reason, method, path, body string
		status                     int
	}{
		{"a mark", http.MethodPost, "/probe/" + mark, body(t), http.StatusOK},
		{"no mark", http.MethodPost, "/probe/", body(t), http.StatusNotFound},
		{"no slash", http.MethodPost, "/probe", body(t), http.StatusNotFound},
		{"two parts", http.MethodPost, "/probe/a/b", body(t), http.StatusNotFound},
		{"other characters, which a header would carry", http.MethodPost, "/probe/a%22b", body(t), http.StatusNotFound},
		{"too long", http.MethodPost, "/probe/" + strings.Repeat("a", 65), body(t), http.StatusNotFound},
		{"GET", http.MethodGet, "/probe/" + mark, "", http.StatusMethodNotAllowed},
		{"no review", http.MethodPost, "/probe/" + mark, "{}", http.StatusBadRequest},
		{"no JSON", http.MethodPost, "/probe/" + mark, "x", http.StatusBadRequest},
		{"a long UID", http.MethodPost, "/probe/" + mark, strings.Replace(body(t), "u-1", strings.Repeat("u", 129), 1), http.StatusBadRequest},
		{"a large body", http.MethodPost, "/probe/" + mark, strings.Repeat(" ", 5<<20) + body(t), http.StatusBadRequest},
	} {
		w := ask(row.method, row.path, row.body)
		if w.Code != row.status {
			t.Errorf("%s: %d, want %d", row.reason, w.Code, row.status)
		}
		if w.Code != http.StatusOK {
			continue
		}
		var got admission.AdmissionReview
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		r := got.Response
		if got.APIVersion != "admission.k8s.io/v1" || got.Kind != "AdmissionReview" || r.UID != "u-1" || !r.Allowed || len(r.Warnings) != 1 || r.Warnings[0] != warned.Warning(mark) || r.Patch != nil {
			t.Errorf("%s: %s", row.reason, w.Body)
		}
	}
}

func FuzzHandler(f *testing.F) {
	f.Add(mark, body(f))
	f.Add("..", `{"request":{"uid":"\u0000"}}`)
	f.Fuzz(func(t *testing.T, mark, body string) {
		r := httptest.NewRequest(http.MethodPost, "/probe/x", strings.NewReader(body))
		r.URL.Path = "/probe/" + mark
		w := httptest.NewRecorder()
		probe.New("/probe").ServeHTTP(w, r)
		var got admission.AdmissionReview
		if w.Code != http.StatusOK {
			return
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Response == nil || len(got.Response.Warnings) != 1 || strings.ContainsAny(got.Response.Warnings[0], "\"\\\r\n") {
			t.Errorf("%q: %s", mark, w.Body)
		}
	})
}
