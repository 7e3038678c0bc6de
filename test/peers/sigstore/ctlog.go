package sigstore

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	ct "github.com/google/certificate-transparency-go"
	"github.com/google/certificate-transparency-go/tls"
)

// CTLog is the part of a certificate transparency log (RFC 6962) that fulcio
// asks: it promises to record a precertificate. It keeps nothing.
type CTLog struct {
	URL string
	key *ecdsa.PrivateKey
}

// NewCTLog serves a log with a key of its own until the test ends.
func NewCTLog(t testing.TB) *CTLog {
	t.Helper()
	l := &CTLog{key: newKey(t)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /ct/v1/add-pre-chain", l.add)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	l.URL = server.URL
	return l
}

// PublicPEM is the log's public key.
func (l *CTLog) PublicPEM() []byte { return publicPEM(l.key) }

func (l *CTLog) add(w http.ResponseWriter, r *http.Request) {
	promise, err := l.promise(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer(w, http.StatusOK, promise)
}

func (l *CTLog) promise(r *http.Request) (*ct.AddChainResponse, error) {
	var asked ct.AddChainRequest
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		return nil, err
	}
	var chain []ct.ASN1Cert
	for _, der := range asked.Chain {
		chain = append(chain, ct.ASN1Cert{Data: der})
	}
	at := uint64(time.Now().UnixMilli())
	leaf, err := ct.MerkleTreeLeafFromRawChain(chain, ct.PrecertLogEntryType, at)
	if err != nil {
		return nil, err
	}
	id := sha256.Sum256(publicDER(&l.key.PublicKey))
	sct := ct.SignedCertificateTimestamp{SCTVersion: ct.V1, LogID: ct.LogID{KeyID: id}, Timestamp: at}
	input, err := ct.SerializeSCTSignatureInput(sct, ct.LogEntry{Leaf: *leaf})
	if err != nil {
		return nil, err
	}
	signature, err := sign(l.key, input)
	if err != nil {
		return nil, err
	}
	signed, err := tls.Marshal(tls.DigitallySigned{
		Algorithm: tls.SignatureAndHashAlgorithm{Hash: tls.SHA256, Signature: tls.ECDSA}, Signature: signature,
	})
	if err != nil {
		return nil, err
	}
	return &ct.AddChainResponse{SCTVersion: ct.V1, ID: id[:], Timestamp: at, Signature: signed}, nil
}
