// Package dependents lists the images and workloads that depend on a signer, from the dashboard of
// a gateway, a decision log or the reports in a cluster.
package dependents

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"k8s.io/client-go/dynamic"

	"github.com/quaymaster/quaymaster/cluster/reports"
	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/report/decisionlog"
	"github.com/quaymaster/quaymaster/report/inventory"
	"github.com/quaymaster/quaymaster/report/inventory/recall"
)

// List are the images and workloads that depend on a signer.
type List struct {
	About  inventory.About     `json:"about"`
	Images []inventory.Details `json:"images"`
	// NotRead counts the invalid reports.
	NotRead int `json:"notRead,omitempty"`
	// InReports: reports have less data.
	InReports bool `json:"-"`
}

func newList() *List { return &List{Images: []inventory.Details{}} }

// Query selects images; one of the fields is set.
type Query struct {
	// Digest is of an image or a statement, Policy the ID of a policy.
	Digest, Policy string
	// Key is the fingerprint of a key or a prefix of it, Signer an identity.
	Key, Signer string
}

// ParseQuery reads the name of a signer: a digest, policy:ID, a fingerprint, the file of a public
// key or certificate, or an identity.
func ParseQuery(named string) (Query, error) {
	switch {
	case strings.HasPrefix(named, "sha256:") || strings.HasPrefix(named, "sha512:"):
		return Query{Digest: named}, nil
	case strings.HasPrefix(named, "policy:"):
		return Query{Policy: strings.TrimPrefix(named, "policy:")}, nil
	case isFingerprint(named):
		return Query{Key: strings.ToLower(named)}, nil
	}
	fingerprint, err := fingerprintOf(named)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, errNoKey) && !strings.HasSuffix(named, ".pub") {
		return Query{Signer: named}, nil
	}
	return Query{Key: fingerprint}, err
}

// values is the query of the gateway's API.
func (q Query) values() url.Values {
	values := url.Values{}
	for name, value := range map[string]string{"digest": q.Digest, "policy": q.Policy, "key": q.Key, "signer": q.Signer} {
		if value != "" {
			values.Set(name, value)
		}
	}
	return values
}

// isFingerprint reports whether a text is the SHA-256 of a key, or a long prefix of one.
func isFingerprint(text string) bool {
	_, err := hex.DecodeString(text)
	return err == nil && len(text) >= 16 && len(text) <= 2*sha256.Size
}

var errNoKey = errors.New("no public key in it (PEM, PKIX)")

// fingerprintOf reads the file of a public key, or of a certificate, and returns the key's
// fingerprint.
func fingerprintOf(path string) (string, error) {
	text, err := limit.ReadFile(path, limit.MaxKeyFile, "the key")
	if err != nil {
		return "", err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return "", errNoKey
	}
	der := block.Bytes
	if block.Type == "CERTIFICATE" {
		certificate, err := x509.ParseCertificate(der)
		if err != nil {
			return "", err
		}
		der = certificate.RawSubjectPublicKeyInfo
	} else if _, err := x509.ParsePKIXPublicKey(der); err != nil {
		return "", errNoKey
	}
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:]), nil
}

// FromLog reads the last week of a decision log's folder.
func FromLog(folder string, q Query) (*List, error) {
	segments, err := decisionlog.Segments(folder)
	if err != nil {
		return nil, err
	}
	if len(segments) == 0 {
		return nil, fmt.Errorf("%s: there is no decision log in it; in a cluster each replica writes into a folder of its own name there", folder)
	}
	known, err := inventory.New(inventory.Options{Replica: folder})
	if err != nil {
		return nil, err
	}
	if _, err := recall.Fill(known, recall.Source{Folder: folder, Lines: decisionlog.MaxLines}); err != nil {
		return nil, err
	}
	return fromInventory(known, q)
}

// FromReports reads the reports in a cluster.
func FromReports(ctx context.Context, client dynamic.Interface, q Query) (*List, error) {
	known, unread, err := reports.Inventory(ctx, client)
	if errors.Is(err, reports.ErrNone) {
		err = fmt.Errorf("%w: ask the gateway (--gateway)", err)
	}
	if err != nil {
		return nil, err
	}
	q.Key = q.Key[:min(len(q.Key), recall.ReportedKey)]
	found, err := fromInventory(known, q)
	if err != nil {
		return nil, err
	}
	found.InReports, found.NotRead = true, unread
	return found, nil
}

// fromInventory evaluates a query on an inventory.
func fromInventory(known *inventory.Inventory, q Query) (*List, error) {
	found := newList()
	found.About = known.About()
	for offset := 0; ; {
		page, err := known.Images(inventory.ImageQuery{
			Digest: q.Digest, Policy: q.Policy, Key: q.Key, Signer: q.Signer,
			Sort: inventory.ByReference, Page: inventory.Page{Offset: offset, Limit: inventory.MaxPage},
		})
		if err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			if details, ok := known.Image(item.ID); ok {
				details.Record = nil
				found.Images = append(found.Images, details)
			}
		}
		offset += len(page.Items)
		if len(page.Items) == 0 || offset >= page.Total {
			return found, nil
		}
	}
}
