package attacks

import (
	"net/http"
	"net/http/httptest"

	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/verify/trust/trusttest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// repository is one of TUF's, and the store of a gateway that follows it. It begins with
// the trusted root of the scene, and each image is signed below another root.
type repository struct {
	*scene
	*trusttest.Repository
	store       *trust.Store
	ours, alien gatetest.Image
}

func (s *scene) repository() *repository {
	t := s.t
	r := &repository{scene: s, Repository: testkit.Must(trusttest.New())(t), ours: s.built("ours"), alien: s.built("alien")}
	server := httptest.NewServer(r.Repository)
	t.Cleanup(server.Close)
	s.check(
		s.SignLegacy(r.ours, released(s), nil),
		s.SignLegacy(r.alien, as(func(s *scene, id *verifytest.Identity) { id.CA, id.CTLog = s.foreign.CA, s.foreign.CTLog })(s), nil),
		r.Publish(s.sigstore.TrustedRoot(), trusttest.None), r.Publish(s.sigstore.TrustedRoot(), trusttest.None),
	)
	r.store = testkit.Must(trust.New(trust.Options{TrustedRoot: s.sigstore.TrustedRoot(), TUF: &trust.TUF{
		URL: server.URL, Root: r.Root(), CachePath: t.TempDir(), Client: server.Client(),
	}}))(t)
	s.policies(signedBy(ofPeople))
	r.refresh(true)
	return r
}

// refresh updates the repository, and installs the result as the engine's trust.
func (r *repository) refresh(want bool) {
	r.t.Helper()
	if err := r.store.RefreshOnce(r.t.Context()); (err == nil) != want {
		r.t.Errorf("a refresh: %v, want it to succeed: %t", err, want)
	}
	r.wire()
	r.believe(r.store.Snapshot())
}

// renewed publishes a version with a fault that adds the attacker's authority; the control
// is the same version without the fault.
func renewed(fault trusttest.Fault) func(*scene) {
	return func(s *scene) {
		honest := s.repository()
		s.check(honest.Publish(s.sigstore.TrustedRoot(s.foreign), trusttest.None))
		honest.refresh(true)
		s.admitted(honest.alien.Name)
		s.again(ample)
		hostile := s.repository()
		s.check(hostile.Publish(s.sigstore.TrustedRoot(s.foreign), fault))
		hostile.refresh(false)
		s.refused(hostile.alien.Name, code(verify.UntrustedChain))
		s.admitted(hostile.ours.Name) // the last known good trust stays in use
	}
}

// rolledBack serves the version before the authority was taken away.
func rolledBack(s *scene) {
	r := s.repository()
	s.check(r.Publish(s.sigstore.TrustedRoot(s.foreign), trusttest.None))
	r.refresh(true)
	s.admitted(r.alien.Name)
	s.check(r.Publish(s.sigstore.TrustedRoot(), trusttest.None))
	r.refresh(true)
	s.refused(r.alien.Name)
	s.check(r.Show(3)) // two came before
	r.refresh(false)
	s.refused(r.alien.Name)
	s.admitted(r.ours.Name)
}

// frozen is a repository that is frozen at an expired version: a process that starts must
// reject it.
func frozen(s *scene) {
	r := testkit.Must(trusttest.New())(s.t)
	server := httptest.NewServer(http.Handler(r))
	s.t.Cleanup(server.Close)
	alien, ours := s.built("alien"), s.built("ours")
	s.check(
		s.SignLegacy(alien, as(func(s *scene, id *verifytest.Identity) { id.CA, id.CTLog = s.foreign.CA, s.foreign.CTLog })(s), nil),
		s.SignLegacy(ours, released(s), nil), r.Publish(s.sigstore.TrustedRoot(s.foreign), trusttest.Ended),
	)
	store := testkit.Must(trust.New(trust.Options{TrustedRoot: s.sigstore.TrustedRoot(), TUF: &trust.TUF{URL: server.URL, Root: r.Root(), Client: server.Client()}}))(s.t)
	if err := store.RefreshOnce(s.t.Context()); err == nil {
		s.t.Error("metadata that has ended are taken")
	}
	s.policies(signedBy(ofPeople))
	s.wire()
	s.believe(store.Snapshot())
	s.admitted(ours.Name)
	s.refused(alien.Name)
}

func trustAttacks() []attack {
	const (
		thresholds = "GHSA-fphv-w9fq-2525, GHSA-jqc5-w2xx-5vq4: go-tuf"
		framework  = "the TUF specification's attacks"
	)
	row := func(name, what, source string, play func(*scene)) attack {
		return attack{name, what, source, remembering(), play}
	}
	return []attack{
		row("root-that-is-rolled-back", "The repository shows a version again that it had before an authority was taken away. The newer one stays in use.", framework, rolledBack),
		row("root-that-is-frozen", "The repository is frozen at an expired version. A process that starts rejects it.", framework, frozen),
		row("snapshot-that-is-rolled-back", "A new timestamp names an older snapshot. It is not taken.", framework, renewed(trusttest.OldSnapshot)),
		row("too-few-keys-of-a-root", "One key of two signs the targets. They are not taken.", framework, renewed(trusttest.OneSignature)),
		row("one-key-of-a-root-twice", "One key of two signs the targets, and its signature is listed twice. The targets are rejected.", thresholds, renewed(trusttest.OneKeyTwice)),
		row("threshold-of-nothing", "A root wants no signature of the targets. It is not taken.", "GHSA-fphv-w9fq-2525: a threshold of 0", renewed(trusttest.NoThreshold)),
		row("root-that-skips-a-version", "The next root has the version after the next. It is rejected.", framework, renewed(trusttest.SkippedRoot)),
		row("root-by-new-keys-alone", "The next root is signed by the keys that it names, and by none before. It is not taken.", framework, renewed(trusttest.UnrelatedRoot)),
		row("target-of-other-bytes", "The trusted root has other bytes than were signed. It is not taken.", framework, renewed(trusttest.OtherTarget)),
		row("target-that-does-not-end", "The trusted root does not end. It is read as far as was signed, and not taken.", framework+", endless data", renewed(trusttest.EndlessTarget)),
		row("timestamp-that-does-not-end", "The repository's timestamp, which has no signed size, does not end. It is rejected.", framework+", endless data", renewed(trusttest.EndlessTimestamp)),
	}
}
