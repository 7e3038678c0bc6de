package mirror_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/image/mirror"
)

// TestGapsOfOthers has what redirecting tools do not do, by its number in the list
// of their gaps, as far as names alone decide it.
func TestGapsOfOthers(t *testing.T) {
	s := set(t, own("hub",
		"{sources: [docker.io], targets: [{location: 'a.corp:5000/hub', fill: ByTag}, {location: b.corp/hub}], otherwise: Deny, pullSecrets: [hub], evidence: [Target, Source, {repository: sigs.corp/all}], excludeOwners: [{group: postgresql.cnpg.io, kind: Cluster}]}",
		"{sources: ['[2001:db8::1]:5000'], targets: [{location: b.corp/six}]}",
		"{sources: [b.corp], targets: [{location: c.corp}]}"))
	pinned := image.MustParse("index.docker.io/nginx:1.27" + digest)
	r, err := s.Route(pinned, known())
	if err != nil || r == nil {
		t.Fatal(err)
	}
	origins := s.Origins(r.Candidates[1].Ref)
	operated, err := s.Route(pinned, mirror.Subject{Owners: []mirror.Owner{{Group: "postgresql.cnpg.io", Kind: "Cluster"}}})
	if err != nil {
		t.Fatal(err)
	}
	var loop bool
	for _, f := range s.Check() {
		loop = loop || strings.Contains(f.Message, "copies there are recognised and left alone")
	}
	for _, test := range []struct {
		gap, reason string
		holds       bool
	}{
		{"1", "the digest goes with the reference to every target", r.Candidates[0].Ref.Digest() == pinned.Digest() && r.Candidates[1].Ref.Digest() == pinned.Digest()},
		{"1", "only verified images are redirected, by default", r.When == mirror.Verified},
		{"2", "a copy is known by its original name", len(origins) == 1 && origins[0].Ref.String() == pinned.String()},
		{"3", "the evidence repositories are set, in order", len(r.Evidence) == 4 && r.Evidence[0].Registry() == "a.corp:5000" && r.Evidence[2].Registry() == "docker.io" && r.Evidence[3].String() == "sigs.corp/all"},
		{"4", "targets are in order, with a last word", len(r.Candidates) == 2 && r.Candidates[0].Ref.Registry() == "a.corp:5000" && r.Otherwise == mirror.Deny && s.Denies()},
		{"6", "the tag is kept beside the digest", r.Candidates[0].Ref.String() == "a.corp:5000/hub/library/nginx:1.27"+digest},
		{"8", "a copy is not copied again", redirects(t, s, r.Candidates[0].Ref.String()) == "none" && redirects(t, s, r.Candidates[1].Ref.String()) == "none"},
		{"8", "the stored image is recognised as the copy of the written one", s.IsCopy(r.Candidates[1].Ref, pinned)},
		{"8", "and another image is not", !s.IsCopy(r.Candidates[1].Ref, image.MustParse("redis"))},
		{"9", "pull secrets are the mapping's", reflect.DeepEqual(r.PullSecrets, []string{"hub"})},
		{"11", "aliases are one name", redirects(t, s, "registry.hub.docker.com/library/nginx:1.27"+digest) == redirects(t, s, "nginx:1.27"+digest)},
		{"11", "IPv6 and ports work", redirects(t, s, "[2001:DB8:0::1]:5000/a:1") == "b.corp/six/a:1"},
		{"11", "a loop is found", loop},
		{"12", "pods of operators that compare them are left alone", operated == nil},
		{"14", "a target that fills by tag is marked", r.Candidates[0].Fill && !r.Candidates[1].Fill},
	} {
		if !test.holds {
			t.Errorf("%s: does not hold: %s", test.gap, test.reason)
		}
	}
}
