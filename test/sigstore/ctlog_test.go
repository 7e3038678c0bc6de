package sigstore_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	ct "github.com/google/certificate-transparency-go"
	"github.com/google/certificate-transparency-go/tls"
)

// ctLog is the part of a certificate transparency log (RFC 6962) that fulcio
// asks: it promises to record a precertificate. It keeps nothing.
type ctLog struct {
	url string
	key *ecdsa.PrivateKey
	der []byte // of the public key
}

func newCTLog(t testing.TB) *ctLog {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	l := &ctLog{key: key}
	l.der, err = x509.MarshalPKIXPublicKey(key.Public())
	check(t, err)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /ct/v1/add-pre-chain", l.add)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	l.url = server.URL
	return l
}

func (l *ctLog) publicPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: l.der})
}

func (l *ctLog) add(w http.ResponseWriter, r *http.Request) {
	promise, err := l.promise(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer(w, promise)
}

func (l *ctLog) promise(r *http.Request) (*ct.AddChainResponse, error) {
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
	id := sha256.Sum256(l.der)
	sct := ct.SignedCertificateTimestamp{SCTVersion: ct.V1, LogID: ct.LogID{KeyID: id}, Timestamp: at}
	input, err := ct.SerializeSCTSignatureInput(sct, ct.LogEntry{Leaf: *leaf})
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(input)
	signature, err := l.key.Sign(rand.Reader, sum[:], crypto.SHA256)
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
