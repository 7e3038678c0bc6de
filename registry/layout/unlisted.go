package layout

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry/internal/content"
)

// unlisted are the manifests with a subject that index.json does not list: so "cosign save" of
// cosign 3 writes bundles. They are looked for once, among all blobs that may be manifests.
type unlisted struct {
	once sync.Once
	of   map[string][]indexEntry // by the subject's digest
	err  error
}

// about returns those of a layout with a subject.
func (u *unlisted) about(subject image.Digest, l *Layout) ([]indexEntry, error) {
	u.once.Do(func() { u.of, u.err = findUnlisted(l) })
	return u.of[subject.String()], u.err
}

func findUnlisted(l *Layout) (map[string][]indexEntry, error) {
	found, left := map[string][]indexEntry{}, int64(maxUnlisted)
	for _, algorithm := range []string{"sha256", "sha512"} {
		names, err := l.files.Blobs(algorithm, content.MaxManifest)
		if err != nil {
			return found, l.unread("list blobs", algorithm, err)
		}
		for _, name := range names {
			digest := algorithm + ":" + path.Base(name)
			if slices.ContainsFunc(l.entries, func(e indexEntry) bool { return e.Digest == digest }) {
				continue
			}
			body, err := l.readFile(name, content.MaxManifest)
			if err != nil {
				return found, l.unread("list blobs", digest, err)
			}
			left -= int64(len(body))
			if left < 0 {
				return found, l.fail("list blobs", algorithm, image.Bound, fmt.Errorf("those of up to %d bytes have more than %d", content.MaxManifest, maxUnlisted))
			}
			if subject := subjectOf(body); subject != "" {
				found[subject] = append(found[subject], indexEntry{Digest: digest})
			}
		}
	}
	return found, nil
}

// subjectOf returns the digest of a manifest's subject; empty for none, and for other content.
func subjectOf(body []byte) string {
	var manifest struct {
		MediaType string `json:"mediaType"`
		Subject   struct {
			Digest string `json:"digest"`
		} `json:"subject"`
	}
	if len(body) == 0 || body[0] != '{' || json.Unmarshal(body, &manifest) != nil || !content.IsManifestType(manifest.MediaType) {
		return ""
	}
	return manifest.Subject.Digest
}

// Blobs implements files.
func (d directory) Blobs(algorithm string, most int64) ([]string, error) {
	folder := path.Join("blobs", algorithm)
	entries, err := fs.ReadDir(d.root.FS(), folder)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // none of the algorithm
	}
	var names []string
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() && info.Size() <= most {
			names = append(names, path.Join(folder, entry.Name()))
		}
	}
	return names, err
}

// Blobs implements files.
func (a *archive) Blobs(algorithm string, most int64) ([]string, error) {
	var names []string
	for name, entry := range a.entries {
		if rest, ok := strings.CutPrefix(name, "blobs/"+algorithm+"/"); ok && !strings.Contains(rest, "/") && entry.offset >= 0 && entry.size <= most {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}
