package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

// TestGaps has what no tool for redirecting images does, each with what a gateway
// with real registries and real signatures does.
func TestGaps(t *testing.T) {
	for _, row := range []struct {
		number     int
		wish, ours string
		show       func(*testing.T, *mirroredEnv)
	}{
		{1, "rewrite only after proving that the mirror serves the same digest and pin it",
			"so; an index is redirected by its own digest, which names those of its platforms: whether the mirror has each of them is not asked, and other bytes cannot come", sameDigest},
		{2, "judge by the original name while pulling from the mirror", "so, and a copy that is written directly, too", originalName},
		{3, "choose where evidence is found in order and record which", "so", evidencePlaces},
		{4, "ordered mirrors with health and a declared last word",
			"so; a probe wants a registry's answer; the last word is Source or Deny, and nothing is ever used unverified because a mirror is down", healthAndLastWord},
		{5, "resolve the tag once for a request", "so", resolvedOnce},
		{6, "preserve the tag beside the digest", "so", tagKept},
		{7, "a guarded record of the original by the name of the container", "so; it keeps the original reference, and the decision is in the log and the answer of the API", guardedRecord},
		{8, "idempotence and no immutable fields on UPDATE and a new look when the image changed", "so", idempotent},
		{9, "append pull secrets that exist each once and never overwrite", "so; one that is not there is a warning", pullSecrets},
		{10, "a dry run that reports images that would be rewritten or denied",
			"an API server's dry run is answered as the real one, and the API reports images that do not run; no PolicyReport is written", dryRun},
		{11, "lint and unit-test a mapping", "findings, refusals and names are asked of the mapping itself; there is no file of expected results", lint},
		{12, "avoid drift: Pods alone and the text of the image alone and templates by choice", "so; owners that compare their pods are excluded by kind", driftAvoided},
		{13, "ephemeral containers and image volumes and templates in custom resources",
			"all places of a pod are redirected; in a custom resource images are judged at the policy's paths, and redirected in its pods", everyPlace},
		{14, "fill a pull-through cache by tag before the digest is asked for", "so, where the mapping has fill: ByTag", filledByTag},
		{15, "say that the mirror lags with both digests", "so", lagTold},
	} {
		t.Run(fmt.Sprintf("%d: %s", row.number, row.wish), func(t *testing.T) {
			t.Parallel() // some wait for probes
			t.Logf("here: %s", row.ours)
			row.show(t, newMirroredEnv(t))
		})
	}
}

func sameDigest(t *testing.T, r *mirroredEnv) {
	children := []gatetest.Image{r.Build("multi", "amd64", "amd64"), r.Build("multi", "arm64", "arm64")}
	index := r.BuildIndex("multi", "v1", children...)
	older := r.BuildIndex("multi", "v0", children[0])
	r.sign(t, r.Yard, index)
	r.sign(t, r.Yard, older)
	lagging := r.build(t, "lagging", "v1", "new")
	copyTo(r.near, "signed", "v1", "1")
	copyTo(r.near, "lagging", "v1", "old")
	for i, child := range children {
		children[i] = copyTo(r.near, "multi", child.Name[strings.LastIndexByte(child.Name, ':')+1:], []string{"amd64", "arm64"}[i])
	}
	r.near.BuildIndex("hub/multi", "v1", children...)
	r.near.BuildIndex("hub/multi", "v0", children[1])
	g := r.open(t, "")
	admitted(t, "the mirror serves the digest", g.create(t, podOf(r.signed.Name)), at(r.near, r.signed), "")
	admitted(t, "it serves another", g.create(t, podOf(lagging.Name)), pinned(lagging), "mirror-differs")
	admitted(t, "it serves the digest, of an unsigned image", g.create(t, podOf(r.unsigned.Name)), "", "unsigned")
	admitted(t, "it serves the index", g.create(t, podOf(index.Name)), at(r.near, index), "")
	admitted(t, "its index has another platform's image", g.create(t, podOf(older.Name)), pinned(older), "mirror-differs")
	r.near.Registry.Delete("hub/multi", children[1].Manifest.Digest)
	admitted(t, "a platform's image is gone there", g.create(t, podOf(index.Name)), at(r.near, index), "")
}

func originalName(t *testing.T, r *mirroredEnv) {
	copyTo(r.near, "signed", "v1", "1")
	bad := copyTo(r.near, "unsigned", "v1", "2")
	other := r.near.Build("hubs/unsigned", "v1", "2")
	g := r.open(t, "")
	stored := g.create(t, podOf(r.signed.Name))
	admitted(t, "no policy names the mirror", stored, at(r.near, r.signed), "")
	admitted(t, "it is judged by its original name", g.validate(t, stored.stored, nil), at(r.near, r.signed), "")
	admitted(t, "a copy of an unsigned image", g.create(t, podOf(pinned(bad))), "", r.Registry.Host()+"/unsigned")
	admitted(t, "the same, where only the validating endpoint is asked", g.validate(t, podOf(pinned(bad)), nil), "", "unsigned")
	admitted(t, "outside the mirror's prefix it is no copy", g.create(t, podOf(other.Name)), other.Name, "")
}

func evidencePlaces(t *testing.T, r *mirroredEnv) {
	image := r.Build("elsewhere", "v1", "3")
	copied := copyTo(r.near, "elsewhere", "v1", "3")
	third := r.far.Build("signatures/elsewhere", "v1", "3")
	r.write(t, "tokens", ciToken+",ci\n")
	api := "endpoints: {api: {tokens: " + filepath.Join(r.folder, "tokens") + ", users: [ci]}}\n"
	thirdPlace := ", evidence: [{repository: '" + r.far.Registry.Host() + "/signatures/{path}'}, Source]"
	look := func(settings, images, recorded string) {
		t.Helper()
		g := r.open(t, settings, api)
		defer func() { _ = g.end(t) }()
		admitted(t, settings, g.create(t, podOf(image.Name)), images, "")
		if _, text := post(t, g.client, "https://"+g.address+config.APIPath, ciToken, apiQuery(image.Name)); recorded != "" && !strings.Contains(text, `"`+recorded+`"`) {
			t.Errorf("%s: the record does not name %s: %s", settings, recorded, text)
		}
	}
	look("", "", "")
	r.sign(t, r.near, copied)
	look("", at(r.near, image), r.near.Registry.Host()+"/hub/elsewhere")
	look(", evidence: [Source]", "", "")
	look(thirdPlace, "", "")
	r.sign(t, r.far, third)
	look(thirdPlace, at(r.near, image), r.far.Registry.Host()+"/signatures/elsewhere")
}

func healthAndLastWord(t *testing.T, r *mirroredEnv) {
	for _, yard := range []*gatetest.Yard{r.near, r.far} {
		copyTo(yard, "signed", "v1", "1")
	}
	next := r.build(t, "next", "v1", "next")
	copyTo(r.far, "next", "v1", "next")
	r.near.Registry.SetFaults(registrytest.Fault{Do: registrytest.HTML()})
	g := r.open(t, "")
	admitted(t, "a page with status 200 is no registry's answer", g.create(t, podOf(r.signed.Name)), at(r.far, r.signed), "")
	r.near.Registry.SetFaults(registrytest.Fault{Do: registrytest.Status(http.StatusBadGateway)})
	admitted(t, "the first is down", g.create(t, podOf(next.Name)), at(r.far, next), "")
	resting := func(want string) error {
		if _, page := get(t, "http://"+g.plain+"/metrics"); !strings.Contains(page, `quaymaster_mirror_target_resting{registry="`+r.near.Registry.Host()+`"} `+want) {
			return errors.New("the metrics do not say so: resting is " + want)
		}
		return nil
	}
	testkit.Eventually(t, func() error { return resting("1") }) // a probe beside the request finds it down
	before := count(r.near, "hub/next", "") + count(r.near, "hub/signed", "")
	for range 5 {
		admitted(t, "and rests", g.create(t, podOf(next.Name)), at(r.far, next), "")
	}
	if n := count(r.near, "hub/next", "") + count(r.near, "hub/signed", "") - before; n != 0 {
		t.Errorf("%d requests while it rests", n)
	}
	r.near.Registry.SetFaults()
	copyTo(r.near, "next", "v1", "next")
	testkit.Eventually(t, func() error { return resting("0") })
	later := r.build(t, "later", "v1", "later")
	copyTo(r.near, "later", "v1", "later")
	admitted(t, "a probe found it", g.create(t, podOf(later.Name)), at(r.near, later), "")

	alone := r.build(t, "alone", "v1", "alone")
	admitted(t, "no mirror has it, and the source will do", g.create(t, podOf(alone.Name)), pinned(alone), "not-mirrored")
	if err := g.end(t); err != nil {
		t.Error(err)
	}
	g = r.open(t, ", otherwise: Deny")
	admitted(t, "no mirror has it, and the source will not do", g.create(t, podOf(alone.Name)), "", "no-mirror")
	admitted(t, "one has it", g.create(t, podOf(r.signed.Name)), at(r.near, r.signed), "")
	r.near.Registry.Close()
	r.far.Registry.Close()
	admitted(t, "could not be verified", g.create(t, podOf(next.Name)), "", "could not")
}

func resolvedOnce(t *testing.T, r *mirroredEnv) {
	copyTo(r.near, "signed", "v1", "1")
	g := r.open(t, "", "")
	a := g.create(t, podOf(r.signed.Name, r.signed.Name, r.signed.Name))
	admitted(t, "three containers", a, strings.Join([]string{at(r.near, r.signed), at(r.near, r.signed), at(r.near, r.signed)}, " "), "")
	if source, target := count(r.Yard, "signed", "v1"), count(r.near, "hub/signed", "v1"); source != 1 || target != 1 {
		t.Errorf("the source was asked %d times for the tag and the mirror %d times, want once each", source, target)
	}
	r.Registry.Retag("signed", "v1", r.Build("signed", "evil", "evil").Manifest.Digest)
	admitted(t, "the tag moved since: the stored digest stays verified", g.validate(t, a.stored, nil), a.images(), "")
	admitted(t, "and a new object with the tag is refused", g.create(t, podOf(r.signed.Name)), "", "unsigned")
}

func tagKept(t *testing.T, r *mirroredEnv) {
	copyTo(r.near, "signed", "v1", "1")
	g := r.open(t, "")
	admitted(t, "a tag", g.create(t, podOf(r.signed.Name)), at(r.near, r.signed), "")
	admitted(t, "a tag and a digest", g.create(t, podOf(pinned(r.signed))), at(r.near, r.signed), "")
	admitted(t, "a digest alone", g.create(t, podOf(r.signed.ByDigest())), strings.Replace(at(r.near, r.signed), ":v1@", "@", 1), "")
	admitted(t, "a tag and the digest of another: the digest counts", g.create(t, podOf(r.signed.Name+"@"+r.unsigned.Manifest.Digest)), "", "")
}

func guardedRecord(t *testing.T, r *mirroredEnv) {
	copyTo(r.near, "signed", "v1", "1")
	g := r.open(t, "")
	long := strings.Repeat("a", 62)
	pod := with(t, podOf(r.signed.Name, r.signed.Name), func(o object) {
		for i, c := range o["spec"].(object)["containers"].([]any) {
			c.(object)["name"] = long + fmt.Sprint(i)
		}
	})
	first := g.create(t, pod)
	want := fmt.Sprintf("{%q:%q,%q:%q}", long+"0", r.signed.Name, long+"1", r.signed.Name)
	if first.written() != want {
		t.Fatalf("written %s, want %s", first.written(), want)
	}
	forged := with(t, first.stored, func(o object) {
		o["metadata"].(object)["annotations"].(object)["quaymaster.dev/written"] = strings.Replace(want, "signed", "other", 1)
	})
	if a := g.update(t, forged, first.stored); !a.Allowed || a.written() != want {
		t.Errorf("forged on the way: allowed %t, written %s", a.Allowed, a.written())
	}
	if a := g.validate(t, forged, first.stored); a.Allowed || !strings.Contains(a.text(), "gateway's record") {
		t.Errorf("forged behind the mutating endpoint: allowed %t, %s", a.Allowed, a.text())
	}
	turned := with(t, first.stored, func(o object) {
		list := o["spec"].(object)["containers"].([]any)
		list[0], list[1] = list[1], list[0]
	})
	if a := g.update(t, turned, first.stored); !a.Allowed || a.written() != want {
		t.Errorf("in another order: allowed %t, written %s", a.Allowed, a.written())
	}
}

func idempotent(t *testing.T, r *mirroredEnv) {
	second := r.build(t, "signed", "v2", "second")
	copyTo(r.near, "signed", "v1", "1")
	copyTo(r.near, "signed", "v2", "second")
	r.write(t, "policies/secret.yaml", secretText("puller"))
	g := r.open(t, ", pullSecrets: [puller]")
	first := g.create(t, podOf(r.signed.Name))
	admitted(t, "new", first, at(r.near, r.signed), "")
	for reason, a := range map[string]reply{
		"created again":    g.create(t, first.stored),
		"nothing changed":  g.update(t, first.stored, first.stored),
		"applied again":    g.update(t, with(t, first.stored, func(o object) { o["spec"].(object)["containers"] = podOf(r.signed.Name)["spec"].(object)["containers"] }), first.stored),
		"replaced by what": g.update(t, with(t, first.stored, func(o object) { delete(o["metadata"].(object), "annotations") }), first.stored),
	} {
		admitted(t, reason, a, first.images(), "")
		same(t, reason, a.stored, first.stored)
	}
	labelled := with(t, first.stored, func(o object) { o["metadata"].(object)["labels"] = object{"a": "b"} })
	if a := g.update(t, labelled, first.stored); !a.Allowed || len(a.operations) != 0 {
		t.Errorf("a label: allowed %t, %v", a.Allowed, a.operations)
	}
	bare := with(t, first.stored, func(o object) { delete(o["spec"].(object), "imagePullSecrets") })
	to := func(image string) object {
		return with(t, bare, func(o object) { o["spec"].(object)["containers"].([]any)[0].(object)["image"] = image })
	}
	changed := g.update(t, to(second.Name), bare)
	admitted(t, "another image, signed", changed, at(r.near, second), "no-pull-secret")
	if _, has := changed.stored["spec"].(object)["imagePullSecrets"]; has {
		t.Errorf("a field that cannot change is set: %v", changed.operations)
	}
	admitted(t, "another image, unsigned", g.update(t, to(r.unsigned.Name), bare), "", "unsigned")
}
