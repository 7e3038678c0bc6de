package attestor

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/kyverno/api/api/policies.kyverno.io/v1alpha1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	prototrust "github.com/sigstore/protobuf-specs/gen/pb-go/trustroot/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/trust"
)

// mediaType is that of the only trusted_root.json that verifiers read.
const mediaType = "application/vnd.dev.sigstore.trustedroot+json;version=0.1"

// roots gives the authorities the trusted root that the document names, in place of
// the gateway's own. A root that is written out goes before a repository.
func (b *builder) roots(doc *v1alpha1.Cosign, list []verify.Authority, path string) error {
	var errs [2]error
	var repository *TUF
	if doc.TUF != nil {
		repository, errs[0] = readTUF(doc.TUF, b.options.Namespace, path+".tuf")
	}
	var root []byte
	switch {
	case doc.TrustedRoot != nil:
		root, errs[1] = b.trustedRoot(doc.TrustedRoot, path+".trustedRoot")
	case doc.TUF == nil || !needsRoot(doc):
	case b.request:
		root, errs[1] = []byte(b.root), field.Below(path+".tuf", checkRoot(b.root))
	default:
		b.tuf = repository
	}
	for i := range list {
		list[i].TrustedRoot = root
	}
	return errors.Join(errs[:]...)
}

// needsRoot reports whether a verification needs a trusted root: a key without a log needs none,
// so that it can be used before one was read.
func needsRoot(doc *v1alpha1.Cosign) bool {
	var log v1alpha1.CTLog
	if doc.CTLog != nil {
		log = *doc.CTLog
	}
	signer := doc.Keyless != nil && doc.Keyless.Roots == ""
	entry := !log.InsecureIgnoreTlog && log.RekorPubKey == ""
	timestamp := doc.Key == nil && !log.InsecureIgnoreSCT && log.CTLogPubKey == "" // of the certificate
	return signer || entry || timestamp
}

// trustedRoot reads a trusted_root.json that the document gives or computes.
func (b *builder) trustedRoot(doc *v1alpha1.StringOrExpression, path string) ([]byte, error) {
	text, err := b.either(doc, path)
	if err != nil || text.open {
		return nil, err
	}
	return []byte(text.text), field.Below(text.path, checkRoot(text.text))
}

// checkRoot requires a trusted_root.json with readable certificates and keys, so that an unusable
// one is found before an image is verified.
func checkRoot(text string) error {
	if len(text) > maxRoot {
		return tooLong(len(text), maxRoot)
	}
	root := &prototrust.TrustedRoot{}
	if err := protojson.Unmarshal([]byte(text), root); err != nil {
		return errors.Join(errors.New("want a trusted_root.json"), err)
	}
	if root.GetMediaType() != mediaType {
		return errors.New("want a trusted_root.json of media type " + mediaType + ", found " + field.Shorten(root.GetMediaType()))
	}
	for _, authority := range slices.Concat(root.GetCertificateAuthorities(), root.GetTimestampAuthorities()) {
		if err := checkChain(authority.GetCertChain()); err != nil {
			return err
		}
	}
	for _, log := range slices.Concat(root.GetTlogs(), root.GetCtlogs()) {
		if len(log.GetPublicKey().GetRawBytes()) == 0 {
			return errors.New("want a trusted_root.json: the log " + field.Shorten(log.GetBaseUrl()) + " has no public key")
		}
	}
	return trust.CheckTrustedRoot([]byte(text))
}

func checkChain(chain *protocommon.X509CertificateChain) error {
	if n := len(chain.GetCertificates()); n == 0 || n > maxCertificates {
		return errors.New("want a trusted_root.json: an authority has no certificates, or too many")
	}
	for _, c := range chain.GetCertificates() {
		if _, err := x509.ParseCertificate(c.GetRawBytes()); err != nil {
			return errors.Join(errors.New("want a trusted_root.json: a certificate is broken"), err)
		}
	}
	return nil
}

// TUF is a repository of The Update Framework that has a trusted_root.json.
type TUF struct {
	// Mirror is the repository's address; empty means the public-good one.
	Mirror string
	// Root is the first root.json. If it is empty, the repository is a copy of the
	// public-good one.
	Root []byte
	// Key names the repository by its address and first root, in hexadecimal.
	Key string
	// Namespace is that of the policy; empty for a policy of the whole cluster.
	Namespace string
}

// String returns the address, for messages.
func (t TUF) String() string {
	if t.Mirror == "" {
		return "the public-good TUF repository"
	}
	return "the TUF repository " + t.Mirror
}

func readTUF(doc *v1alpha1.TUF, namespace, path string) (*TUF, error) {
	out := &TUF{Mirror: strings.TrimRight(doc.Mirror, "/"), Namespace: namespace}
	if doc.Root.Path != "" {
		return nil, field.Fail(path+".root.path", "names a file or an address outside the policy: put the root.json itself into data, in base64")
	}
	if doc.Mirror != "" {
		if err := address(doc.Mirror, path+".mirror"); err != nil {
			return nil, err
		}
	}
	var err error
	if doc.Root.Data != "" {
		out.Root, err = firstRoot(doc.Root.Data, path+".root.data")
	}
	key := keyOf([]string{out.Mirror, string(out.Root)})
	out.Key = hex.EncodeToString(key[:])
	return out, err
}

// firstRoot reads the first root.json of a repository, in base64.
func firstRoot(text, path string) ([]byte, error) {
	if len(text) > 2*maxFirstRoot {
		return nil, field.Below(path, tooLong(len(text), 2*maxFirstRoot))
	}
	root, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		return nil, field.Below(path, err)
	}
	var first struct {
		Signed struct {
			Type string `json:"_type"`
		} `json:"signed"`
	}
	if err := json.Unmarshal(bytes.TrimSpace(root), &first); err != nil || first.Signed.Type != "root" || len(root) > maxFirstRoot {
		return nil, field.Fail(path, "want a root.json of TUF of at most %d bytes, in base64", maxFirstRoot)
	}
	return root, nil
}
