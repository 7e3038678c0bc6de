package rollout_test

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/rollout"
)

// TestApprovalsOfNothing: one that is not there knows nothing, and is no other.
func TestApprovalsOfNothing(t *testing.T) {
	var none *rollout.Approvals
	if before, known := none.Before("a"); known || before.Hash != "" {
		t.Errorf("it knows %+v", before)
	}
	if none.Equal(rollout.New()) || rollout.New().Equal(none) || !none.Equal(nil) {
		t.Error("it is another one")
	}
	if before, known := rollout.New(version("a", "1")).Before("a"); !known || before.Hash != "1" {
		t.Errorf("the approved version is not known: %+v", before)
	}
}

// TestEqual: two approvals that differ in anything are two.
func TestEqual(t *testing.T) {
	one := rollout.New(version("a", "1"))
	if !one.Equal(rollout.New(version("a", "1"))) {
		t.Error("the same is another one")
	}
	hash, text, audits := version("a", "1"), version("a", "1"), rollout.Version{ID: "a", Hash: "1"}
	hash.Hash, text.Text = "2", []byte("{}")
	enforces := audits
	enforces.Enforcing = true
	for reason, other := range map[string]*rollout.Approvals{
		"hash": rollout.New(hash), "text": rollout.New(text), "name": rollout.New(version("b", "1")), "number": rollout.New(),
		"presence": one.There(day),
	} {
		if one.Equal(other) || other.Equal(one) {
			t.Errorf("of another %s", reason)
		}
	}
	if rollout.New(audits).Equal(rollout.New(enforces)) {
		t.Error("one that audits is one that denies")
	}
}

// TestUnneededTexts: of what only audited nothing is kept that could come back.
func TestUnneededTexts(t *testing.T) {
	for enforcing, kept := range map[bool]bool{true: true, false: false} {
		v := version("a", "1")
		v.Enforcing = enforcing
		if before, _ := rollout.New(v).Before("a"); (len(before.Text) > 0) != kept {
			t.Errorf("it denies %t, and its text is kept: %t", enforcing, !kept)
		}
	}
}

// TestNoRoom: where not even names and hashes have room, nothing is written.
func TestNoRoom(t *testing.T) {
	many := func(n int) *rollout.Approvals {
		var versions []rollout.Version
		for i := range n {
			noise := make([]byte, 512<<10)
			if _, err := rand.Read(noise); err != nil {
				t.Fatal(err)
			}
			versions = append(versions, rollout.Version{ID: fmt.Sprint(i), Hash: hex.EncodeToString(noise), Enforcing: true})
		}
		return rollout.New(versions...)
	}
	if _, err := many(1).Encode(); err != nil {
		t.Error(err)
	}
	if text, err := many(2).Encode(); err == nil {
		t.Errorf("%d bytes", len(text))
	}
}

// TestDecodeBounds: the largest data that is read, and damage that is hard to detect.
func TestDecodeBounds(t *testing.T) {
	const most = 64 << 20
	good := `{"version":1,"policies":{"a":{"hash":"1"}}}`
	for size, want := range map[int]bool{most: true, most + 1: false} {
		if _, err := rollout.Decode(zipped(good + strings.Repeat(" ", size-len(good)))); (err == nil) != want {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	sound := zipped(good)
	damaged := append([]byte{}, sound...)
	damaged[len(damaged)-8] ^= 1 // the checksum
	for reason, text := range map[string][]byte{
		"another checksum": damaged, "cut at the end": sound[:len(sound)-1],
		"a text that is a number": zipped(`{"version":1,"policies":{"a":{"hash":"1","text":5}}}`),
	} {
		if l, err := rollout.Decode(text); err == nil {
			t.Errorf("%s: %+v", reason, l)
		}
	}
}

// TestReadNames: a name and a namespace are what a policy is, and an annotation that only
// accepts it is as good as none.
func TestReadNames(t *testing.T) {
	const plain = "kind: Policy\nmetadata: {name: a, namespace: b}\nspec: {}\n"
	v := read(t, enforcing(), plain)
	if text := string(v.Text); !strings.Contains(text, `"name":"a"`) || !strings.Contains(text, `"namespace":"b"`) {
		t.Errorf("kept is %s", text)
	}
	for _, c := range []struct {
		reason, before, after string
		same                  bool
	}{
		{"another name", "name: a", "name: c", false},
		{"another namespace", "namespace: b", "namespace: c", false},
		{"an annotation", "namespace: b", "namespace: b, annotations: {x: y}", false},
		{"the accepting annotation", "namespace: b", "namespace: b, annotations: {" + rollout.Annotation + ": accepted}", true},
	} {
		if other := read(t, enforcing(), strings.Replace(plain, c.before, c.after, 1)); (other.Hash == v.Hash) != c.same {
			t.Errorf("%s: the same %t", c.reason, other.Hash == v.Hash)
		}
	}
}
