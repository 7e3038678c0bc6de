package compose

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// Nonroot is the user and group ID of the programs. The manifests under deploy use the same.
const Nonroot = 65532

// Paths in the base that the image's configuration refers to.
const (
	certificates = "etc/ssl/certs/ca-certificates.crt"
	home         = "home/nonroot"
)

const (
	passwd = "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n"
	group  = "root:x:0:\nnonroot:x:65532:\n"
)

// entry is a file or, without content, a folder.
type entry struct {
	name    string
	mode    int64
	owner   int // user and group
	content []byte
}

// base returns the entries of an image except its program, sorted by name.
func base() []entry {
	return []entry{
		{name: "etc/", mode: 0o755},
		{name: "etc/group", mode: 0o644, content: []byte(group)},
		{name: "etc/passwd", mode: 0o644, content: []byte(passwd)},
		{name: "etc/ssl/", mode: 0o755},
		{name: "etc/ssl/certs/", mode: 0o755},
		{name: certificates, mode: 0o644, content: authorities()},
		{name: "home/", mode: 0o755},
		{name: home + "/", mode: 0o700, owner: Nonroot},
		{name: "tmp/", mode: 0o1777},
	}
}

// authorities returns the CA certificates of Mozilla's programme. Those with a constraint on the
// issue date are omitted, because PEM cannot express it.
func authorities() []byte {
	var all bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			all.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return all.Bytes()
}

// archive returns entries as a tar with a fixed modification time.
func archive(entries []entry, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: e.name, Mode: e.mode, Uid: e.owner, Gid: e.owner,
			Size: int64(len(e.content)), ModTime: at, Format: tar.FormatUSTAR,
		}
		if e.content == nil {
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("archive %s: %w", e.name, err)
		}
		if _, err := w.Write(e.content); err != nil {
			return nil, fmt.Errorf("archive %s: %w", e.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, errors.Join(errors.New("end the archive"), err)
	}
	return out.Bytes(), nil
}
