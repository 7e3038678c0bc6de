package differential

import (
	"crypto"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"testing"
	"testing/cryptotest"
	"time"

	"github.com/notaryproject/notation-core-go/signature"

	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// What certificates say.
const (
	subject = "https://github.com/example/app/.github/workflows/release.yml@refs/tags/v1"
	issuer  = "https://token.actions.githubusercontent.com"
)

// algorithms are the names of keys as verifytest has them.
var algorithms = map[string]verifytest.Algorithm{
	"p256": verifytest.ECDSAP256, "p384": verifytest.ECDSAP384, "p521": verifytest.ECDSAP521,
	"rsa2048": verifytest.RSA2048, "rsa3072": verifytest.RSA3072, "ed25519": verifytest.Ed25519,
}

// hash is the hash of a signature: SHA-256 unless the question has another one, but in a
// bundle by a certificate the one that belongs to its key (zero).
func (r *recipe) hash() crypto.Hash {
	switch {
	case r.Key == "ed25519", r.Format == bundles && r.Certified:
		return 0
	case r.OtherHash:
		return map[string]crypto.Hash{"sha384": crypto.SHA384, "sha512": crypto.SHA512}[r.hashName()]
	default:
		return crypto.SHA256
	}
}

// hashName is that of a signature by another digest than SHA-256.
func (r *recipe) hashName() string {
	if r.Key == "p384" {
		return "sha384"
	}
	return "sha512"
}

// crowd has the signers and programs of more than one case.
type crowd struct {
	seed     uint64
	registry *registrytest.Server
	judges   judges
	folder   string
	kept     map[string]any // keys and notaries, by name
	made     map[string]*printed
}

// seeded is a number for a name, so that the signer of this name is the same in every
// run of a seed, in whatever order.
func (c *crowd) seeded(name string) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s", c.seed, name)
	return h.Sum64()
}

// keep makes something once.
func keep[T any](s *scene, name string, once func() (T, error)) T {
	s.t.Helper()
	if found, ok := s.kept[name]; ok {
		return found.(T)
	}
	cryptotest.SetGlobalRandom(s.t, s.seeded(name))
	made, err := once()
	cryptotest.SetGlobalRandom(s.t, s.seeded("after "+name))
	s.check(err)
	s.kept[name] = made
	return made
}

// key is the signer's or another one.
func (s *scene) key(whose string) *verifytest.Signer {
	o := verifytest.KeyOptions{Algorithm: algorithms[s.recipe.Key], Hash: s.recipe.hash()}
	return keep(s, fmt.Sprint("key of ", whose, o), func() (*verifytest.Signer, error) { return verifytest.KeySigner(o) })
}

// Notaries, beside the usual one.
const (
	over   = "over"   // the certificate has ended
	alone  = "alone"  // it is its own authority
	other  = "other"  // another authority's
	usual  = "usual"  //
	manual = "manual" // signs any payload
)

func (s *scene) notary(who string) *verifytest.Notary {
	o := verifytest.NotaryOptions{Name: who, Algorithm: algorithms[s.recipe.Key], SelfSigned: who == alone}
	if who == over {
		o.NotBefore, o.NotAfter = s.now.AddDate(-2, 0, 0), s.now.AddDate(0, -1, 0)
	}
	return keep(s, "notary "+who+s.recipe.Key, func() (*verifytest.Notary, error) { return verifytest.NewNotary(o) })
}

// penman signs any payload in notation's envelopes.
type penman struct {
	signer signature.Signer
	root   []byte
}

// penman is a signer with a certificate of a Sigstore's authority: notation requires
// only the usage.
func (s *scene) penman() *penman {
	return keep(s, "penman "+s.recipe.Key, func() (*penman, error) {
		sigstore, err := verifytest.New(verifytest.Options{Name: "penman"})
		if err != nil {
			return nil, err
		}
		key, err := sigstore.Keyless(verifytest.Identity{URI: subject, Issuer: issuer, NoSCT: true, Lifetime: 24 * time.Hour,
			Key: verifytest.KeyOptions{Algorithm: algorithms[s.recipe.Key]}})
		if err != nil {
			return nil, err
		}
		chain := []*x509.Certificate{key.Certificate()}
		for block, rest := pem.Decode(key.ChainPEM()); block != nil; block, rest = pem.Decode(rest) {
			c, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return nil, err
			}
			chain = append(chain, c)
		}
		signer, err := signature.NewLocalSigner(chain, key.Private())
		return &penman{signer: signer, root: sigstore.CA.RootPEM()}, err
	})
}

// notarial is what a notary is to sign.
type notarial struct {
	verifytest.Notation
	who       string
	attribute *signature.Attribute
	odd       func(payload *node)
}

// byHand reports whether only a penman can sign this.
func (n *notarial) byHand() bool { return n.attribute != nil || n.odd != nil }

// sign writes the envelope.
func (n *notarial) sign(s *scene) ([]byte, error) {
	if !n.byHand() {
		return s.notary(n.who).Sign(n.Notation)
	}
	target := n.Target
	target.Annotations = n.Metadata
	content, err := json.Marshal(map[string]any{"targetArtifact": target})
	if err != nil {
		return nil, err
	}
	if n.odd != nil {
		payload, err := parse(content)
		if err != nil {
			return nil, err
		}
		n.odd(payload)
		content = payload.text()
	}
	request := &signature.SignRequest{
		Payload: signature.Payload{ContentType: "application/vnd.cncf.notary.payload.v1+json", Content: content},
		Signer:  s.penman().signer, SigningTime: s.now, SigningScheme: signature.SigningSchemeX509, SigningAgent: "differential",
	}
	if n.attribute != nil {
		request.ExtendedSignedAttributes = []signature.Attribute{*n.attribute}
	}
	envelope, err := signature.NewEnvelope(n.MediaType)
	if err != nil {
		return nil, err
	}
	return envelope.Sign(request)
}

// newCrowd opens the registry and starts the judges.
func newCrowd(t *testing.T, seed uint64) *crowd {
	t.Helper()
	server := registrytest.Start(registrytest.Options{})
	t.Cleanup(server.Close)
	folder := t.TempDir()
	check(t, os.Mkdir(filepath.Join(folder, "imported"), 0o700))
	return &crowd{
		seed: seed, registry: server, folder: folder, judges: newJudges(t),
		kept: map[string]any{}, made: map[string]*printed{},
	}
}
