package registrytest

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// Bounds of pushed content, so that a failing test does not exhaust the machine.
const (
	maxBlob     = 256 << 20
	maxManifest = 8 << 20
	maxForm     = 64 << 10
)

// Registry is an OCI registry in memory, as an http.Handler.
type Registry struct {
	options Options
	store   *store
	log     *requestLog
	login   login
	faults  *faults
	pulls   pullLimit
}

// New makes an empty registry.
func New(options Options) *Registry {
	log := &requestLog{}
	r := &Registry{
		options: options,
		store:   newStore(),
		log:     log,
		login:   login{auth: options.Auth, tokens: newTokens(), log: log},
		faults:  &faults{},
		pulls:   pullLimit{most: int64(options.PullLimit)},
	}
	r.SetFaults(options.Faults...)
	return r
}

// target is the object of a request, read from its path.
type target struct {
	kind       Kind
	repository string
	reference  string
}

// parseTarget splits /v2/<name>/<kind>/<reference>; names have slashes.
func parseTarget(path string) target {
	if path == "/token" {
		return target{kind: TokenKind}
	}
	rest, ok := strings.CutPrefix(path, "/v2")
	if !ok {
		return target{kind: Other}
	}
	if rest == "" || rest == "/" {
		return target{kind: Ping}
	}
	rest = strings.TrimPrefix(rest, "/")
	if name, ok := strings.CutSuffix(rest, "/tags/list"); ok {
		return target{kind: Tags, repository: name}
	}
	parts := []struct {
		separator string
		kind      Kind
	}{{"/blobs/uploads/", Upload}, {"/manifests/", Manifest}, {"/blobs/", Blob}, {"/referrers/", Referrers}}
	for _, part := range parts {
		if i := strings.LastIndex(rest, part.separator); i > 0 {
			return target{kind: part.kind, repository: rest[:i], reference: rest[i+len(part.separator):]}
		}
	}
	if name, ok := strings.CutSuffix(rest, "/blobs/uploads"); ok {
		return target{kind: Upload, repository: name}
	}
	return target{kind: Other}
}

// ServeHTTP logs, waits, asks for credentials, applies the first fault that
// matches, and answers.
func (r *Registry) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	target := parseTarget(q.URL.Path)
	entry := r.log.begin(q, target)
	logged := &loggedWriter{ResponseWriter: w, log: r.log, entry: entry}
	defer r.log.finish(entry, 0)
	if !wait(q, r.options.Delay) {
		return
	}
	answer := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.answer(w, q, parseTarget(q.URL.Path), entry)
	}))
	if target.kind != TokenKind && !r.login.allows(q, target) {
		r.login.challenge(logged, q, target)
		return
	}
	if action := r.faults.match(q.Method, target); action != nil {
		answer = action(answer)
	}
	answer.ServeHTTP(logged, q)
}

func (r *Registry) answer(w http.ResponseWriter, q *http.Request, target target, entry *Request) {
	w.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
	switch target.kind {
	case Ping:
		writeJSON(w, http.StatusOK, struct{}{})
	case TokenKind:
		r.login.serveToken(w, q, entry)
	case Manifest:
		r.serveManifest(w, q, target)
	case Blob:
		r.serveBlob(w, q, target)
	case Upload:
		uploads{r.store}.serve(w, q, target)
	case Referrers:
		r.serveReferrers(w, q, target)
	case Tags:
		r.serveTags(w, q, target)
	default:
		writeError(w, http.StatusNotFound, "NOT_FOUND", "there is nothing at this path")
	}
}

// wait lets the delay pass; false means that the client went away.
func wait(q *http.Request, delay time.Duration) bool {
	if delay <= 0 {
		return true
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-q.Context().Done():
		return false
	}
}

// loggedWriter marks the end of a request just before its first byte leaves.
type loggedWriter struct {
	http.ResponseWriter
	log   *requestLog
	entry *Request
	began bool
}

// WriteHeader implements http.ResponseWriter.
func (w *loggedWriter) WriteHeader(status int) {
	if !w.began {
		w.began = true
		w.log.finish(w.entry, status)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *loggedWriter) Write(b []byte) (int, error) {
	if !w.began {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *loggedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func writeJSON(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// writeError answers with the error body of the distribution specification.
func writeError(w http.ResponseWriter, status int, code, message string) {
	type detail struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	writeJSON(w, status, map[string][]detail{"errors": {{Code: code, Message: message}}})
}
