package verifytest

import (
	"crypto"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

const (
	// treeID is the number of the current tree of the Rekor v1 logs, and
	// firstIndex the number of entries of earlier ones.
	treeID     = 1193050959916656506
	firstIndex = 4163431
)

func newRekor(url string, valid span) (*Log, error) {
	key, err := newKey(ECDSAP256) // the only kind that cosign supports
	if err != nil {
		return nil, fmt.Errorf("make the key of a Rekor log: %w", err)
	}
	id := sha256.Sum256(publicDER(key.Public()))
	l := &Log{key: key, id: id[:], url: url, valid: valid, first: firstIndex}
	l.origin = fmt.Sprintf("%s - %d", l.host(), int64(treeID))
	l.fill()
	return l, nil
}

// record adds a signed content to a log.
func (s *Sigstore) record(r Record, c *content, at time.Time) (*entry, error) {
	log := s.Rekor
	if r.Log != nil {
		log = r.Log
	}
	if !r.Time.IsZero() {
		at = r.Time
	}
	if r.NoProof && (r.NoPromise || log.v2) {
		return nil, errors.New("record: neither a promise nor a proof; leave the record out instead")
	}
	if log.v2 && r.Fault == WrongPromise {
		return nil, errors.New("record: Rekor v2 makes no promises")
	}
	if r.Payload && r.Kind != "intoto" || r.Fault == OtherPayload && !r.Payload {
		return nil, errors.New("record: only an intoto entry keeps a payload")
	}
	e, err := log.entry(r, c)
	if err != nil {
		return nil, err
	}
	e.proof, err = log.add(e.body, r.Fault)
	if err != nil {
		return nil, err
	}
	e.index = log.first + e.proof.index
	e.logID = log.id
	if r.As != nil {
		e.logID = r.As.id
	}
	if !log.v2 {
		e.time = at.Unix()
		if !r.NoPromise {
			e.promise, err = log.promise(e, r.Fault == WrongPromise)
			if err != nil {
				return nil, err
			}
		}
	}
	if r.NoProof {
		e.proof = nil
	}
	return e, nil
}

// promise is the SignedEntryTimestamp.
func (l *Log) promise(e *entry, wrong bool) ([]byte, error) {
	message, err := e.promised()
	if err != nil {
		return nil, err
	}
	if wrong {
		message = append(message, ' ')
	}
	signature, err := l.sign(message)
	if err != nil {
		return nil, fmt.Errorf("sign a promise: %w", err)
	}
	return signature, nil
}

// promised returns the signed bytes of a promise: canonical JSON, that is, sorted names and no
// white space. It is also the Payload of cosign's bundle annotation.
func (e *entry) promised() ([]byte, error) {
	return canonical(map[string]any{
		"body":           base64.StdEncoding.EncodeToString(e.body),
		"integratedTime": e.time,
		"logIndex":       e.index,
		"logID":          hex.EncodeToString(e.logID),
	})
}

// canonical writes JSON as in RFC 8785. encoding/json does so for the values in log entries:
// names and values of printable ASCII without <, > and &, and integers.
func canonical(value any) ([]byte, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode a log entry: %w", err)
	}
	return data, nil
}

// entry writes the body of an entry.
func (l *Log) entry(r Record, c *content) (*entry, error) {
	kind := r.Kind
	if l.v2 {
		return entryV2(kind, c)
	}
	if kind == "" {
		kind = "hashedrekord"
		if c.dsse {
			kind = "dsse"
		}
	}
	var spec any
	version := "0.0.1"
	var err error
	switch {
	case kind == "hashedrekord" && !c.dsse:
		spec, err = hashedrekord(c)
	case kind == "dsse" && c.dsse:
		spec = dsseEntry(c)
	case kind == "intoto" && c.dsse:
		version = "0.0.2"
		spec = intotoEntry(c, r)
	default:
		err = fmt.Errorf("record: Rekor v1 has no entry of type %q for this content", kind)
	}
	if err != nil {
		return nil, err
	}
	body, err := canonical(map[string]any{"apiVersion": version, "kind": kind, "spec": spec})
	return &entry{kind: kind, version: version, body: body}, err
}

func hashedrekord(c *content) (any, error) {
	names := map[crypto.Hash]string{crypto.SHA256: "sha256", crypto.SHA384: "sha384", crypto.SHA512: "sha512"}
	name, ok := names[c.hash]
	switch {
	case c.pure:
		return nil, errors.New("record: Rekor takes no pure Ed25519 message signature; use Prehash or NoLog")
	case c.signer.options.PSS:
		return nil, errors.New("record: Rekor takes no RSASSA-PSS message signature; use NoLog")
	case !ok:
		return nil, fmt.Errorf("record: Rekor takes no %s message signature; use NoLog", c.hash)
	}
	return map[string]any{
		"data":      map[string]any{"hash": hashObject(name, c.digest)},
		"signature": map[string]any{"content": c.signature, "publicKey": map[string]any{"content": c.signer.verifierPEM()}},
	}, nil
}

func dsseEntry(c *content) any {
	return map[string]any{
		"envelopeHash": hashObject("sha256", sum(crypto.SHA256, c.envelope)),
		"payloadHash":  hashObject("sha256", sum(crypto.SHA256, c.payload)),
		"signatures": []any{map[string]any{
			"signature": base64.StdEncoding.EncodeToString(c.signature),
			"verifier":  c.signer.verifierPEM(),
		}},
	}
}

func intotoEntry(c *content, r Record) any {
	envelope := map[string]any{
		"payloadType": c.payloadType,
		"signatures": []any{map[string]any{
			"publicKey": c.signer.verifierPEM(),
			// Encoded twice, as in this entry type.
			"sig": []byte(base64.StdEncoding.EncodeToString(c.signature)),
		}},
	}
	if r.Payload {
		payload := c.payload
		if r.Fault == OtherPayload {
			payload = append([]byte("\n"), payload...)
		}
		// Encoded twice, as the signature.
		envelope["payload"] = []byte(base64.StdEncoding.EncodeToString(payload))
	}
	return map[string]any{"content": map[string]any{
		"envelope":    envelope,
		"hash":        hashObject("sha256", sum(crypto.SHA256, c.envelope)),
		"payloadHash": hashObject("sha256", sum(crypto.SHA256, c.payload)),
	}}
}

func hashObject(algorithm string, digest []byte) any {
	return map[string]any{"algorithm": algorithm, "value": hex.EncodeToString(digest)}
}

// verifierPEM is the signer's identity in Rekor v1: the certificate or the bare key.
func (s *Signer) verifierPEM() []byte {
	if s.leaf != nil {
		return s.CertificatePEM()
	}
	return s.PublicPEM()
}
