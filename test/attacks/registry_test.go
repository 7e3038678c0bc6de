package attacks

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// lie has the registry misbehave for a kind of request: an unsigned image is never admitted,
// and a signed one only by its verified digest.
func lie(kind registrytest.Kind, do func(s *scene) registrytest.Action, codes ...policy.Code) func(*scene) {
	return func(s *scene) {
		signed, unsigned := s.built("signed"), s.built("unsigned")
		s.check(s.SignBundle(signed, by(s.key), nil), s.SignBundle(unsigned, by(s.stranger), nil))
		s.policies(signedBy(ofKey))
		s.runs(signed.Name, signed)
		s.again(short)
		s.misbehaves(registrytest.Fault{Kind: kind, Do: do(s)})
		s.refused(unsigned.Name, codes...)
		s.never(signed.Name, signed)
	}
}

// always is an action that needs no scene.
func always(action registrytest.Action) func(*scene) registrytest.Action {
	return func(*scene) registrytest.Action { return action }
}

// slow never sends the second half.
func slow(s *scene) registrytest.Action {
	release := make(chan struct{})
	s.t.Cleanup(func() { close(release) })
	return registrytest.Slow(release)
}

// errored are the codes of images that could not be verified.
func errored() []policy.Code {
	return []policy.Code{policy.Unavailable, policy.AccessRefused, policy.TooMuch, policy.Contradiction, policy.TimedOut, policy.CannotProve}
}

// turning has a tag resolve to other manifests, by the order of requests or by their method;
// the first digest is of the signed image.
func turning(faults func(signed, unsigned string) []registrytest.Fault) func(*scene) {
	return func(s *scene) {
		unsigned, signed := s.Build("shop/web", "1", "evil"), s.Build("shop/web", "1", "good")
		s.check(s.SignLegacy(signed, by(s.key), nil))
		s.policies(signedBy(ofKey))
		s.runs(signed.Name, signed)
		rows := faults(signed.Manifest.Digest, unsigned.Manifest.Digest)
		for i := range rows {
			rows[i].Kind, rows[i].Repository, rows[i].Reference = registrytest.Manifest, "shop/web", "1"
		}
		s.again(ample)
		s.misbehaves(rows...)
		s.never(signed.Name, signed)
		s.misbehaves()
		s.again(ample)
		s.Registry.Retag("shop/web", "1", unsigned.Manifest.Digest)
		s.refused(signed.Name, policy.Unsigned)
	}
}

// forged lists the referrers of the signed image as those of the unsigned one.
func forged(change func(s *scene, genuine registrytest.Descriptor) []registrytest.Descriptor) func(*scene) {
	return func(s *scene) {
		signed, unsigned := s.Build("shop/web", "1", "good"), s.Build("shop/web", "2", "evil")
		claim := by(s.key)
		claim.Statement = verifytest.CosignSignature(signed.Manifest.Digest, nil)
		genuine := s.refer(signed.Manifest, signed.Repository, verifytest.BundleMediaType, verifytest.BundleMediaType, testkit.Must(s.sigstore.Bundle(claim))(s.t))
		s.policies(signedBy(ofKey))
		s.runs(signed.Name, signed)
		s.again(ample)
		s.misbehaves(registrytest.Fault{Kind: registrytest.Referrers, Do: registrytest.ForgeReferrers(change(s, genuine)...)})
		s.refused(unsigned.Name)
	}
}

// sized gives the layer of a legacy signature another size than its blob has.
func sized(size int64) func(*scene) {
	return func(s *scene) {
		signed, liar := s.signed("signed"), s.built("liar")
		claim := by(s.key)
		claim.Image = &verifytest.SimpleSigning{Reference: liar.Repository, Digest: liar.Manifest.Digest}
		layer := testkit.Must(s.sigstore.Layer(claim))(s.t)
		blob := s.Registry.PutBlob(liar.Repository, layer.MediaType, layer.Payload)
		body := testkit.Must(json.Marshal(object{
			"schemaVersion": 2, "mediaType": ocispec.MediaTypeImageManifest, "config": s.Registry.PutBlob(liar.Repository, ocispec.MediaTypeImageConfig, []byte("{}")),
			"layers": []any{object{"mediaType": blob.MediaType, "digest": blob.Digest, "size": size, "annotations": layer.Annotations}},
		}))(s.t)
		s.Registry.PutManifest(liar.Repository, strings.Replace(liar.Manifest.Digest, ":", "-", 1)+".sig", ocispec.MediaTypeImageManifest, body)
		s.policies(signedBy(ofKey))
		s.runs(signed.Name, signed)
		s.refused(liar.Name)
	}
}

func registryAttacks() []attack {
	const (
		manifests, blobs, referrers = registrytest.Manifest, registrytest.Blob, registrytest.Referrers

		endless = "GHSA-vfp6-jrw2-99g9, CVE-2023-46737; CVE-2023-42813"
		sizes   = "GHSA-88jx-383q-w4qc, CVE-2024-29902; GHSA-95pr-fxf5-86gv, CVE-2024-29903"
		twice   = "GHSA-m3cq-xcx9-3gvm, CVE-2022-47633"
		trusted = "GHSA-3hfq-cx9j-923w, CVE-2023-47630"
		digests = "GHSA-6wvf-f2vw-3425, CVE-2024-3727"
		bodies  = "bodies that lie"
	)
	row := func(name, what, source string, play func(*scene)) attack {
		return attack{name, what, source, everywhere(), play}
	}
	all := []attack{
		row("tag-that-moves-between-requests", "The tag resolves to the signed image at the first request and to another one afterwards. The verified image runs.", twice, turning(func(signed, unsigned string) []registrytest.Fault {
			return []registrytest.Fault{{Do: registrytest.Flip(signed, unsigned)}}
		})),
		row("tag-that-moves-back", "The tag resolves to the unsigned image first and to the signed one afterwards. The unsigned one never runs.", twice, turning(func(signed, unsigned string) []registrytest.Fault {
			return []registrytest.Fault{{Do: registrytest.Flip(unsigned, signed)}}
		})),
		row("head-and-get-differ", "HEAD answers with the signed image and GET with another one. The verified image runs.", twice, turning(func(signed, unsigned string) []registrytest.Fault {
			return []registrytest.Fault{{Method: http.MethodHead, Do: registrytest.Flip(signed)}, {Method: http.MethodGet, Do: registrytest.Flip(unsigned)}}
		})),
		row("digest-header-of-another-image", "The registry serves the unsigned manifest under the header that names the signed digest. The manifest's own bytes count.", trusted, turning(func(signed, unsigned string) []registrytest.Fault {
			lie := registrytest.LieDigest(signed)
			flip := registrytest.Flip(unsigned)
			return []registrytest.Fault{{Do: func(next http.Handler) http.Handler { return lie(flip(next)) }}}
		})),
		row("manifest-of-other-bytes", "Manifests have other bytes than their digests. Nothing unsigned is admitted.", trusted, lie(manifests, always(registrytest.Body([]byte(`{"schemaVersion":2}`))))),
		row("blob-of-other-bytes", "The signature's blob comes with other bytes. Nothing unsigned is admitted.", bodies, lie(blobs, always(registrytest.Body([]byte(`{}`))))),
		row("digest-that-is-a-path", "The header with the digest is a path. It is refused before it becomes a part of a request.", digests, lie(manifests, always(registrytest.LieDigest("sha256:../../x")), errored()...)),
		row("referrer-that-is-a-path", "The digest of a referrer is a path. No request is sent for it, and the image is denied.", digests, forged(func(_ *scene, genuine registrytest.Descriptor) []registrytest.Descriptor {
			genuine.Digest = "sha256:../../x"
			return []registrytest.Descriptor{genuine}
		})),
		row("referrers-of-another-image", "The registry lists the signed image's signature as the unsigned one's. It is denied: the manifest's subject and the signed digest are others.", "GHSA-xhg5-42rf-296r, CVE-2023-33959", forged(func(_ *scene, genuine registrytest.Descriptor) []registrytest.Descriptor {
			return []registrytest.Descriptor{genuine}
		})),
		row("referrer-under-another-type", "The same, where the list gives the signature the type of an attestation. It is denied.", "policy-controller 1971", forged(func(_ *scene, genuine registrytest.Descriptor) []registrytest.Descriptor {
			genuine.ArtifactType = "application/vnd.in-toto+json"
			return []registrytest.Descriptor{genuine}
		})),
		row("layer-of-ten-gibibytes", "A signature's layer claims a size of 10 GiB. No memory is allocated for it, and the image is denied.", sizes, sized(10<<30)),
		row("layer-of-negative-size", "A signature's layer has a negative size. The image is denied, and nothing ends.", "GHSA-f36w-mj3v-6jqv", sized(-1)),
		row("layer-smaller-than-its-blob", "A signature's layer claims one byte, and more is sent. The image is denied.", sizes, sized(1)),
		row("half-a-manifest", "Manifests end after half of their declared size. Nothing unsigned is admitted.", bodies, lie(manifests, always(registrytest.Half()), errored()...)),
		row("half-a-blob", "Blobs end after half of their declared size. Nothing unsigned is admitted.", bodies, lie(blobs, always(registrytest.Half()))),
		row("slow-manifest", "Half of a manifest comes, and the rest never. The request ends in its time, and denies.", bodies, lie(manifests, slow, errored()...)),
		row("slow-referrers", "Half of the list of referrers comes, and the rest never. The request ends in its time, and denies.", bodies, lie(referrers, slow, errored()...)),
		row("no-answer", "The registry takes the question and never answers. The request ends in its time, and denies.", "kyverno 10671, kubernetes 128162", lie(referrers, always(registrytest.Hang()), errored()...)),
		row("page-in-place-of-a-manifest", "Status 200 and a page that asks to sign in. Nothing is admitted, and the image is not reported as unsigned.", bodies, lie(manifests, always(registrytest.HTML()), errored()...)),
		row("page-in-place-of-referrers", "Status 200 and a page in place of the list of referrers. Nothing unsigned is admitted.", bodies, lie(referrers, always(registrytest.HTML()))),
		row("wrong-media-type", "Manifests come as plain text. Nothing unsigned is admitted.", bodies, lie(manifests, always(registrytest.MediaType("text/plain")))),
		row("endless-pages", "The list of referrers names a next page for ever. The image is denied after a bounded number.", endless, lie(referrers, always(registrytest.LinkEndless()))),
		row("page-that-follows-itself", "The list of referrers names itself as its next page. The image is denied.", endless, lie(referrers, always(registrytest.LinkLoop()))),
		row("redirect-that-follows-itself", "A manifest is redirected to itself. The request ends, and denies.", endless, lie(manifests, always(registrytest.RedirectLoop()), errored()...)),
		row("endless-blob", "A signature's blob does not end. The request ends in its time, and denies.", endless, lie(blobs, always(registrytest.Endless()))),
		row("giant-manifest", "The list of referrers has 64 MiB. It is not read to the end, and the image is denied.", sizes, lie(referrers, always(registrytest.Oversize(ocispec.MediaTypeImageIndex, 64<<20)), errored()...)),
	}
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusInternalServerError} {
		all = append(all, row(fmt.Sprint("status-", status), "All lists of referrers are answered with this status. The image could not be verified, is not reported as unsigned, and nothing is admitted.",
			"an error taken for unsigned, or for a pass", lie(referrers, always(registrytest.Status(status)), append(errored(), code(verify.WrongKey))...)))
	}
	return all
}
