package sigstore

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// Rekor is the part of a transparency log (Rekor's API, version 1) that cosign
// needs: it records signatures (entries of the types hashedrekord and dsse,
// version 0.0.1) and proves so, with a promise and with an inclusion proof
// (RFC 6962) under a signed checkpoint. It does not check its input; a verifier
// of an entry compares it with the signature.
type Rekor struct {
	URL string
	key *ecdsa.PrivateKey
	id  [sha256.Size]byte

	mu     sync.Mutex
	leaves [][]byte // hashes
}

// NewRekor serves a log with a key of its own until the test ends.
func NewRekor(t testing.TB) *Rekor {
	t.Helper()
	r := &Rekor{key: newKey(t)}
	r.id = sha256.Sum256(publicDER(&r.key.PublicKey))
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v1/log/entries", r.add)
	mux.HandleFunc("GET /api/v1/log/publicKey", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-pem-file")
		_, _ = w.Write(r.PublicPEM())
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	r.URL = server.URL
	return r
}

// PublicPEM is the log's public key.
func (r *Rekor) PublicPEM() []byte { return publicPEM(r.key) }

func (r *Rekor) add(w http.ResponseWriter, q *http.Request) {
	proposed, err := io.ReadAll(io.LimitReader(q.Body, 10<<20))
	if err == nil {
		proposed, err = canonical(proposed)
	}
	if err != nil {
		answer(w, http.StatusBadRequest, map[string]any{"code": http.StatusBadRequest, "message": err.Error()})
		return
	}
	id, entry, err := r.record(proposed)
	if err != nil {
		answer(w, http.StatusInternalServerError, map[string]any{"code": http.StatusInternalServerError, "message": err.Error()})
		return
	}
	w.Header().Set("ETag", id)
	w.Header().Set("Location", "/api/v1/log/entries/"+id)
	answer(w, http.StatusCreated, map[string]any{id: entry})
}

// record puts the body of an entry into the log.
func (r *Rekor) record(body []byte) (id string, entry map[string]any, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	leaf := hashOf(0, body)
	r.leaves = append(r.leaves, leaf)
	size := len(r.leaves)
	entry = map[string]any{
		"body": base64.StdEncoding.EncodeToString(body), "integratedTime": time.Now().Unix(),
		"logID": hex.EncodeToString(r.id[:]), "logIndex": size - 1,
	}
	promised, err := json.Marshal(entry) // sorted and dense, as the promise wants it
	if err != nil {
		return "", nil, err
	}
	promise, err := sign(r.key, promised)
	if err != nil {
		return "", nil, err
	}
	root := rootOf(r.leaves)
	checkpoint, err := r.checkpoint(size, root)
	if err != nil {
		return "", nil, err
	}
	hashes := []string{}
	for _, hash := range pathTo(size-1, r.leaves) {
		hashes = append(hashes, hex.EncodeToString(hash))
	}
	entry["verification"] = map[string]any{
		"signedEntryTimestamp": promise,
		"inclusionProof": map[string]any{
			"logIndex": size - 1, "treeSize": size, "rootHash": hex.EncodeToString(root), "hashes": hashes, "checkpoint": checkpoint,
		},
	}
	return hex.EncodeToString(leaf), entry, nil
}

// checkpoint writes a signed note.
func (r *Rekor) checkpoint(size int, root []byte) (string, error) {
	const name = "rekor.test"
	text := fmt.Sprintf("%s - 1\n%d\n%s\n", name, size, base64.StdEncoding.EncodeToString(root))
	signature, err := sign(r.key, []byte(text))
	if err != nil {
		return "", err
	}
	line := base64.StdEncoding.EncodeToString(append(r.id[:4:4], signature...))
	return fmt.Sprintf("%s\n\u2014 %s %s\n", text, name, line), nil
}

// canonical returns what Rekor records of a proposed entry: of a hashedrekord
// that itself, of an envelope its hashes and signatures.
func canonical(proposed []byte) ([]byte, error) {
	var entry struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		Spec       map[string]any `json:"spec"`
	}
	if err := json.Unmarshal(proposed, &entry); err != nil {
		return nil, err
	}
	switch entry.Kind + " " + entry.APIVersion {
	case "hashedrekord 0.0.1":
	case "dsse 0.0.1":
		var err error
		entry.Spec, err = recorded(proposed)
		if err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("an entry of the type %s, version %s, is not taken here", entry.Kind, entry.APIVersion)
	}
	return json.Marshal(map[string]any{"apiVersion": entry.APIVersion, "kind": entry.Kind, "spec": entry.Spec})
}

func recorded(proposed []byte) (map[string]any, error) {
	var entry struct {
		Spec struct {
			ProposedContent struct {
				Envelope  string   `json:"envelope"`
				Verifiers [][]byte `json:"verifiers"`
			} `json:"proposedContent"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(proposed, &entry); err != nil {
		return nil, err
	}
	content := entry.Spec.ProposedContent
	var envelope struct {
		Payload    []byte
		Signatures []struct{ Sig string }
	}
	if err := json.Unmarshal([]byte(content.Envelope), &envelope); err != nil {
		return nil, err
	}
	if len(envelope.Signatures) != 1 || len(content.Verifiers) != 1 {
		return nil, fmt.Errorf("%d signatures and %d verifiers, want one of each", len(envelope.Signatures), len(content.Verifiers))
	}
	hash := func(b []byte) map[string]any {
		sum := sha256.Sum256(b)
		return map[string]any{"algorithm": "sha256", "value": hex.EncodeToString(sum[:])}
	}
	return map[string]any{
		"envelopeHash": hash([]byte(content.Envelope)), "payloadHash": hash(envelope.Payload),
		"signatures": []any{map[string]any{"signature": envelope.Signatures[0].Sig, "verifier": content.Verifiers[0]}},
	}, nil
}

// hashOf is RFC 6962's hash of a leaf (kind 0) or of two nodes (kind 1).
func hashOf(kind byte, parts ...[]byte) []byte {
	h := sha256.New()
	h.Write([]byte{kind})
	for _, part := range parts {
		h.Write(part)
	}
	return h.Sum(nil)
}

// split is the largest power of two below n.
func split(n int) int {
	k := 1
	for k*2 < n {
		k *= 2
	}
	return k
}

// rootOf is the root of the tree of some leaves.
func rootOf(leaves [][]byte) []byte {
	if len(leaves) == 1 {
		return leaves[0]
	}
	k := split(len(leaves))
	return hashOf(1, rootOf(leaves[:k]), rootOf(leaves[k:]))
}

// pathTo is the inclusion proof of a leaf.
func pathTo(leaf int, leaves [][]byte) [][]byte {
	if len(leaves) == 1 {
		return nil
	}
	k := split(len(leaves))
	if leaf < k {
		return append(pathTo(leaf, leaves[:k]), rootOf(leaves[k:]))
	}
	return append(pathTo(leaf-k, leaves[k:]), rootOf(leaves[:k]))
}
