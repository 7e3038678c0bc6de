package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
)

// minCompressed is the smallest body that is compressed, in bytes.
const minCompressed = 1 << 10

//go:embed assets
var shared embed.FS

// File is a response body.
type File struct {
	kind   string // media type
	tag    string // entity tag
	body   []byte
	packed []byte // compressed; nil if too small
}

// Load reads files by their paths in a folder, and the shared ones of this package below assets/.
func Load(own fs.FS) (map[string]*File, error) {
	files := map[string]*File{}
	for _, root := range []fs.FS{shared, own} {
		err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			body, err := fs.ReadFile(root, name)
			if err != nil {
				return err
			}
			kind, ok := kinds()[path.Ext(name)]
			if !ok {
				return fmt.Errorf("%s: unknown media type", name)
			}
			files[name] = NewFile(kind, body)
			files[name].pack(gzip.BestCompression)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// kinds are the media types of files.
func kinds() map[string]string {
	return map[string]string{".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
		".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
}

// NewFile makes a body of a media type.
func NewFile(kind string, body []byte) *File {
	sum := sha256.Sum256(body)
	// Weak: the bytes differ with the encoding.
	return &File{kind: kind, body: body, tag: `W/"` + hex.EncodeToString(sum[:12]) + `"`}
}

// Replace returns the file with one text in place of the first occurrence of another.
func (f *File) Replace(before, after []byte) *File {
	made := NewFile(f.kind, bytes.Replace(f.body, before, after, 1))
	made.pack(gzip.BestCompression)
	return made
}

func (f *File) pack(level int) {
	if len(f.body) < minCompressed {
		return
	}
	var packed bytes.Buffer
	writer, err := gzip.NewWriterLevel(&packed, level)
	if err != nil {
		return // the level is a constant of the package
	}
	if _, err := writer.Write(f.body); err == nil && writer.Close() == nil {
		f.packed = packed.Bytes()
	}
}

// Serve writes the file, or 304 if the client has the current version.
func (f *File) Serve(w http.ResponseWriter, r *http.Request, status int) {
	header := w.Header()
	header.Set("Content-Type", f.kind)
	header.Set("ETag", f.tag)
	header.Add("Vary", "Accept-Encoding")
	if header.Get("Cache-Control") == "" {
		header.Set("Cache-Control", "no-cache") // revalidate: after an update, pages and scripts must be of one version
	}
	if status == http.StatusOK && has(r.Header.Get("If-None-Match"), f.tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := f.body
	if takesGzip(r) {
		if f.packed == nil {
			f.pack(gzip.BestSpeed)
		}
		if f.packed != nil {
			body = f.packed
			header.Set("Content-Encoding", "gzip")
		}
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // client disconnected
	}
}

// has reports whether a list of entity tags contains one (RFC 9110, section 13.1.2).
func has(list, tag string) bool {
	for each := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(each) == tag {
			return true
		}
	}
	return false
}

// takesGzip parses Accept-Encoding. A quality of 0 excludes gzip.
func takesGzip(r *http.Request) bool {
	for each := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		coding, parameters, err := mime.ParseMediaType("x/" + strings.TrimSpace(each))
		if err != nil || coding != "x/gzip" {
			continue
		}
		quality, err := strconv.ParseFloat(parameters["q"], 64)
		return parameters["q"] == "" || err == nil && quality > 0
	}
	return false
}
