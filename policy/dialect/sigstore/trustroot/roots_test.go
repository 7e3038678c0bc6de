package trustroot_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/quaymaster/quaymaster/policy/dialect/sigstore/trustroot"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

func remoteRoot(t *testing.T, name, mirror string) *trustroot.TrustRoot {
	t.Helper()
	return parseRoot(t, rootDocument(name, map[string]any{"remote": map[string]any{
		"root": encode([]byte(`{"signed":{"_type":"root"}}`)), "mirror": mirror,
	}}))
}

// TestRepository: the root of a repository stays until its document changes, and the cause
// of a missing root is reported.
func TestRepository(t *testing.T) {
	s := verifytest.Must(verifytest.New(verifytest.Options{}))
	roots := &trustroot.Roots{}
	roots.Put(parseRoot(t, keysOf("keys", s)))
	first, second := remoteRoot(t, "tuf", "https://a.example"), remoteRoot(t, "tuf", "https://b.example")
	state := func() string {
		text, err := roots.TrustedRoot("tuf")
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(len(text) > 0)
	}
	why := errors.New("no response")
	for _, c := range []struct {
		does   func()
		want   string
		reason string
	}{
		{func() { roots.Fail("tuf", first.Hash, why) }, "there is no TrustRoot tuf", "a failure of an unknown TrustRoot"},
		{func() { roots.Put(first) }, "was not read yet", "put"},
		{func() { roots.Fail("tuf", second.Hash, why) }, "was not read yet", "a failure of another document"},
		{func() { roots.Fail("tuf", first.Hash, why) }, "no response", "a failure before an answer"},
		{func() { _ = roots.Answer("tuf", first.Hash, s.TrustedRoot()) }, "true", "an answer"},
		{func() { roots.Fail("tuf", first.Hash, why) }, "true", "a failure after an answer"},
		{func() { _ = roots.Answer("tuf", first.Hash, []byte("{")) }, "true", "an answer that is no root"},
		{func() { roots.Put(second) }, "was not read yet", "another document"},
		{func() { _ = roots.Answer("tuf", first.Hash, s.TrustedRoot()) }, "was not read yet", "a late answer about the first"},
		{func() { roots.Break("tuf", why) }, "no response", "a document that cannot be read"},
		{func() { _ = roots.Answer("tuf", second.Hash, s.TrustedRoot()) }, "no response", "a late answer about a broken one"},
		{func() { roots.Put(second) }, "was not read yet", "mended"},
		{func() { roots.Fail("keys", parseRoot(t, keysOf("keys", s)).Hash, why) }, "was not read yet", "a failure of one that has no repository"},
	} {
		c.does()
		if got := state(); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s; want %s", c.reason, got, c.want)
		}
	}
	if _, err := roots.TrustedRoot("keys"); err != nil {
		t.Error(err)
	}
}

// TestRelabelled: the root of a repository outlives changes of a TrustRoot that do not
// affect it, and no two TrustRoots share it.
func TestRelabelled(t *testing.T) {
	s := verifytest.Must(verifytest.New(verifytest.Options{}))
	first := remoteRoot(t, "tuf", "https://a.example")
	for _, c := range []struct {
		metadata map[string]any
		mirror   string
		same     bool
		reason   string
	}{
		{map[string]any{"name": "tuf", "resourceVersion": "8", "annotations": map[string]any{"a": "b"}}, "https://a.example", true, "an annotation"},
		{map[string]any{"name": "tuf"}, "https://b.example", false, "another mirror"},
		{map[string]any{"name": "other"}, "https://a.example", false, "another TrustRoot of the same repository"},
	} {
		roots := &trustroot.Roots{}
		roots.Put(first)
		if err := roots.Answer("tuf", first.Hash, s.TrustedRoot()); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(map[string]any{
			"apiVersion": "policy.sigstore.dev/v1alpha1", "kind": "TrustRoot", "metadata": c.metadata,
			"spec": map[string]any{"remote": map[string]any{"root": encode([]byte(`{"signed":{"_type":"root"}}`)), "mirror": c.mirror}},
		})
		if err != nil {
			t.Fatal(err)
		}
		next := parseRoot(t, string(text))
		roots.Put(next)
		if _, err := roots.TrustedRoot(next.Name); (err == nil) != c.same || (next.Hash == first.Hash) != c.same {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
}

// TestRootsConcurrently: a reader gets a whole root of the last document or an error,
// whatever runs concurrently.
func TestRootsConcurrently(t *testing.T) {
	s := verifytest.Must(verifytest.New(verifytest.Options{}))
	roots := &trustroot.Roots{}
	root, answer := remoteRoot(t, "tuf", "https://a.example"), s.TrustedRoot()
	var group sync.WaitGroup
	for _, does := range []func(){
		func() { roots.Put(root) },
		func() { _ = roots.Answer("tuf", root.Hash, answer) },
		func() { roots.Fail("tuf", root.Hash, errors.New("why")) },
		func() { roots.Break("tuf", errors.New("why")) },
		func() { roots.Remove("tuf") },
		func() {
			if text, err := roots.TrustedRoot("tuf"); err == nil && len(text) != len(answer) {
				t.Errorf("%d bytes of %d", len(text), len(answer))
			}
		},
	} {
		group.Go(func() {
			for range 50 {
				does()
			}
		})
	}
	group.Wait()
}
