package mirror_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/image/mirror"
)

// isSame reports whether two references name one image; the source of one may have another name.
func isSame(a, b image.Ref) bool {
	return a.String() == b.String() ||
		slices.ContainsFunc(b.Repository().OtherNames(), func(other image.Repository) bool { return b.At(other).String() == a.String() })
}

// holds checks what must be true of any reference: its copies are left alone, and
// lead back to it.
func holds(t *testing.T, s *mirror.Set, ref image.Ref) (redirected bool) {
	t.Helper()
	route, err := s.Route(ref, known())
	if err != nil || route == nil {
		return false
	}
	if len(route.Candidates) == 0 || len(route.Evidence) == 0 {
		t.Errorf("%s: %+v", ref, route)
	}
	for _, c := range route.Candidates {
		if c.Ref.Tag() != ref.Tag() || c.Ref.Digest() != ref.Digest() {
			t.Errorf("%s became %s", ref, c.Ref)
		}
		if again, err := image.Parse(c.Ref.String()); err != nil || again.String() != c.Ref.String() {
			t.Errorf("%s is read as %s, %v", c.Ref, again, err)
		}
		if c.Ref.String() == ref.String() {
			continue // a wildcard's target may be the source for one of its values
		}
		origins := s.Origins(c.Ref)
		if again, err := s.Route(c.Ref, known()); again != nil || err != nil && len(origins) < 256 {
			t.Errorf("the copy %s of %s is redirected: %v, %v", c.Ref, ref, again, err)
		}
		if !slices.ContainsFunc(origins, func(o mirror.Origin) bool { return isSame(o.Ref, ref) }) && len(origins) < 256 {
			t.Errorf("the copy %s does not lead back to %s: %v", c.Ref, ref, origins)
		}
		if !s.IsCopy(c.Ref, ref) {
			t.Errorf("%s is no copy of %s", c.Ref, ref)
		}
	}
	return true
}

// TestProperties generates sets and references from few names, so that they meet.
func TestProperties(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 13))
	pick := func(all ...string) string { return all[random.IntN(len(all))] }
	host := func() string {
		return pick("docker.io", "index.docker.io", "quay.io", "a.corp", "b.corp", "a.b.corp", "a.corp:5000", "[::1]:5000", "m.example", "localhost", "1.dkr.ecr.eu-west-1.amazonaws.com", "1.dkr-ecr.eu-west-1.on.aws", "gcr.io", "us-docker.pkg.dev", "10.0.0.5", "[::ffff:10.0.0.5]")
	}
	path := func(most int) string {
		var parts []string
		for range 1 + random.IntN(most) {
			parts = append(parts, pick("a", "b", "a.b", "library", "docker.io", "team-x", "b_c", "gcr.io"))
		}
		return strings.Join(parts, "/")
	}
	maybe := func(s string) string { return pick("", s) }
	target := func(from string) string {
		variable := "host"
		if strings.HasPrefix(from, "*") {
			variable = pick("host", "wildcard")
		}
		location := pick(host()+maybe("/"+path(2)), host()+"/{"+variable+"}", "{"+variable+"}.m.example", "m.example/x-{"+variable+"}")
		return "{location: '" + location + "'" + pick("", ", path: ReplacePrefix", ", template: '"+maybe("a/")+"{path}"+maybe("/b")+"'", ", template: 'a/{rest}"+maybe("/b")+"'") + "}"
	}
	sets, redirected := 0, 0
	for range 4000 {
		var documents []*mirror.Document
		for i := range 1 + random.IntN(4) {
			from := pick(host(), "*.corp", "*.b.corp", "*.corp:5000", "*.amazonaws.com") + maybe("/"+path(2))
			text := own(fmt.Sprint("d", i), fmt.Sprintf("{sources: ['%s'], targets: [%s]}", from, target(from)+maybe(", "+target(from))))
			if d, err := mirror.Parse([]byte(text), "generated"); err == nil {
				documents = append(documents, d)
			}
		}
		s, err := mirror.NewSet(documents...)
		if err != nil {
			t.Fatal(err)
		}
		if len(documents) > 0 {
			sets++
		}
		for range 10 {
			if ref, err := image.Parse(host() + "/" + path(4) + maybe(":1")); err == nil && holds(t, s, ref) {
				redirected++
			}
		}
		if t.Failed() {
			for _, d := range documents {
				t.Logf("%+v", d)
			}
			t.FailNow()
		}
	}
	if sets < 2000 || redirected < 2000 {
		t.Errorf("only %d sets and %d redirections: too few to say anything", sets, redirected)
	}
}

// many has a thousand entries at few hosts, as one registry with many projects.
func many(t testing.TB) *mirror.Set {
	var entries []string
	for i := range 900 {
		entries = append(entries, fmt.Sprintf("{sources: [quay.io/team-%d, 'reg-%d.corp:5000'], targets: [{location: m.example/p-%d}]}", i, i, i))
	}
	for i := range 100 {
		entries = append(entries, fmt.Sprintf("{sources: ['*.r%d.corp'], targets: [{location: '{wildcard}.m%d.example'}]}", i, i))
	}
	return set(t, own("many", entries...))
}

func TestNothingIsAllocatedForNothing(t *testing.T) {
	s, about := many(t), known()
	for _, name := range []string{"nginx", "quay.io/team-x/a/b/c", "a.b.c.corp/x", "m.example/p-1000/x", "10.0.0.1:5000/x", "[::1]:5000/x"} {
		ref := image.MustParse(name)
		if n := testing.AllocsPerRun(100, func() {
			if route, err := s.Route(ref, about); route != nil || err != nil || s.Origins(ref) != nil {
				t.Error("an entry matches it")
			}
		}); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkRoute(b *testing.B) {
	s, about := many(b), known()
	for _, name := range []string{"docker.io/library/nginx", "quay.io/team-500/app/sub", "x.r50.corp/app"} {
		ref := image.MustParse(name)
		b.Run(strings.ReplaceAll(name, "/", "_"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Route(ref, about); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkOrigins(b *testing.B) {
	s := many(b)
	for _, name := range []string{"docker.io/library/nginx", "m.example/p-500/team-500/app", "x.m50.example/app"} {
		ref := image.MustParse(name)
		b.Run(strings.ReplaceAll(name, "/", "_"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Origins(ref)
			}
		})
	}
}
