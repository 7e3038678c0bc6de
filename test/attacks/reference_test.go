package attacks

import (
	"strings"

	"github.com/quaymaster/quaymaster/policy"
)

// placed runs an image in a role beside a signed container.
func placed(role string) func(*scene) {
	put := func(s *scene, image string) object {
		beside := pod(s.signed("beside").ByDigest())
		container := object{"name": "second", "image": image}
		if role == "volumes" {
			return with(beside, "spec", object{"volumes": []any{object{"name": "second", "image": object{"reference": image}}}})
		}
		if role == "containers" {
			return with(beside, "spec", object{"containers": []any{object{"name": "c0", "image": s.signed("beside").ByDigest()}, container}})
		}
		return with(beside, "spec", object{role: []any{container}})
	}
	return func(s *scene) {
		s.policies(signedBy(ofKey))
		s.admitted(put(s, s.signed("signed").ByDigest()))
		s.refused(put(s, s.built("unsigned").ByDigest()), policy.Unsigned)
	}
}

// written refuses a reference as it is written.
func written(change func(host string) string) func(*scene) {
	return func(s *scene) {
		image := s.signed("signed")
		s.policies(signedBy(ofKey))
		s.runs(image.Name, image)
		s.refused(change(strings.TrimSuffix(image.Name, ":1")))
	}
}

func referenceAttacks() []attack {
	row := func(name, what, source string, play func(*scene)) attack {
		return attack{name, what, source, everywhere(), play}
	}
	zero := strings.Repeat("0", 64)
	return []attack{
		row("unsigned-second-container", "The first container is signed and the second is not. The pod is denied.", "Connaisseur: the first failure alone", placed("containers")),
		row("unsigned-init-container", "An init container is unsigned. The pod is denied.", "kyverno 16275", placed("initContainers")),
		row("unsigned-ephemeral-container", "An ephemeral container is unsigned. The pod is denied.", "policy-controller 268, kyverno 16275, 16947", placed("ephemeralContainers")),
		row("unsigned-image-volume", "A volume mounts an unsigned image. The pod is denied.", "image volumes that are not verified", placed("volumes")),
		row("signed-tag-and-unsigned-digest", "The reference has a signed image's tag and an unsigned one's digest. The digest is what runs, and it is denied.", "policy-controller 558", func(s *scene) {
			signed, unsigned := s.Build("shop/web", "1", "good"), s.Build("shop/web", "2", "evil")
			s.check(s.SignLegacy(signed, by(s.key), nil))
			s.policies(signedBy(ofKey))
			s.admitted(signed.Name + "@" + signed.Manifest.Digest)
			s.refused(signed.Name+"@"+unsigned.Manifest.Digest, policy.Unsigned)
		}),
		row("digest-of-a-weak-algorithm", "The reference is by SHA-1. It is denied as it is written.", "GHSA-6wvf-f2vw-3425", written(func(host string) string { return host + "@sha1:" + strings.Repeat("a", 40) })),
		row("digest-that-is-cut-short", "The digest has 63 digits. It is denied as it is written.", "GHSA-6wvf-f2vw-3425", written(func(host string) string { return host + "@sha256:" + zero[1:] })),
		row("id-of-an-image-on-the-node", "The reference is sha256: and 64 digits, which a runtime takes for the ID of an image that is on the node, whatever its name. It is denied as it is written.", "containerd: LocalResolve", written(func(string) string { return "sha256:" + zero })),
		row("address-of-the-registry-in-another-form", "The registry's address is written with fewer numbers, which resolvers take for the same address. It is denied as it is written.", "inet_aton", written(func(host string) string { return strings.Replace(host, "127.0.0.1", "127.1", 1) + ":1" })),
		row("path-in-a-digest", "The digest is a path. It is denied as it is written.", "GHSA-6wvf-f2vw-3425", written(func(host string) string { return host + "@sha256:../../x" })),
		row("path-in-a-name", "The name climbs out of its repository. It is denied as it is written.", "GHSA-8xwf, path traversal", written(func(host string) string { return host + "/../../secret:1" })),
		row("line-break-in-a-name", "The name ends with a line break, so that some parsers see another one. It is denied as it is written.", "parsers that differ", written(func(host string) string { return host + ":1\n" })),
		row("capitals-in-a-name", "The name has capitals, which a runtime and a policy may read differently. It is denied as it is written.", "parsers that differ", written(func(host string) string {
			return strings.Replace(host, "/shop/", "/SHOP/", 1) + ":1"
		})),
		row("name-that-does-not-end", "The name has a mebibyte. It is denied, and the answer is short.", "unbounded input", written(func(host string) string { return host + strings.Repeat("a", 1<<20) })),
		row("index-by-its-child", "One image of an index is signed, and the index is not. The index is denied: a node may run another image of it.", "cosign 786, ratify 2157", func(s *scene) {
			a, b := s.Build("shop/web", "a", "a"), s.Build("shop/web", "b", "b")
			index := s.BuildIndex("shop/web", "1", a, b)
			s.check(s.SignLegacy(a, by(s.key), nil))
			s.policies(signedBy(ofKey))
			s.admitted(a.ByDigest())
			s.refused(index.Name, policy.Unsigned)
		}),
		row("child-of-another-index", "The reference has a signed index's tag and the digest of an image that the index does not list. It is denied; one that it lists is admitted.", "index signed, child accepted if listed", func(s *scene) {
			a, b, evil := s.Build("shop/web", "a", "a"), s.Build("shop/web", "b", "b"), s.Build("shop/web", "c", "evil")
			index := s.BuildIndex("shop/web", "1", a, b)
			s.BuildIndex("shop/web", "2", a, evil)
			s.check(s.SignLegacy(index, by(s.key), nil))
			s.policies(signedBy(ofKey))
			s.admitted(index.Name + "@" + a.Manifest.Digest)
			s.refused(index.Name+"@"+evil.Manifest.Digest, policy.Unsigned)
		}),
		row("indexes-in-indexes", "Forty indexes lie in one another, and the innermost image alone is signed. It is denied after a bounded number of steps.", "nested and looping indexes", func(s *scene) {
			image := s.Build("shop/web", "a", "a")
			s.check(s.SignLegacy(image, by(s.key), nil))
			outer := image
			for range 40 {
				outer = s.BuildIndex("shop/web", "1", outer)
			}
			s.policies(signedBy(ofKey))
			s.admitted(image.ByDigest())
			s.refused(outer.Name, policy.Unsigned)
		}),
	}
}
