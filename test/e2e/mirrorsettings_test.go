package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// TestMirrorSettings: what an entry of a mapping may say.
func TestMirrorSettings(t *testing.T) {
	m := mirror(t, "settings", gateway.Configuration{})
	m.enforceMirrored(t, env.Policy{Name: "settings", FailurePolicy: "Fail"})
	m.redirectBy(t, document(t, "settings",
		m.entry("", map[string]any{"sources": []any{m.env.Registry.Host() + "/shop", m.env.Registry.Host() + "/probe"}}),
		m.entry("closed", map[string]any{"otherwise": "Deny"}),
		m.entry("theirs", map[string]any{"resolve": "Target"}),
		m.entry("selected", map[string]any{"namespaceSelector": map[string]any{"matchLabels": map[string]any{"mirrors": "yes"}}}),
		m.entry("labelled", map[string]any{"objectSelector": map[string]any{"matchLabels": map[string]any{"mirrors": "yes"}}}),
		m.entry("operated", map[string]any{"excludeOwners": []any{map[string]any{"group": "postgresql.cnpg.io", "kind": "Cluster"}}}),
		m.entry("attested", map[string]any{"evidence": []any{"Target"}}),
		m.entry("kept", map[string]any{"evidence": []any{"Source", map[string]any{"repository": m.far.Registry.Host() + "/evidence/{path}"}}}),
	))
	m.isRedirected(t, m.near)

	t.Run("where evidence is", m.tryEvidence)
	t.Run("a policy that audits and does not pin", m.tryAuditMirrored)
	t.Run("a mirror that serves web pages", m.tryPages)
	t.Run("otherwise Deny", m.tryDeny)
	t.Run("a mirror that is behind", m.tryBehind)
	t.Run("a mirror with resolve: Target", m.tryTheirTag)
	t.Run("selectors of namespaces", m.tryNamespaceSelector)
	t.Run("selectors of objects", m.tryObjectSelector)
	t.Run("owners that compare pods", m.tryOwners)
	t.Run("the longest prefix counts", func(t *testing.T) {
		image := m.copied(t, "closed-not/web", "1.0") // does not lie below closed
		if _, err := m.dryRun(t.Context(), pod("prefix", image.Name)); err != nil {
			t.Errorf("an image with a path that begins like the prefix: %v", err)
		}
	})
}

// tryEvidence: signatures are read from the repository of the mapping, and from no other.
func (m *mirrored) tryEvidence(t *testing.T) {
	sign := func(at *env.Env, image gatetest.Image, repository string) {
		copied := image
		copied.Repository, copied.Name = repository, at.Registry.Host()+"/"+repository+":1.0"
		must(t, at.SignLegacy(copied, verifytest.Claim{Signer: m.env.Signer, NoLog: true}, nil))
	}
	for _, row := range []struct {
		reason, repository string
		signed             bool // at its source
		at                 *env.Env
		where              string // else
		refused            string
	}{
		{"at the target", "attested/web", false, m.near, hub + "/attested/web", ""},
		{"at the source, which is not looked at", "attested/source", true, nil, "", "unsigned"},
		{"in a third repository", "kept/web", false, m.far, "evidence/kept/web", ""},
		{"at the source, which is looked at first", "kept/source", true, nil, "", ""},
		{"at the target, which is not looked at", "kept/target", false, m.near, hub + "/kept/target", "unsigned"},
		{"nowhere", "kept/bare", false, nil, "", "unsigned"},
	} {
		image := m.env.Unsigned(row.repository, "1.0")
		if row.signed {
			must(t, m.env.SignLegacy(image, verifytest.Claim{Signer: m.env.Signer, NoLog: true}, nil))
		}
		m.copyTo(t, image, row.repository, "1.0", m.near)
		if row.at != nil {
			sign(row.at, image, row.where)
		}
		got, err := m.dryRun(t.Context(), pod("evidence", image.Name))
		if row.refused != "" {
			denied(t, row.reason, err, row.refused)
			continue
		}
		if err != nil || !slices.Equal(images(got), []string{exact(m.near, image)}) {
			t.Errorf("%s: %v, want that it is redirected", row.reason, err)
		}
	}
}

// tryAuditMirrored: a verified image is redirected and named by its digest, though the policy
// pins nothing; an image that is only audited stays.
func (m *mirrored) tryAuditMirrored(t *testing.T) {
	signed, bare := m.copied(t, "shop/audited", "1.0", m.near), m.env.Unsigned("shop/audited-bare", "1.0")
	m.copyTo(t, bare, "shop/audited-bare", "1.0", m.near)
	text, err := m.env.YAML(env.Policy{Name: "settings", Action: "Audit", Rule: audited()})
	must(t, err)
	m.effect(t, func(ctx context.Context) error { return m.plane.ApplyYAML(ctx, text) })
	for image, want := range map[string]string{signed.Name: exact(m.near, signed), bare.Name: bare.Name} {
		got, err := m.dryRun(t.Context(), pod("audited", image))
		must(t, err)
		if !slices.Equal(images(got), []string{want}) {
			t.Errorf("%s became %v, want %s", image, images(got), want)
		}
	}
	text, err = m.env.YAML(env.Policy{Name: "settings", FailurePolicy: "Fail"})
	must(t, err)
	m.effect(t, func(ctx context.Context) error { return m.plane.ApplyYAML(ctx, text) })
	_, err = m.dryRun(t.Context(), pod("audited", bare.Name))
	denied(t, "the same, enforced", err, "unsigned")
}

// tryPages: a page is no image, whatever its status.
func (m *mirrored) tryPages(t *testing.T) {
	image := m.copied(t, "shop/pages", "1.0", m.near, m.far)
	m.near.Registry.SetFaults(registrytest.Fault{Repository: hub + "/shop/pages", Do: registrytest.HTML()})
	defer m.near.Registry.SetFaults()
	got, err := m.dryRun(t.Context(), pod("pages", image.Name))
	must(t, err)
	if !slices.Equal(images(got), []string{exact(m.far, image)}) {
		t.Errorf("images %v, want the second target's", images(got))
	}
}

func (m *mirrored) tryDeny(t *testing.T) {
	absent, second := m.copied(t, "closed/absent", "1.0"), m.copied(t, "closed/second", "1.0", m.far)
	_, err := m.create(t, pod("absent", absent.Name))
	denied(t, "a signed image that no target has", err, "no-mirror")
	if err == nil || !strings.Contains(err.Error(), "does not have the digest") {
		t.Errorf("the denial does not have the targets' answers: %v", err)
	}
	got, err := m.create(t, pod("second", second.Name))
	must(t, err)
	if !slices.Equal(images(got), []string{exact(m.far, second)}) {
		t.Errorf("images %v, want the second target's", images(got))
	}
	bare := m.env.Unsigned("closed/bare", "1.0")
	m.copyTo(t, bare, "closed/bare", "1.0", m.near)
	_, err = m.create(t, pod("closed-bare", bare.Name))
	denied(t, "an unsigned image that a target has", err, "unsigned")
	_, err = m.dryRun(t.Context(), pod("mixed", second.Name, absent.Name))
	denied(t, "a second container that no target has", err, "no-mirror")

	// Without the mutating webhook no image is admitted from the source.
	endpoint := m.caller(t, m.gateway)
	for image, allowed := range map[string]bool{env.Pinned(second): false, exact(m.far, second): true} {
		said, err := endpoint.ask(t.Context(), "/validate", m.reviewOf(pod("bypassed", image), "ann"))
		if err != nil || said.Allowed != allowed || !allowed && !strings.Contains(said.Result.Message, "it was not redirected") {
			t.Errorf("%s at /validate: %+v, %v; want allowed: %t", image, said, err, allowed)
		}
	}

	// A target that refuses access may have the image.
	silent := m.copied(t, "closed/silent", "1.0", m.near)
	for _, h := range []*env.Env{m.near, m.far} {
		h.Registry.SetFaults(registrytest.Fault{Repository: hub + "/closed/silent", Do: registrytest.Status(403)})
		defer h.Registry.SetFaults()
	}
	_, err = m.dryRun(t.Context(), pod("silent", silent.Name))
	if err == nil || !strings.Contains(err.Error(), "could not be verified") || !strings.Contains(err.Error(), "[no-mirror]") {
		t.Errorf("an image behind targets that refuse access: %v, want that it could not be verified", err)
	}
}

// short is a digest as in messages: its first characters.
func short(digest string) string { return digest[:len("sha256:")+12] }

// tryBehind: the tag has an older image at the mirror. The verified image runs, and the
// answer has both digests.
func (m *mirrored) tryBehind(t *testing.T) {
	older := m.copied(t, "shop/behind", "1.0", m.near)
	newer, err := m.env.Signed("shop/behind", "1.0")
	must(t, err)
	heard, said := m.heard(t)
	got, err := heard.create(t, pod("behind", newer.Name))
	must(t, err)
	if !slices.Equal(images(got), []string{env.Pinned(newer)}) {
		t.Errorf("images %v, want %s", images(got), env.Pinned(newer))
	}
	warnings := said()
	for _, word := range []string{"[mirror-differs]", short(older.Manifest.Digest), short(newer.Manifest.Digest)} {
		if !strings.Contains(warnings, word) {
			t.Errorf("the warning is %q, want %q in it", warnings, word)
		}
	}
	line := fmt.Sprint(m.verdicts(t, "mutate", "behind"))
	for _, word := range []string{"mirror-differs", newer.Manifest.Digest} {
		if !strings.Contains(line, word) {
			t.Errorf("the log has %s, want %q in it", line, word)
		}
	}
	// The other one has caught up.
	m.copyTo(t, newer, "shop/behind", "1.1", m.far)
	newest := newer
	newest.Name = strings.TrimSuffix(newer.Name, "1.0") + "1.1"
	m.env.Registry.Retag(newer.Repository, "1.1", newer.Manifest.Digest)
	got, err = m.dryRun(t.Context(), pod("caught-up", newest.Name))
	must(t, err)
	if !slices.Equal(images(got), []string{exact(m.far, newest)}) {
		t.Errorf("images %v, want the second target's", images(got))
	}
}

// TestMirrorDiffersIsLogged: for a tag that resolves to two digests, the log has both.
func TestMirrorDiffersIsLogged(t *testing.T) {
	m := mirror(t, "differs", gateway.Configuration{})
	m.enforceMirrored(t, env.Policy{Name: "differs", Namespaces: []string{m.namespace}})
	m.redirectBy(t, document(t, "differs", m.entry("", nil)))
	m.isRedirected(t, m.near)
	older := m.copied(t, "shop/behind", "1.0", m.near)
	newer, err := m.env.Signed("shop/behind", "1.0")
	must(t, err)
	_, err = m.create(t, pod("behind", newer.Name))
	must(t, err)
	line := fmt.Sprint(m.verdicts(t, "mutate", "behind"))
	for _, digest := range []string{newer.Manifest.Digest, older.Manifest.Digest} {
		if !strings.Contains(line, digest) {
			t.Errorf("the log has %s, want %s in it", line, digest)
		}
	}
}

// tryTheirTag: where the target's answer for a tag counts, that is proved and
// pinned.
func (m *mirrored) tryTheirTag(t *testing.T) {
	older := m.copied(t, "theirs/web", "1.0", m.near)
	newer, err := m.env.Signed("theirs/web", "1.0")
	must(t, err)
	heard, said := m.heard(t)
	got, err := heard.create(t, pod("theirs", newer.Name))
	must(t, err)
	if !slices.Equal(images(got), []string{exact(m.near, older)}) {
		t.Errorf("images %v, want the digest of the target's tag, %s", images(got), exact(m.near, older))
	}
	warnings := said()
	for _, word := range []string{"[mirror-differs]", short(older.Manifest.Digest), short(newer.Manifest.Digest)} {
		if !strings.Contains(warnings, word) {
			t.Errorf("the warning is %q, want %q in it", warnings, word)
		}
	}
	// Its own image, which is unsigned, is not verified by the source's signature.
	_, err = m.env.Signed("theirs/poisoned", "1.0")
	must(t, err)
	m.near.Unsigned(hub+"/theirs/poisoned", "1.0")
	_, err = m.create(t, pod("poisoned", m.env.Registry.Host()+"/theirs/poisoned:1.0"))
	denied(t, "an unsigned image behind the target's tag", err, "unsigned")
}

// TestLongWarningKeepsItsCode: however long the reason is, a warning has its code.
func TestLongWarningKeepsItsCode(t *testing.T) {
	m := mirror(t, "long-warning", gateway.Configuration{})
	m.enforceMirrored(t, env.Policy{Name: "long-warning", Namespaces: []string{m.namespace}})
	m.redirectBy(t, document(t, "long-warning", m.entry("", nil)))
	m.isRedirected(t, m.near)
	for reason, do := range map[string]registrytest.Action{"says-no": registrytest.Status(403), "has-it-not": nil} {
		image := m.copied(t, "a-team-with-a-long-name/a-service-with-a-long-name/"+reason, "1.0")
		if do != nil {
			m.near.Registry.SetFaults(registrytest.Fault{Do: do})
			m.far.Registry.SetFaults(registrytest.Fault{Do: do})
		}
		heard, said := m.heard(t)
		_, err := heard.dryRun(t.Context(), pod(reason, image.Name))
		must(t, err)
		if warnings := said(); !strings.Contains(warnings, "[not-mirrored]") {
			t.Errorf("%s: the warning is %q, want the code [not-mirrored] in it", reason, warnings)
		}
		m.near.Registry.SetFaults()
		m.far.Registry.SetFaults()
	}
}

func (m *mirrored) tryNamespaceSelector(t *testing.T) {
	yes, no := m.within(t, "settings-yes", "mirrors", "yes"), m.within(t, "settings-no", "mirrors", "no")
	image := m.copied(t, "selected/web", "1.0", m.near)
	bare := m.env.Unsigned("selected/bare", "1.0")
	m.copyTo(t, bare, "selected/bare", "1.0", m.near)
	for in, want := range map[*mirrored]string{yes: exact(m.near, image), no: env.Pinned(image)} {
		got, err := in.dryRun(t.Context(), pod("selected", image.Name))
		must(t, err)
		if !slices.Equal(images(got), []string{want}) {
			t.Errorf("in %s images %v, want %s", in.namespace, images(got), want)
		}
		_, err = in.dryRun(t.Context(), pod("selected-bare", tagged(m.near, bare)))
		denied(t, "the copy of an unsigned image in "+in.namespace, err, "unsigned")
	}
	yes.relabel(t, "no")
	eventually(t, func(ctx context.Context) error {
		got, err := yes.dryRun(ctx, pod("selected", image.Name))
		if err == nil && images(got)[0] != env.Pinned(image) {
			err = errNotYet
		}
		return err
	})
}

// relabel changes the label that mirrors select the namespace by.
func (m *mirrored) relabel(t *testing.T, value string) {
	t.Helper()
	namespaces := m.client.CoreV1().Namespaces()
	namespace, err := namespaces.Get(t.Context(), m.namespace, meta.GetOptions{})
	must(t, err)
	namespace.Labels["mirrors"] = value
	_, err = namespaces.Update(t.Context(), namespace, meta.UpdateOptions{})
	must(t, err)
}

func (m *mirrored) tryObjectSelector(t *testing.T) {
	image := m.copied(t, "labelled/web", "1.0", m.near)
	for value, want := range map[string]string{"yes": exact(m.near, image), "no": env.Pinned(image)} {
		p := pod("labelled", image.Name)
		p.Labels = map[string]string{"mirrors": value}
		got, err := m.dryRun(t.Context(), p)
		must(t, err)
		if !slices.Equal(images(got), []string{want}) {
			t.Errorf("with the label %s images %v, want %s", value, images(got), want)
		}
	}
}

func (m *mirrored) tryOwners(t *testing.T) {
	image := m.copied(t, "operated/db", "1.0", m.near)
	bare := m.env.Unsigned("operated/bare", "1.0")
	yes := true
	owned := func(name, version, kind, image string) *core.Pod {
		p := pod(name, image)
		p.OwnerReferences = []meta.OwnerReference{{APIVersion: version, Kind: kind, Name: "db", UID: "d9607e19-f88f-11e6-a518-42010a800195", Controller: &yes}}
		return p
	}
	for _, row := range []struct{ reason, version, kind, want string }{
		{"the operator's", "postgresql.cnpg.io/v1", "Cluster", env.Pinned(image)},
		{"another group's", "cluster.example/v1", "Cluster", exact(m.near, image)},
		{"another kind's", "postgresql.cnpg.io/v1", "Pooler", exact(m.near, image)},
	} {
		got, err := m.dryRun(t.Context(), owned("owned", row.version, row.kind, image.Name))
		must(t, err)
		if !slices.Equal(images(got), []string{row.want}) {
			t.Errorf("%s: images %v, want %s", row.reason, images(got), row.want)
		}
	}
	_, err := m.dryRun(t.Context(), owned("owned", "postgresql.cnpg.io/v1", "Cluster", bare.Name))
	denied(t, "an unsigned image of the operator", err, "unsigned")
}
