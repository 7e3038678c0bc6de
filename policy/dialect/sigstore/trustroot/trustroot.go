package trustroot

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	prototrust "github.com/sigstore/protobuf-specs/gen/pb-go/trustroot/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/verify/trust"
)

// The bounds of a TUF repository that is carried in a TrustRoot: the public one
// has about 60 files and 300 KiB.
const (
	maxFiles      = 1000
	maxRepository = 16 << 20
)

// TrustRoot is a compiled TrustRoot: its trusted root, or the TUF repository that provides
// it. Exactly one of TrustedRoot and TUF is set.
type TrustRoot struct {
	Name, Source string
	// Hash is the SHA-256 of the name and of spec, in hexadecimal. The repository's root, and
	// the metadata that protects it against rollback, are kept when only a label changes.
	Hash string
	// TrustedRoot is a trusted_root.json, of spec.sigstoreKeys or spec.trustedRootJSON.
	TrustedRoot []byte
	TUF         *TUF
}

// TUF is a repository of The Update Framework, at an address or in the document.
type TUF struct {
	// Root is the first root.json.
	Root []byte
	// Mirror is the repository's address; empty where Files holds it.
	Mirror string
	// Files are the repository's files by their paths in it; nil with a Mirror.
	Files map[string][]byte
	// Targets is the folder of the targets, and Target the name of the trusted
	// root in it.
	Targets, Target string
}

// Recognises reports whether a document is a TrustRoot.
func Recognises(apiVersion, kind string) bool {
	return apiVersion == "policy.sigstore.dev/v1alpha1" && kind == "TrustRoot"
}

// Parse reads a TrustRoot, YAML or JSON. Source is its origin. The error joins all field
// errors with their paths.
func Parse(text []byte, source string) (*TrustRoot, error) {
	root, err := parseTrustRoot(text)
	if err != nil {
		return nil, fmt.Errorf("TrustRoot in %s: %w", source, err)
	}
	root.Source = source
	return root, nil
}

func parseTrustRoot(text []byte) (*TrustRoot, error) {
	var d rootDocument
	data, err := field.Read(text, &d)
	if err != nil {
		return nil, err
	}
	if !Recognises(d.APIVersion, d.Kind) {
		return nil, fmt.Errorf("%s %s is no TrustRoot of policy.sigstore.dev/v1alpha1", d.APIVersion, d.Kind)
	}
	name, err := field.ReadName(d.Metadata)
	if err != nil {
		return nil, err
	}
	var content struct {
		Spec json.RawMessage `json:"spec"`
	}
	if err := json.Unmarshal(data, &content); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s", name, content.Spec))
	root := &TrustRoot{Name: name, Hash: hex.EncodeToString(sum[:])}
	forms := 0
	for _, is := range []bool{d.Spec.Remote != nil, d.Spec.Repository != nil, d.Spec.SigstoreKeys != nil, d.Spec.TrustedRootJSON != ""} {
		if is {
			forms++
		}
	}
	switch {
	case forms != 1:
		return nil, field.Fail("spec", "want one of remote, repository, sigstoreKeys and trustedRootJSON, found %d", forms)
	case d.Spec.Remote != nil:
		root.TUF, err = d.Spec.Remote.compile("spec.remote")
	case d.Spec.Repository != nil:
		root.TUF, err = d.Spec.Repository.compile("spec.repository")
	case d.Spec.TrustedRootJSON != "":
		root.TrustedRoot, err = compileJSON(d.Spec.TrustedRootJSON, "spec.trustedRootJSON")
	default:
		root.TrustedRoot, err = d.Spec.SigstoreKeys.compile("spec.sigstoreKeys")
	}
	return root, err
}

// check refuses a root that could not be used, such as one with two logs of one identifier.
func check(root *prototrust.TrustedRoot) error {
	text, err := Marshal(root)
	if err != nil {
		return err
	}
	return trust.CheckTrustedRoot(text)
}

func (r *remoteRoot) compile(path string) (*TUF, error) {
	errs := []error{checkRoot(r.Root, path+".root"), checkTarget(r.TrustedRootTarget, path+".trustedRootTarget"), checkTarget(r.Targets, path+".targets")}
	if err := field.URL(r.Mirror, path+".mirror"); err != nil {
		errs = append(errs, err)
	}
	return &TUF{
		Root: r.Root, Mirror: r.Mirror,
		Targets: cmp.Or(r.Targets, "targets"), Target: cmp.Or(r.TrustedRootTarget, "trusted_root.json"),
	}, errors.Join(errs...)
}

func (r *repositoryRoot) compile(path string) (*TUF, error) {
	errs := []error{checkRoot(r.Root, path+".root"), checkTarget(r.TrustedRootTarget, path+".trustedRootTarget"), checkTarget(r.Targets, path+".targets")}
	if r.Targets == "" {
		errs = append(errs, field.Fail(path+".targets", "is missing"))
	}
	files, err := unpack(r.MirrorFS)
	errs = append(errs, field.Below(path+".mirrorFS", err))
	return &TUF{
		Root: r.Root, Files: files, Targets: r.Targets, Target: cmp.Or(r.TrustedRootTarget, "trusted_root.json"),
	}, errors.Join(errs...)
}

// checkRoot requires a valid first root.json, so that an unusable document is reported
// when it is read.
func checkRoot(text []byte, path string) error {
	var root struct {
		Signed struct {
			Type string `json:"_type"`
		} `json:"signed"`
	}
	if err := json.Unmarshal(text, &root); err != nil || root.Signed.Type != "root" {
		return field.Fail(path, "want a root.json of TUF, in base64")
	}
	return nil
}

// checkTarget keeps a name inside the repository.
func checkTarget(name, place string) error {
	if name != "" && (strings.HasPrefix(name, "/") || strings.Contains(name, `\`) || path.Clean(name) != name || strings.HasPrefix(name, "..")) {
		return field.Fail(place, "%q: want a path inside the repository", name)
	}
	return nil
}

// unpack reads a tar.gz. Only files are kept, with paths inside the repository;
// links and devices are errors.
func unpack(text []byte) (map[string][]byte, error) {
	if len(text) == 0 {
		return nil, errors.New("is empty")
	}
	zipped, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("want a tar.gz in base64: %w", err)
	}
	left := int64(maxRepository)
	files := map[string][]byte{}
	for archive := tar.NewReader(io.LimitReader(zipped, maxRepository+maxFiles*1024)); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, fmt.Errorf("want a tar.gz in base64: %w", err)
		}
		name := path.Clean(header.Name)
		switch {
		case header.Typeflag == tar.TypeDir:
			continue
		case header.Typeflag != tar.TypeReg:
			return nil, fmt.Errorf("%q is no file", header.Name)
		case path.IsAbs(name) || name == ".." || strings.HasPrefix(name, "../"):
			return nil, fmt.Errorf("%q is outside the repository", header.Name)
		case len(files) >= maxFiles:
			return nil, fmt.Errorf("more than %d files", maxFiles)
		case header.Size > left:
			return nil, fmt.Errorf("its files exceed the bound of %d bytes", maxRepository)
		}
		content, err := io.ReadAll(io.LimitReader(archive, left))
		if err != nil {
			return nil, fmt.Errorf("%q: %w", header.Name, err)
		}
		left -= int64(len(content))
		files[name] = content
	}
}

// compileJSON reads the text of a trusted_root.json.
func compileJSON(text, path string) ([]byte, error) {
	root, err := Unmarshal([]byte(text))
	if err != nil {
		return nil, field.Below(path, err)
	}
	if len(root.GetCertificateAuthorities())+len(root.GetTimestampAuthorities())+len(root.GetTlogs())+len(root.GetCtlogs()) == 0 {
		return nil, field.Fail(path, "is empty, and so would trust nothing")
	}
	if err := check(root); err != nil {
		return nil, field.Below(path, err)
	}
	return Marshal(root)
}

func (k *sigstoreKeys) compile(path string) ([]byte, error) {
	root := &prototrust.TrustedRoot{MediaType: MediaType}
	var errs []error
	for i, ca := range k.CertificateAuthorities {
		made, err := ca.compile(fmt.Sprintf("%s.certificateAuthorities[%d]", path, i))
		errs = append(errs, err)
		root.CertificateAuthorities = append(root.CertificateAuthorities, made)
	}
	for i, tsa := range k.TimestampAuthorities {
		made, err := tsa.compile(fmt.Sprintf("%s.timestampAuthorities[%d]", path, i))
		errs = append(errs, err)
		root.TimestampAuthorities = append(root.TimestampAuthorities, made)
	}
	for i, log := range k.TLogs {
		made, err := log.compile(fmt.Sprintf("%s.tLogs[%d]", path, i))
		errs = append(errs, err)
		root.Tlogs = append(root.Tlogs, made)
	}
	for i, log := range k.CTLogs {
		made, err := log.compile(fmt.Sprintf("%s.ctLogs[%d]", path, i))
		errs = append(errs, err)
		root.Ctlogs = append(root.Ctlogs, made)
	}
	if len(k.CertificateAuthorities)+len(k.TimestampAuthorities)+len(k.TLogs)+len(k.CTLogs) == 0 {
		errs = append(errs, field.Fail(path, "is empty, and so would trust nothing"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if err := check(root); err != nil {
		return nil, field.Below(path, err)
	}
	return Marshal(root)
}

// compile reads a chain from the leaf to the root. It has no times of its own, so
// that its certificates' count alone.
func (ca certificateAuthority) compile(path string) (*prototrust.CertificateAuthority, error) {
	blocks, err := field.PEM(string(ca.CertChain), path+".certChain", field.Certificate)
	if err != nil {
		return nil, err
	}
	chain, err := trust.ParseCertificates([]byte(strings.Join(blocks, "")), trust.MaxCertificates)
	if err != nil {
		return nil, field.Below(path+".certChain", err)
	}
	for i, c := range chain {
		issuer := chain[min(i+1, len(chain)-1)]
		if err := c.CheckSignatureFrom(issuer); err != nil {
			return nil, field.Fail(path+".certChain", "certificate %d is not signed by the next one, as in a chain from the leaf to a self-signed root: %w", i+1, err)
		}
	}
	if ca.URI != "" {
		if err := field.URL(ca.URI, path+".uri"); err != nil {
			return nil, err
		}
	}
	return &prototrust.CertificateAuthority{
		Subject:   &protocommon.DistinguishedName{Organization: ca.Subject.Organization, CommonName: ca.Subject.CommonName},
		Uri:       ca.URI,
		CertChain: certificatesOf(chain),
	}, nil
}

// compile reads a log, which is identified by its key (RFC 6962). It has no validity
// period of its own, so it is valid from the earliest time. Its tree is one of SHA-256
// whatever the document states: with another algorithm, no proof could be verified.
func (l transparencyLog) compile(path string) (*prototrust.TransparencyLogInstance, error) {
	if !slices.Contains([]string{"sha-256", "sha256", "sha-384", "sha384", "sha-512", "sha512"}, l.HashAlgorithm) {
		return nil, field.Fail(path+".hashAlgorithm", "unknown algorithm %q: want sha-256, sha-384 or sha-512", l.HashAlgorithm)
	}
	if err := field.URL(l.BaseURL, path+".baseURL"); err != nil {
		return nil, err
	}
	blocks, err := field.PEM(string(l.PublicKey), path+".publicKey", field.PublicKey)
	if err != nil {
		return nil, err
	}
	if len(blocks) != 1 {
		return nil, field.Fail(path+".publicKey", "want one key, found %d", len(blocks))
	}
	block, _ := pem.Decode([]byte(blocks[0]))
	details, err := detailsOf(block.Bytes)
	if err != nil {
		return nil, field.Below(path+".publicKey", err)
	}
	id := sha256.Sum256(block.Bytes)
	return &prototrust.TransparencyLogInstance{
		BaseUrl: l.BaseURL, HashAlgorithm: protocommon.HashAlgorithm_SHA2_256, LogId: &protocommon.LogId{KeyId: id[:]},
		PublicKey: &protocommon.PublicKey{
			RawBytes: block.Bytes, KeyDetails: details,
			ValidFor: &protocommon.TimeRange{Start: timestamppb.New(time.Unix(0, 0))},
		},
	}, nil
}

func detailsOf(der []byte) (protocommon.PublicKeyDetails, error) {
	key, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return 0, err
	}
	switch k := key.(type) {
	case *ecdsa.PublicKey:
		switch k.Curve {
		case elliptic.P256():
			return protocommon.PublicKeyDetails_PKIX_ECDSA_P256_SHA_256, nil
		case elliptic.P384():
			return protocommon.PublicKeyDetails_PKIX_ECDSA_P384_SHA_384, nil
		case elliptic.P521():
			return protocommon.PublicKeyDetails_PKIX_ECDSA_P521_SHA_512, nil
		}
	case ed25519.PublicKey:
		return protocommon.PublicKeyDetails_PKIX_ED25519, nil
	case *rsa.PublicKey:
		switch k.N.BitLen() {
		case 2048:
			return protocommon.PublicKeyDetails_PKIX_RSA_PKCS1V15_2048_SHA256, nil
		case 3072:
			return protocommon.PublicKeyDetails_PKIX_RSA_PKCS1V15_3072_SHA256, nil
		case 4096:
			return protocommon.PublicKeyDetails_PKIX_RSA_PKCS1V15_4096_SHA256, nil
		}
	}
	return 0, errors.New("a log's key is ECDSA (P-256, P-384, P-521), Ed25519 or RSA (2048, 3072, 4096)")
}
