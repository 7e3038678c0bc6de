package trust

import (
	"crypto"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/sigstore/rekor-tiles/v2/pkg/note"
	"github.com/sigstore/sigstore-go/pkg/root"
)

// composedSince is the start of validity for keys from a PEM file, which have none: sigstore-go
// requires one.
var composedSince = time.Unix(0, 0).UTC()

// composeAuthorities makes one certificate authority for each root among PEM certificates, all
// with the same intermediates. Without a self-signed certificate, every certificate is a trust
// anchor.
func composeAuthorities(text []byte) ([]root.CertificateAuthority, error) {
	certificates, err := ParseCertificates(text, MaxCertificates)
	if err != nil {
		return nil, err
	}
	roots, intermediates := split(certificates)
	authorities := make([]root.CertificateAuthority, 0, len(roots))
	for _, anchor := range roots {
		authorities = append(authorities, &root.FulcioCertificateAuthority{Root: anchor, Intermediates: intermediates})
	}
	return authorities, nil
}

// split separates anchors from intermediates and a leaf.
func split(certificates []*x509.Certificate) (anchors, others []*x509.Certificate) {
	for _, c := range certificates {
		if isSelfSigned(c) {
			anchors = append(anchors, c)
		} else {
			others = append(others, c)
		}
	}
	if len(anchors) == 0 {
		return certificates, nil
	}
	return anchors, others
}

// composeTimestampAuthority makes a timestamp authority from a PEM chain. The leaf may be missing
// if the timestamps include it.
func composeTimestampAuthority(text []byte) (root.TimestampingAuthority, error) {
	certificates, err := ParseCertificates(text, MaxCertificates)
	if err != nil {
		return nil, err
	}
	authority := &root.SigstoreTimestampingAuthority{}
	for _, c := range certificates {
		switch {
		case isSelfSigned(c):
			if authority.Root != nil {
				return nil, errors.New("timestamp chain: more than one root; give one chain")
			}
			authority.Root = c
		case c.IsCA:
			authority.Intermediates = append(authority.Intermediates, c)
		case authority.Leaf != nil:
			return nil, errors.New("timestamp chain: more than one leaf; give one chain")
		default:
			authority.Leaf = c
		}
	}
	if authority.Root == nil {
		if len(authority.Intermediates) == 0 {
			return nil, errors.New("timestamp chain: no certificate authority in it; append its root")
		}
		last := len(authority.Intermediates) - 1
		authority.Root, authority.Intermediates = authority.Intermediates[last], authority.Intermediates[:last]
	}
	return authority, nil
}

// composeLogs makes logs from PEM public keys, with the key identifiers of RFC 6962 (Rekor v1,
// certificate transparency). A Rekor v2 log also has a name, so it is composed only with a URL.
func composeLogs(text []byte, address string) (map[string]*root.TransparencyLog, error) {
	blocks, err := splitPEM(text)
	if err != nil {
		return nil, err
	}
	logs := make(map[string]*root.TransparencyLog)
	for _, block := range blocks {
		key, err := ParsePublicKey(block, "")
		if err != nil {
			return nil, err
		}
		id, err := hex.DecodeString(key.Fingerprint)
		if err != nil {
			return nil, err
		}
		if err := addLog(logs, id, key, address); err != nil {
			return nil, err
		}
	}
	return logs, nil
}

func addLog(logs map[string]*root.TransparencyLog, id []byte, key *PublicKey, address string) error {
	log := root.TransparencyLog{
		BaseURL: address, ID: id, PublicKey: key.key, ValidityPeriodStart: composedSince,
		HashFunc: crypto.SHA256, SignatureHashFunc: hashOfLog(key),
	}
	logs[key.Fingerprint] = &log
	if address == "" {
		return nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return fmt.Errorf("log URL %q: want https://host[/path]", address)
	}
	_, named, err := note.KeyHash(u.Hostname(), key.key)
	if err != nil {
		return fmt.Errorf("log URL %q: %w", address, err)
	}
	v2 := log
	v2.ID = named
	logs[hex.EncodeToString(named)] = &v2
	return nil
}

// hashOfLog is the digest algorithm of a log's signatures: the one that belongs to its key.
func hashOfLog(key *PublicKey) crypto.Hash {
	if key.IsEd25519() {
		return crypto.SHA512
	}
	hashes, err := hashesFor(key.key, "")
	if err != nil {
		return crypto.SHA256
	}
	return hashes[0]
}

// selectLog keeps the logs with an address.
func selectLog(logs map[string]*root.TransparencyLog, address string) (map[string]*root.TransparencyLog, error) {
	if address == "" {
		return logs, nil
	}
	want, err := place(address)
	if err != nil {
		return nil, err
	}
	selected := make(map[string]*root.TransparencyLog)
	for id, log := range logs {
		if have, err := place(log.BaseURL); err == nil && have == want {
			selected[id] = log
		}
	}
	if len(selected) == 0 {
		return nil, fmt.Errorf("the trusted root has no transparency log %s; give its public key, or a trusted root that lists it", address)
	}
	return selected, nil
}

// place reduces a URL to the parts that identify the log: host, port and path.
func place(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "", fmt.Errorf("log URL %q: want https://host[/path]", address)
	}
	return strings.ToLower(u.Host) + strings.TrimRight(u.Path, "/"), nil
}
