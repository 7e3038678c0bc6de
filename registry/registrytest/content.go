package registrytest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

func (r *Registry) serveManifest(w http.ResponseWriter, q *http.Request, target target) {
	switch q.Method {
	case http.MethodGet, http.MethodHead:
		r.getManifest(w, q, target)
	case http.MethodPut:
		r.putManifest(w, q, target)
	case http.MethodDelete:
		if !r.store.deleteManifest(target.repository, target.reference) {
			writeError(w, http.StatusNotFound, "MANIFEST_UNKNOWN", "there is no such manifest")
			return
		}
		w.WriteHeader(http.StatusAccepted)
	default:
		writeError(w, http.StatusMethodNotAllowed, "UNSUPPORTED", "method is not supported")
	}
}

func (r *Registry) getManifest(w http.ResponseWriter, q *http.Request, target target) {
	if !r.pulls.count(w, q) {
		writeError(w, http.StatusTooManyRequests, "TOOMANYREQUESTS", "pull limit reached")
		return
	}
	found, digest, ok := r.store.manifest(target.repository, target.reference)
	if !ok {
		writeError(w, http.StatusNotFound, "MANIFEST_UNKNOWN", "there is no such manifest")
		return
	}
	w.Header().Set("Content-Type", found.mediaType)
	w.Header().Set("Docker-Content-Digest", digest)
	writeBody(w, q, found.body)
}

// pullLimit is a limit of pulls; only a GET counts, as on Docker Hub.
type pullLimit struct {
	most int64 // 0: none
	used atomic.Int64
}

// count reports whether a request is within the limit.
func (p *pullLimit) count(w http.ResponseWriter, q *http.Request) bool {
	if p.most <= 0 {
		return true
	}
	used := p.used.Load()
	if q.Method == http.MethodGet {
		used = p.used.Add(1)
	}
	w.Header().Set("Ratelimit-Limit", fmt.Sprintf("%d;w=21600", p.most))
	w.Header().Set("Ratelimit-Remaining", fmt.Sprintf("%d;w=21600", max(p.most-used, 0)))
	return used <= p.most
}

func (r *Registry) putManifest(w http.ResponseWriter, q *http.Request, target target) {
	body, err := io.ReadAll(http.MaxBytesReader(w, q.Body, maxManifest))
	if err != nil {
		writeError(w, http.StatusRequestEntityTooLarge, "SIZE_INVALID", err.Error())
		return
	}
	digest, subject, err := r.store.putManifest(target.repository, target.reference, q.Header.Get("Content-Type"), body)
	if err != nil {
		writeError(w, http.StatusBadRequest, "MANIFEST_INVALID", err.Error())
		return
	}
	if subject != "" && !r.options.NoReferrers {
		w.Header().Set("OCI-Subject", subject)
	}
	w.Header().Set("Docker-Content-Digest", digest)
	w.Header().Set("Location", "/v2/"+target.repository+"/manifests/"+digest)
	w.WriteHeader(http.StatusCreated)
}

func (r *Registry) serveBlob(w http.ResponseWriter, q *http.Request, target target) {
	switch q.Method {
	case http.MethodGet, http.MethodHead:
		body, ok := r.store.blob(target.repository, target.reference)
		if !ok {
			writeError(w, http.StatusNotFound, "BLOB_UNKNOWN", "there is no such blob")
			return
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Docker-Content-Digest", target.reference)
		writeBody(w, q, body)
	case http.MethodDelete:
		if !r.store.deleteBlob(target.repository, target.reference) {
			writeError(w, http.StatusNotFound, "BLOB_UNKNOWN", "there is no such blob")
			return
		}
		w.WriteHeader(http.StatusAccepted)
	default:
		writeError(w, http.StatusMethodNotAllowed, "UNSUPPORTED", "method is not supported")
	}
}

func writeBody(w http.ResponseWriter, q *http.Request, body []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	if q.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}

// uploads receives blobs.
type uploads struct{ store *store }

// serve is a blob upload: POST starts one (or does it all), PATCH adds a
// chunk, PUT ends it.
func (u uploads) serve(w http.ResponseWriter, q *http.Request, target target) {
	query := q.URL.Query()
	switch q.Method {
	case http.MethodPost:
		if from, digest := query.Get("from"), query.Get("mount"); digest != "" {
			if body, ok := u.store.blob(from, digest); ok {
				u.keepBlob(w, target.repository, digest, body)
				return
			}
		}
		id := u.store.startUpload()
		if digest := query.Get("digest"); digest != "" {
			u.finish(w, q, target.repository, id)
			return
		}
		uploadAccepted(w, target.repository, id, 0)
	case http.MethodPatch:
		if size, ok := u.addChunk(w, q, target.reference); ok {
			uploadAccepted(w, target.repository, target.reference, size)
		}
	case http.MethodPut:
		u.finish(w, q, target.repository, target.reference)
	default:
		writeError(w, http.StatusMethodNotAllowed, "UNSUPPORTED", "method is not supported")
	}
}

func (u uploads) addChunk(w http.ResponseWriter, q *http.Request, id string) (int, bool) {
	chunk, err := io.ReadAll(http.MaxBytesReader(w, q.Body, maxBlob))
	if err != nil {
		writeError(w, http.StatusRequestEntityTooLarge, "SIZE_INVALID", err.Error())
		return 0, false
	}
	offset := -1
	if from, _, ok := strings.Cut(q.Header.Get("Content-Range"), "-"); ok {
		offset, err = strconv.Atoi(from)
		if err != nil {
			offset = -1
		}
	}
	size, err := u.store.appendUpload(id, offset, chunk)
	switch {
	case err == nil:
		return size, true
	case errors.Is(err, errOffset):
		writeError(w, http.StatusRequestedRangeNotSatisfiable, "BLOB_UPLOAD_INVALID", err.Error())
	case errors.Is(err, errTooLarge):
		writeError(w, http.StatusRequestEntityTooLarge, "SIZE_INVALID", err.Error())
	default:
		writeError(w, http.StatusNotFound, "BLOB_UPLOAD_UNKNOWN", err.Error())
	}
	return 0, false
}

func (u uploads) finish(w http.ResponseWriter, q *http.Request, name, id string) {
	if _, ok := u.addChunk(w, q, id); !ok {
		return
	}
	body, err := u.store.finishUpload(id)
	if err != nil {
		writeError(w, http.StatusNotFound, "BLOB_UPLOAD_UNKNOWN", err.Error())
		return
	}
	u.keepBlob(w, name, q.URL.Query().Get("digest"), body)
}

func (u uploads) keepBlob(w http.ResponseWriter, name, digest string, body []byte) {
	if err := u.store.putBlob(name, digest, body); err != nil {
		writeError(w, http.StatusBadRequest, "DIGEST_INVALID", err.Error())
		return
	}
	w.Header().Set("Docker-Content-Digest", digest)
	w.Header().Set("Location", "/v2/"+name+"/blobs/"+digest)
	w.WriteHeader(http.StatusCreated)
}

func uploadAccepted(w http.ResponseWriter, name, id string, size int) {
	w.Header().Set("Location", "/v2/"+name+"/blobs/uploads/"+id)
	w.Header().Set("Docker-Upload-Uuid", id)
	w.Header().Set("Range", fmt.Sprintf("0-%d", max(size-1, 0)))
	w.WriteHeader(http.StatusAccepted)
}

// index is an OCI image index, the form of a list of referrers.
type index struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []Descriptor `json:"manifests"`
}

func newIndex(list []Descriptor) index {
	if list == nil {
		list = []Descriptor{}
	}
	return index{SchemaVersion: 2, MediaType: mediaTypeIndex, Manifests: list}
}

func (r *Registry) serveReferrers(w http.ResponseWriter, q *http.Request, target target) {
	if r.options.NoReferrers {
		http.NotFound(w, q)
		return
	}
	list := r.store.referrers(target.repository, target.reference)
	if artifactType := q.URL.Query().Get("artifactType"); artifactType != "" && !r.options.NoFilter {
		list = slices.DeleteFunc(list, func(d Descriptor) bool { return d.ArtifactType != artifactType })
		w.Header().Set("OCI-Filters-Applied", "artifactType")
	}
	from, to := page(w, q, r.options.PageSize, len(list))
	w.Header().Set("Content-Type", mediaTypeIndex)
	writeJSON(w, http.StatusOK, newIndex(list[from:to]))
}

func (r *Registry) serveTags(w http.ResponseWriter, q *http.Request, target target) {
	tags, ok := r.store.tags(target.repository)
	if !ok {
		writeError(w, http.StatusNotFound, "NAME_UNKNOWN", "there is no such repository")
		return
	}
	from, to := page(w, q, r.options.PageSize, len(tags))
	writeJSON(w, http.StatusOK, struct {
		Name string   `json:"name"`
		Tags []string `json:"tags"`
	}{target.repository, tags[from:to]})
}

// page returns the part of a list of n that this request selects, and writes the Link to
// the next part. A size of 0 is no limit.
func page(w http.ResponseWriter, q *http.Request, size, n int) (from, to int) {
	query := q.URL.Query()
	from, _ = strconv.Atoi(query.Get("from"))
	from = min(max(from, 0), n)
	if asked, err := strconv.Atoi(query.Get("n")); err == nil && asked > 0 && (size == 0 || asked < size) {
		size = asked
	}
	if size == 0 || from+size >= n {
		return from, n
	}
	query.Set("from", strconv.Itoa(from+size))
	w.Header().Set("Link", "<"+q.URL.Path+"?"+query.Encode()+`>; rel="next"`)
	return from, from + size
}

// mustJSON encodes values of this package, which cannot fail.
func mustJSON(value any) []byte {
	body, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return body
}
