package attacks

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// Limits of one request, independent of the registry: its time, the bytes that it reads and
// the requests that it sends. Lists of referrers are read as a stream of which one entry is
// kept, up to 32 MiB for all types at once and 4 MiB for each of twelve after that: that is
// time and no memory.
const (
	budget      = 10 * time.Second // a webhook's usual timeout
	mostBytes   = 16 << 20
	mostListed  = (32 + 12*4) << 20
	mostAsked   = 1000
	bombs       = 1 << 30
	manyReferrs = 10000
)

// crowded plays an image with too many signatures or referrers; the control is the image
// before that.
func crowded(crowd func(s *scene, image gatetest.Image), codes ...policy.Code) func(*scene) {
	return func(s *scene) {
		image, evil := s.signed("honest"), s.built("evil")
		s.policies(signedBy(ofKey))
		s.runs(image.Name, image)
		s.again(budget)
		crowd(s, evil)
		s.Registry.Reset()
		began := time.Now()
		s.refused(evil.Name, codes...)
		s.cheap(time.Since(began))
	}
}

// cheap holds that the last request stayed within its bounds.
func (s *scene) cheap(took time.Duration) {
	s.t.Helper()
	if took > budget+5*time.Second { // the busy machine's share
		s.t.Errorf("it took %v of %v", took, budget)
	}
	if asked := len(s.Registry.Requests()); asked > mostAsked {
		s.t.Errorf("%d requests, want %d at most", asked, mostAsked)
	}
	most := int64(mostBytes)
	if s.listed {
		most = mostListed
	}
	if s.endpoint == library && s.last.Cost.Bytes > most {
		s.t.Errorf("%d bytes were read, want %d at most", s.last.Cost.Bytes, most)
	}
	if s.endpoint == library {
		s.t.Logf("%d requests, %d bytes, %v", len(s.Registry.Requests()), s.last.Cost.Bytes, took.Round(time.Millisecond))
	}
}

func fault(kind registrytest.Kind, do registrytest.Action) func(*scene, gatetest.Image) {
	return func(s *scene, _ gatetest.Image) {
		s.listed = kind == registrytest.Referrers
		s.misbehaves(registrytest.Fault{Method: http.MethodGet, Kind: kind, Do: do})
	}
}

func boundAttacks() []attack {
	const crowds = "GHSA-vfp6-jrw2-99g9, CVE-2023-46737; GHSA-9m3v-v4r5-ppx7, GHSA-rvrx-rrwh-r9p6"
	row := func(name, what, source string, play func(*scene)) attack {
		return attack{name, what, source, everywhere(), play}
	}
	return []attack{
		row("thousand-signatures", "The image has a thousand unreadable bundles. It is denied in the request's time, after a bounded number of them.", crowds, crowded(thousandBundles, policy.TooMuch)),
		row("thousand-layers", "Cosign's tag has a thousand signatures by other keys. It is denied in the request's time.", crowds, crowded(thousandLayers)),
		row("ten-thousand-referrers", "The registry lists ten thousand referrers. The image is denied in the request's time, after a bounded number of them.", crowds, crowded(tenThousand)),
		row("two-hundred-notations", "The image has two hundred notation signatures by other keys. It is denied in the request's time, after a bounded number of them.", "GHSA-9m3v-v4r5-ppx7, CVE-2023-33957; GHSA-rvrx-rrwh-r9p6, CVE-2023-33958", func(s *scene) {
			image, evil := s.built("honest"), s.built("evil")
			s.check(s.SignNotation(image, s.notary, verifytest.Notation{}))
			s.policies(notarized())
			s.runs(image.Name, image)
			s.again(budget)
			for i := range 200 {
				s.check(s.SignNotation(evil, s.other, verifytest.Notation{Metadata: map[string]string{"n": fmt.Sprint(i)}}))
			}
			s.Registry.Reset()
			began := time.Now()
			s.refused(evil.Name, policy.TooMuch, code(verify.UntrustedChain))
			s.cheap(time.Since(began))
		}),
		row("key-of-eighty-kibibytes", "The signature's log entry brings an RSA key of 80 KiB, and a verification with it takes half a minute. It is denied before any computation with it.", "CVE-2023-29409", crowded(beside("dev.sigstore.cosign/bundle", longKey), code(verify.Malformed))),
		row("timestamp-read-for-years", "The signature's timestamp has elements that exceed their parents, so that a BER parser reads them again for each. It is denied before that.", "BER with overlapping elements", crowded(beside("dev.sigstore.cosign/rfc3161timestamp", exceeding), code(verify.Malformed))),
		row("endless-manifest", "Manifests do not end. The request ends, and denies.", "GHSA-88jx-383q-w4qc, CVE-2024-29902", crowded(fault(registrytest.Manifest, registrytest.Endless()), errored()...)),
		row("endless-referrers", "The list of referrers does not end. The request ends, and denies.", "GHSA-95pr-fxf5-86gv, CVE-2024-29903; CVE-2023-42813", crowded(fault(registrytest.Referrers, registrytest.Endless()), errored()...)),
		row("bomb", "The list of referrers is compressed, and unpacks to a gibibyte. The request ends, and denies.", "gzip bombs; GHSA-95pr-fxf5-86gv", crowded(fault(registrytest.Referrers, registrytest.GzipBomb(bombs)))),
		row("bomb-of-a-manifest", "A manifest is compressed, and unpacks to a gibibyte. The request ends, and denies.", "gzip bombs; GHSA-88jx-383q-w4qc", crowded(fault(registrytest.Manifest, registrytest.GzipBomb(bombs)))),
	}
}

// beside signs by the key, with an annotation of the attacker's.
func beside(annotation string, content func(t testing.TB) object) func(*scene, gatetest.Image) {
	return func(s *scene, image gatetest.Image) {
		claim := by(s.key)
		claim.Image = &verifytest.SimpleSigning{Reference: image.Repository, Digest: image.Manifest.Digest}
		layer := testkit.Must(s.Sigstore.Layer(claim))(s.t)
		layer.Annotations[annotation] = string(testkit.Must(json.Marshal(content(s.t)))(s.t))
		s.check(s.PutLegacy(image, ".sig", layer))
	}
}

// longKey is a log entry of a key of 80 KiB, and of a signature as long.
func longKey(t testing.TB) object {
	const size = 80 << 10
	long := verifytest.LongKey(size * 8)
	long.E = 1<<31 - 1 // takes longest
	key := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: testkit.Must(x509.MarshalPKIXPublicKey(long))(t)})
	body := testkit.Must(json.Marshal(object{"apiVersion": "0.0.1", "kind": "hashedrekord", "spec": object{
		"data":      object{"hash": object{"algorithm": "sha256", "value": strings.Repeat("00", sha256.Size)}},
		"signature": object{"content": append([]byte{0}, bytes.Repeat([]byte{1}, size-1)...), "publicKey": object{"content": key}},
	}}))(t)
	return object{"SignedEntryTimestamp": []byte{0}, "Payload": object{"body": body, "logID": "00", "logIndex": 1, "integratedTime": time.Now().Unix()}}
}

// exceeding is a timestamp of 140 bytes: the length of each element is shorter than its
// content.
func exceeding(t testing.TB) object {
	const elements = 31
	var token []byte
	for i := range elements {
		token = append(token, 0x30, 2, 0x30, byte(4*(elements-i)-2))
	}
	return object{"SignedRFC3161Timestamp": testkit.Must(asn1.Marshal([]asn1.RawValue{
		{Tag: asn1.TagSequence, IsCompound: true, Bytes: []byte{asn1.TagInteger, 1, 0}},
		{Tag: asn1.TagSequence, IsCompound: true, Bytes: append(token, asn1.TagNull, 0)},
	}))(t)}
}

func thousandBundles(s *scene, image gatetest.Image) {
	for i := range 1000 {
		s.check(s.PutBundle(image, fmt.Appendf(nil, `{"junk":%d}`, i), verifytest.CosignSignPredicateType))
	}
}

func thousandLayers(s *scene, image gatetest.Image) {
	claim := by(s.stranger)
	claim.Image = &verifytest.SimpleSigning{Reference: image.Repository, Digest: image.Manifest.Digest}
	layer := testkit.Must(s.sigstore.Layer(claim))(s.t)
	blob := s.Registry.PutBlob(image.Repository, layer.MediaType, layer.Payload)
	layers := make([]any, 1000)
	for i := range layers {
		layers[i] = object{"mediaType": blob.MediaType, "digest": blob.Digest, "size": blob.Size, "annotations": layer.Annotations}
	}
	body := testkit.Must(json.Marshal(object{
		"schemaVersion": 2, "mediaType": ocispec.MediaTypeImageManifest, "layers": layers,
		"config": s.Registry.PutBlob(image.Repository, ocispec.MediaTypeImageConfig, []byte("{}")),
	}))(s.t)
	s.Registry.PutManifest(image.Repository, strings.Replace(image.Manifest.Digest, ":", "-", 1)+".sig", ocispec.MediaTypeImageManifest, body)
}

func tenThousand(s *scene, _ gatetest.Image) {
	list := make([]registrytest.Descriptor, manyReferrs)
	for i := range list {
		list[i] = registrytest.Descriptor{
			MediaType: "application/vnd.oci.image.manifest.v1+json", ArtifactType: verifytest.BundleMediaType,
			Digest: registrytest.DigestOf(fmt.Append(nil, i)), Size: 1000,
		}
	}
	s.misbehaves(registrytest.Fault{Kind: registrytest.Referrers, Do: registrytest.ForgeReferrers(list...)})
}
