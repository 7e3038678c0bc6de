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

// Nonroot is the user and the group that programs run as; the manifests under
// deploy name the same.
const Nonroot = 65532

// Where the base has what the configuration of the image names.
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

// base is what an image has beside its program, in the order of names.
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

// authorities are those of Mozilla's programme. Left out are those that it trusts
// for certificates of before some date only, since a PEM file cannot say so.
func authorities() []byte {
	var all bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			all.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return all.Bytes()
}

// archive returns entries as a tar of one time.
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
