package certificate

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"time"
)

// keyMaterial is the key material that the replicas share, as read from the Store. Broken or missing
// parts are nil, and flaws lists them.
type keyMaterial struct {
	authorities []*x509.Certificate // the signing one first
	key         *ecdsa.PrivateKey   // of the first
	pair        *tls.Certificate
	pem         [2][]byte // of the pair: certificate and key
	peers       []byte
	flaws       []error
}

// read parses the entries and keeps the valid ones.
func read(entries map[string][]byte) keyMaterial {
	var e keyMaterial
	flaw := func(entry string, err error) {
		if err != nil {
			e.flaws = append(e.flaws, fmt.Errorf("%s: %w", entry, err))
		}
	}
	var err error
	e.authorities, err = parseAuthorities(entries[EntryBundle])
	flaw(EntryBundle, err)
	e.key, err = parseKey(entries[EntryAuthority])
	if err == nil && len(e.authorities) > 0 && !belongs(e.key, e.authorities[0]) {
		e.key, err = nil, fmt.Errorf("is not the key of the first certificate in %s", EntryBundle)
	}
	flaw(EntryAuthority, err)
	e.pem = [2][]byte{entries[EntryCertificate], entries[EntryKey]}
	e.pair, err = parsePair(e.pem[0], e.pem[1])
	flaw(EntryCertificate, err)
	e.peers = entries[EntryPeers]
	if len(e.peers) != peerKeySize {
		flaw(EntryPeers, fmt.Errorf("has %d bytes, must have %d", len(e.peers), peerKeySize))
		e.peers = nil
	}
	return e
}

// inherit replaces broken or missing parts by those that this process still holds, so that clients
// continue to trust it. The authority's key is never inherited: deleting it forces a new one.
func (e *keyMaterial) inherit(from keyMaterial) {
	if len(e.authorities) == 0 {
		e.authorities, e.key = from.authorities, nil
	}
	if e.pair == nil {
		e.pair, e.pem = from.pair, from.pem
	}
}

// renew creates missing parts, renews due ones and drops expired ones. It reports whether the Store
// must be written.
func (e *keyMaterial) renew(wanted []string, now time.Time) (changed bool, err error) {
	changed, err = e.renewAuthorities(now)
	if err != nil {
		return false, err
	}
	if e.peers == nil {
		e.peers, changed = make([]byte, peerKeySize), true
		if _, err := rand.Read(e.peers); err != nil {
			return false, fmt.Errorf("make a key for the replicas: %w", err)
		}
	}
	if names, stale := e.stale(wanted, now); stale {
		return true, e.sign(names, now)
	}
	return changed, nil
}

func (e *keyMaterial) renewAuthorities(now time.Time) (changed bool, err error) {
	if e.key == nil || len(e.authorities) == 0 || checkLife(e.authorities[0], now) != nil || due(e.authorities[0], now) {
		next, key, err := newAuthority(now)
		if err != nil {
			return false, err
		}
		e.authorities, e.key, changed = append([]*x509.Certificate{next}, e.authorities...), key, true
	}
	before := len(e.authorities)
	e.authorities = slices.DeleteFunc(slices.Clone(e.authorities), func(c *x509.Certificate) bool { return now.After(c.NotAfter) })
	e.authorities = e.authorities[:min(len(e.authorities), maxAuthorities)]
	return changed || len(e.authorities) != before, nil
}

// stale reports whether a leaf must be signed, and for which names. While the old leaf is valid,
// signing waits until clients trust the new authority.
func (e *keyMaterial) stale(wanted []string, now time.Time) (names []string, stale bool) {
	if e.pair == nil || checkLife(e.pair.Leaf, now) != nil || checkTrust(e.pair, e.authorities, now) != nil {
		return wanted, true
	}
	if checkNames(e.pair.Leaf, wanted) != nil {
		return e.namesWith(wanted), true
	}
	old := due(e.pair.Leaf, now) || e.pair.Leaf.CheckSignatureFrom(e.authorities[0]) != nil
	return wanted, old && e.published(now)
}

// published reports whether clients trust the signing authority: it is the only one, or it has been
// in the bundle for PublishTime.
func (e *keyMaterial) published(now time.Time) bool {
	return len(e.authorities) == 1 || !now.Before(e.authorities[0].NotBefore.Add(skew+PublishTime))
}

// namesWith adds the wanted names to those of the leaf. During an update, replicas of two
// configurations must not remove each other's names.
func (e *keyMaterial) namesWith(wanted []string) []string {
	all := append(names(e.pair.Leaf), wanted...)
	slices.Sort(all)
	all = slices.Compact(all)
	if len(all) > maxNames {
		return wanted
	}
	return all
}

func (e *keyMaterial) sign(names []string, now time.Time) error {
	leaf, key, err := newLeaf(names, e.authorities[0], e.key, now)
	if err != nil {
		return err
	}
	text, err := encodeKey(key)
	if err != nil {
		return err
	}
	e.pem = [2][]byte{encodeCertificate(leaf), text}
	e.pair = &tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}
	return nil
}

// entries returns the key material in a Store's format.
func (e *keyMaterial) entries() (map[string][]byte, error) {
	key, err := encodeKey(e.key)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		EntryBundle: encodeCertificate(e.authorities...), EntryAuthority: key,
		EntryCertificate: bytes.Clone(e.pem[0]), EntryKey: bytes.Clone(e.pem[1]), EntryPeers: bytes.Clone(e.peers),
	}, nil
}

func (e *keyMaterial) held() held {
	return held{certificate: e.pair, bundle: encodeCertificate(e.authorities...)}
}
