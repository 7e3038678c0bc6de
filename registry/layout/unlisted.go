package layout

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/registry/internal/content"
)

// unlisted are the manifests with a subject that index.json does not list: so "cosign save" of
// cosign 3 writes bundles. They are looked for once, among all blobs that may be manifests.
type unlisted struct {
	turn chan struct{}           // full while one caller searches; a channel, so that others wait no longer than they may
	of   map[string][]indexEntry // by the subject's digest; nil: to be searched
	err  error
}

func newUnlisted() *unlisted { return &unlisted{turn: make(chan struct{}, 1)} }

// about returns those of a layout with a subject. A search that failed is repeated by the next
// caller, unless it exceeded a bound, which it would again.
func (u *unlisted) about(ctx context.Context, subject image.Digest, l *Layout) ([]indexEntry, error) {
	select {
	case u.turn <- struct{}{}:
		defer func() { <-u.turn }()
	case <-ctx.Done():
		return nil, l.fail("list blobs", subject.String(), image.Unavailable, ctx.Err())
	}
	found, err := u.of, u.err
	if found == nil {
		found, err = findUnlisted(ctx, l)
		if err == nil || image.KindOf(err) == image.Bound {
			u.of, u.err = found, err
		}
	}
	return found[subject.String()], err
}

// findUnlisted returns those that it can read, and the first failure.
func findUnlisted(ctx context.Context, l *Layout) (map[string][]indexEntry, error) {
	found, left := map[string][]indexEntry{}, int64(maxUnlisted)
	isListed := map[string]bool{}
	for _, entry := range l.entries {
		isListed[entry.Digest] = true
	}
	var unread error
	for _, algorithm := range []string{"sha256", "sha512"} {
		names, err := l.files.Blobs(algorithm, content.MaxManifest)
		if err != nil {
			return found, l.unread("list blobs", algorithm, err)
		}
		for _, name := range names {
			if err := ctx.Err(); err != nil {
				return found, l.fail("list blobs", algorithm, image.Unavailable, err)
			}
			digest := algorithm + ":" + path.Base(name)
			if isListed[digest] {
				continue
			}
			body, err := readObject(l.files, name)
			if err != nil && unread == nil {
				unread = l.unread("list blobs", digest, err)
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
	return found, unread
}

// readObject reads a blob that may be a manifest, which is an object of JSON. Of others it reads the
// beginning alone, and returns nothing: most blobs are layers.
func readObject(f files, name string) ([]byte, error) {
	file, err := f.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	reader := bufio.NewReader(file)
	start, err := reader.Peek(maxStart)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	start = bytes.TrimLeft(start, " \t\r\n")
	if len(start) > 0 && start[0] != '{' {
		return nil, nil
	}
	return limit.ReadAll(reader, content.MaxManifest, name)
}

// subjectOf returns the digest of the subject that an object of JSON names; empty for none. Whether
// the object is a manifest is decided as for those that index.json lists.
func subjectOf(body []byte) string {
	var manifest struct {
		Subject struct {
			Digest string `json:"digest"`
		} `json:"subject"`
	}
	if json.Unmarshal(body, &manifest) != nil {
		return ""
	}
	return manifest.Subject.Digest
}

// Blobs implements files. Links are followed, within the layout, as by Open. One that leads nowhere or
// outside is a blob that cannot be read: it may be a statement.
func (d directory) Blobs(algorithm string, most int64) ([]string, error) {
	folder := path.Join("blobs", algorithm)
	entries, err := fs.ReadDir(d.root.FS(), folder)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // none of the algorithm
	}
	var names []string
	for _, entry := range entries {
		name := path.Join(folder, entry.Name())
		if info, err := d.root.Stat(name); err != nil || info.Mode().IsRegular() && info.Size() <= most {
			names = append(names, name)
		}
	}
	return names, err
}

// Blobs implements files. Links, which Open does not follow, are among them.
func (a *archive) Blobs(algorithm string, most int64) ([]string, error) {
	var names []string
	for name, entry := range a.entries {
		if rest, ok := strings.CutPrefix(name, "blobs/"+algorithm+"/"); ok && !strings.Contains(rest, "/") && entry.size <= most {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}
