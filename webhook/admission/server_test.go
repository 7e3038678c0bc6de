package admission_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/quaymaster/quaymaster/webhook/admission"
)

// TestManyAtOnce asks a real server over HTTP/2: no answer is another's, though
// buffers are used again.
func TestManyAtOnce(t *testing.T) {
	queue, err := admission.NewQueue(admission.QueueBounds{Requests: 4})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(endpoint(t, admission.Mutate, &forgetful{}, withQueue(queue)))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	var group sync.WaitGroup
	for i := range 200 {
		group.Go(func() {
			uid, text := fmt.Sprintf("uid-%d", i), fmt.Sprintf("registry.example/app-%d:1", i)
			now := pod(text)
			body := review(t, "CREATE", now, nil, func(r object) { r["uid"] = uid })
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/?timeout=30s", bytes.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			r.Header.Set("Content-Type", "application/json")
			got, err := server.Client().Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = got.Body.Close() }()
			w := httptest.NewRecorder()
			w.Code = got.StatusCode
			if _, err := io.Copy(w.Body, got.Body); err != nil || got.ProtoMajor != 2 {
				t.Errorf("HTTP/%d: %v", got.ProtoMajor, err)
				return
			}
			if w.Code != http.StatusOK {
				t.Errorf("HTTP %d: %s", w.Code, w.Body)
				return
			}
			a := read(t, w)
			if image := texts(t, patched(t, now, a))["c0"]; a.Response.UID != uid || image != pinned(text) {
				t.Errorf("%s: answer to %s, image %s", uid, a.Response.UID, image)
			}
		})
	}
	group.Wait()
	if queue.Working() != 0 || queue.Waiting() != 0 {
		t.Errorf("%d at work, %d waiting", queue.Working(), queue.Waiting())
	}
}
