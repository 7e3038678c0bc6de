// Command noop is a pair of admission webhooks that allow everything, as the lower bound of a
// webhook's cost. It is written in the usual way, with net/http, encoding/json and the types
// of k8s.io/api, and changes nothing.
//
//	noop ADDRESS CERTIFICATE KEY [PATCH]
//
// With a JSON patch, it answers every mutation with that, without parsing the object: the API
// server's cost of a patch, from any webhook. It serves /mutate and /validate over TLS, and
// the number of requests so far under /count.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	admission "k8s.io/api/admission/v1"
)

// maxBody bounds a request, in bytes; the API server sends at most 3 MiB of
// each of two objects.
const maxBody = 8 << 20

// headerTimeout bounds how long a caller may take for its headers.
const headerTimeout = 10 * time.Second

func main() {
	if len(os.Args) != 4 && len(os.Args) != 5 {
		log.Fatal("usage: noop ADDRESS CERTIFICATE KEY [PATCH]")
	}
	var count atomic.Int64
	mux := http.NewServeMux()
	allow := func(patch string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			count.Add(1)
			review(w, r, patch)
		}
	}
	patch := strings.Join(os.Args[4:], "")
	mux.HandleFunc("POST /mutate", allow(patch))
	mux.HandleFunc("POST /validate", allow(""))
	mux.HandleFunc("GET /count", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, count.Load()) })
	server := &http.Server{Addr: os.Args[1], Handler: mux, ReadHeaderTimeout: headerTimeout}
	log.Fatal(server.ListenAndServeTLS(os.Args[2], os.Args[3]))
}

// review allows whatever is asked, with a patch if there is one.
func review(w http.ResponseWriter, r *http.Request, patch string) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var asked admission.AdmissionReview
	if err := json.Unmarshal(body, &asked); err != nil || asked.Request == nil {
		http.Error(w, "not an AdmissionReview", http.StatusBadRequest)
		return
	}
	answer := admission.AdmissionReview{TypeMeta: asked.TypeMeta, Response: &admission.AdmissionResponse{UID: asked.Request.UID, Allowed: true}}
	if patch != "" {
		kind := admission.PatchTypeJSONPatch
		answer.Response.Patch, answer.Response.PatchType = []byte(patch), &kind
	}
	encoded, err := json.Marshal(answer)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(encoded)
}
