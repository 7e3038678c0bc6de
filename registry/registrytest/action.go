package registrytest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// captured is an honest answer, held back so that it can be changed.
type captured struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (c *captured) Header() http.Header { return c.header }

// WriteHeader implements http.ResponseWriter.
func (c *captured) WriteHeader(status int) { c.status = status }

// Write implements http.ResponseWriter.
func (c *captured) Write(b []byte) (int, error) { return c.body.Write(b) }

func capture(next http.Handler, q *http.Request) *captured {
	c := &captured{header: http.Header{}, status: http.StatusOK}
	next.ServeHTTP(c, q)
	return c
}

// writeHead copies the header and the status of the answer to w.
func (c *captured) writeHead(w http.ResponseWriter) {
	for key, values := range c.header {
		w.Header()[key] = values
	}
	w.WriteHeader(c.status)
}

// do makes an Action of a function over the answer's writer, the request and
// the honest handler.
func do(f func(w http.ResponseWriter, q *http.Request, next http.Handler)) Action {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { f(w, q, next) })
	}
}

// change makes an Action of a function that changes the honest answer.
func change(f func(c *captured)) Action {
	return do(func(w http.ResponseWriter, q *http.Request, next http.Handler) {
		c := capture(next, q)
		f(c)
		c.writeHead(w)
		_, _ = w.Write(c.body.Bytes())
	})
}

// Status answers with a status and the distribution's error body; headers are
// key, value, key, value.
func Status(status int, headers ...string) Action {
	return do(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		writeError(w, status, "FAULT", http.StatusText(status))
	})
}

// RetryAfter answers with a status and a Retry-After header.
func RetryAfter(status int, value string) Action { return Status(status, "Retry-After", value) }

// SetHeader answers honestly but for one header; "" removes it.
func SetHeader(key, value string) Action {
	return change(func(c *captured) {
		if value == "" {
			c.header.Del(key)
			return
		}
		c.header.Set(key, value)
	})
}

// LieDigest answers honestly but for Docker-Content-Digest.
func LieDigest(digest string) Action { return SetHeader("Docker-Content-Digest", digest) }

// MediaType answers honestly but for Content-Type.
func MediaType(mediaType string) Action { return SetHeader("Content-Type", mediaType) }

// Body answers with other bytes under the honest headers; for a digest that is
// a body that does not match it.
func Body(body []byte) Action {
	return do(func(w http.ResponseWriter, q *http.Request, next http.Handler) {
		c := capture(next, q)
		c.header.Set("Content-Length", strconv.Itoa(len(body)))
		c.writeHead(w)
		if q.Method != http.MethodHead {
			_, _ = w.Write(body)
		}
	})
}

// HTML answers 200 with a page, as captive portals do.
func HTML() Action {
	return do(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<!doctype html><title>Sign in</title>"))
	})
}

// Flip answers as if each of the references had been asked for in turn, and
// the last one ever after: a tag that moves between two requests.
func Flip(references ...string) Action {
	var n atomic.Int64
	return do(func(w http.ResponseWriter, q *http.Request, next http.Handler) {
		i := min(int(n.Add(1)), len(references)) - 1
		q = q.Clone(q.Context())
		q.URL.Path = q.URL.Path[:strings.LastIndexByte(q.URL.Path, '/')+1] + references[i]
		next.ServeHTTP(w, q)
	})
}

// RedirectTo answers 307 to a URL.
func RedirectTo(url string) Action {
	return do(func(w http.ResponseWriter, q *http.Request, _ http.Handler) {
		http.Redirect(w, q, url, http.StatusTemporaryRedirect)
	})
}

// RedirectLoop redirects a request to itself, for ever.
func RedirectLoop() Action {
	return do(func(w http.ResponseWriter, q *http.Request, _ http.Handler) {
		http.Redirect(w, q, q.URL.RequestURI(), http.StatusTemporaryRedirect)
	})
}

// Hang gives no answer until the client goes away.
func Hang() Action {
	return do(func(_ http.ResponseWriter, q *http.Request, _ http.Handler) { <-q.Context().Done() })
}

// Slow sends the head and half of the body, and the rest once release is
// closed.
func Slow(release <-chan struct{}) Action {
	return do(func(w http.ResponseWriter, q *http.Request, next http.Handler) {
		c := capture(next, q)
		body := c.body.Bytes()
		c.writeHead(w)
		_, _ = w.Write(body[:len(body)/2])
		_ = http.NewResponseController(w).Flush()
		select {
		case <-release:
			_, _ = w.Write(body[len(body)/2:])
		case <-q.Context().Done():
		}
	})
}

// Half promises the whole body and breaks off after half of it.
func Half() Action {
	return do(func(w http.ResponseWriter, q *http.Request, next http.Handler) {
		c := capture(next, q)
		c.header.Set("Content-Length", strconv.Itoa(c.body.Len()))
		c.writeHead(w)
		_, _ = w.Write(c.body.Bytes()[:c.body.Len()/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
}

// Endless sends a body that does not end, under the honest headers but for the
// length.
func Endless() Action {
	return do(func(w http.ResponseWriter, q *http.Request, next http.Handler) {
		c := capture(next, q)
		c.header.Del("Content-Length")
		c.status = http.StatusOK
		c.writeHead(w)
		chunk := bytes.Repeat([]byte{' '}, 64<<10)
		for q.Context().Err() == nil {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
}

// Oversize answers 200 with a body of size bytes of JSON.
func Oversize(mediaType string, size int) Action {
	made := sync.OnceValues(func() (body []byte, digest string) { // once: the fault must be cheap
		body = slices.Concat([]byte(`{"padding":"`), bytes.Repeat([]byte{'x'}, size), []byte(`"}`))
		return body, DigestOf(body)
	})
	return do(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		body, digest := made()
		w.Header().Set("Content-Type", mediaType)
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.Header().Set("Docker-Content-Digest", digest)
		_, _ = w.Write(body)
	})
}

// GzipBomb answers with a Content-Encoding of gzip and a body that unpacks to
// size bytes.
func GzipBomb(size int) Action {
	return do(func(w http.ResponseWriter, q *http.Request, next http.Handler) {
		c := capture(next, q)
		c.header.Set("Content-Encoding", "gzip")
		c.header.Del("Content-Length")
		c.status = http.StatusOK
		c.writeHead(w)
		packed := gzip.NewWriter(w)
		chunk := bytes.Repeat([]byte{' '}, 64<<10)
		for sent := 0; sent < size && q.Context().Err() == nil; sent += len(chunk) {
			if _, err := packed.Write(chunk); err != nil {
				return
			}
		}
		_ = packed.Close()
	})
}

// LinkTo answers honestly and names url as the next page.
func LinkTo(url string) Action { return SetHeader("Link", "<"+url+`>; rel="next"`) }

// LinkLoop names the page itself as its next page.
func LinkLoop() Action {
	return do(func(w http.ResponseWriter, q *http.Request, next http.Handler) {
		LinkTo(q.URL.RequestURI())(next).ServeHTTP(w, q)
	})
}

// LinkEndless names a next page that was never seen before, for ever.
func LinkEndless() Action {
	var n atomic.Int64
	return do(func(w http.ResponseWriter, q *http.Request, next http.Handler) {
		LinkTo(fmt.Sprintf("%s?never=%d", q.URL.Path, n.Add(1)))(next).ServeHTTP(w, q)
	})
}

// ForgeReferrers answers a referrers request with this list, whatever was
// asked: referrers of another subject, or thousands of them.
func ForgeReferrers(list ...Descriptor) Action {
	return do(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", mediaTypeIndex)
		writeJSON(w, http.StatusOK, newIndex(list))
	})
}

// OnlyBearer answers 401 to requests without a bearer token, as a registry with an
// external token service.
func OnlyBearer(token string) Action {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if q.Header.Get("Authorization") == "Bearer "+token {
				next.ServeHTTP(w, q)
				return
			}
			w.Header().Set("Www-Authenticate", `Bearer realm="http://`+q.Host+`/token",service="test",scope="repository:app:pull"`)
			writeError(w, http.StatusUnauthorized, "UNAUTHORIZED", "authentication required")
		})
	}
}
