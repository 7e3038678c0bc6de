package page_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/quaymaster/quaymaster/webhook/internal/page"
)

// TestNothingInline: the pages hold no inline script or style, name no other host, and
// no script makes markup of text.
func TestNothingInline(t *testing.T) {
	forbidden := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc|DOMParser|<script>|<style|\son[a-z]+="|style="|javascript:|//cdn|@import`)
	hosts := regexp.MustCompile(`(https?:)?//[a-z0-9.-]+\.[a-z]{2,}`)
	checked := 0
	for _, folder := range []string{"assets", "../../ui/static", "../../playground/static"} {
		root := os.DirFS(folder)
		err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			checked++
			content, err := fs.ReadFile(root, name)
			if found := forbidden.Find(content); found != nil {
				t.Errorf("%s/%s: %s", folder, name, found)
			}
			for _, found := range hosts.FindAllString(string(content), -1) {
				if found != "http://www.w3.org" { // the name of SVG
					t.Errorf("%s/%s: names %s", folder, name, found)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if checked < 20 {
		t.Errorf("only %d files were checked", checked)
	}
}

// TestLoad: the files of a page, and those of all pages; a file of an unknown type is refused.
func TestLoad(t *testing.T) {
	files, err := page.Load(fstest.MapFS{"index.html": {Data: []byte("<p>")}})
	if err != nil || files["index.html"] == nil || files["assets/app.css"] == nil {
		t.Errorf("%v, %v", files, err)
	}
	if _, err := page.Load(fstest.MapFS{"a.exe": {}}); err == nil {
		t.Error("a file of an unknown type is served")
	}
}

// TestRefuse: a problem has its status and header, and any other error is the request's.
func TestRefuse(t *testing.T) {
	for _, row := range []struct {
		reason, header, value string
		err                   error
		status                int
	}{
		{"a method", "Allow", "GET, HEAD", page.Problem{Status: 405}, 405},
		{"a method of some", "Allow", "POST", page.Problem{Status: 405, Allow: []string{"POST"}}, 405},
		{"no token", "WWW-Authenticate", `Bearer realm="quaymaster"`, page.Problem{Status: 401}, 401},
		{"busy", "Retry-After", "1", fmt.Errorf("a: %w", page.Problem{Status: 503}), 503},
		{"another error", "Retry-After", "", errors.New("wrong"), 400},
	} {
		w := httptest.NewRecorder()
		page.Refuse(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody), row.err)
		if w.Code != row.status || w.Header().Get(row.header) != row.value || !strings.Contains(w.Body.String(), `"kind":"Error"`) {
			t.Errorf("%s: %d, %v: %s", row.reason, w.Code, w.Header(), w.Body)
		}
	}
}

func ExampleIsLoopback() {
	for _, host := range []string{"localhost:8002", "[::1]:8002", "localhost.example:8002"} {
		fmt.Println(host, page.IsLoopback(host))
	}
	// Output:
	// localhost:8002 true
	// [::1]:8002 true
	// localhost.example:8002 false
}
