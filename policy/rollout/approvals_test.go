package rollout_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/rollout"
)

// rule is any rule.
type rule struct{ policy.Rule }

func enforcing() *policy.Policy {
	return &policy.Policy{Kind: "ClusterPolicy", Name: "signed", Rules: []policy.Rule{rule{}}}
}

func read(t *testing.T, p *policy.Policy, text string) rollout.Version {
	t.Helper()
	v, err := rollout.Read(p, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

const document = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: signed, uid: u, resourceVersion: "7", managedFields: [{manager: x}], labels: {team: a}, annotations: {quaymaster.dev/stale-if-error: 1h, kubectl.kubernetes.io/last-applied-configuration: x}}
spec: {rules: [a]}
status: {ready: true}
`

// TestReadVersion: a version covers the behaviour of the policy, and nothing else.
func TestReadVersion(t *testing.T) {
	v := read(t, enforcing(), document)
	if v.ID != "ClusterPolicy/signed" || !v.Enforcing || v.Accepted || len(v.Hash) != 64 {
		t.Errorf("%+v", v)
	}
	for _, c := range []struct {
		before, after string
		same          bool
		reason        string
	}{
		{"rules: [a]", "rules: [b]", false, "a rule"},
		{"stale-if-error: 1h", "stale-if-error: 2h", false, "an annotation that counts"},
		{"team: a", "team: b", true, "a label"},
		{`"7"`, `"8"`, true, "the API server's version"},
		{"ready: true", "ready: false", true, "the status"},
		{"last-applied-configuration: x", "last-applied-configuration: y", true, "what kubectl notes"},
		{"stale-if-error: 1h", "stale-if-error: 1h, quaymaster.dev/guard: accepted", true, "the accepting annotation"},
		{"stale-if-error: 1h", "stale-if-error: 1h, quaymaster.dev/guard: later", true, "another word"},
	} {
		other := read(t, enforcing(), strings.Replace(document, c.before, c.after, 1))
		if (other.Hash == v.Hash) != c.same {
			t.Errorf("%s: the same %t, want %t", c.reason, other.Hash == v.Hash, c.same)
		}
		if other.Accepted != strings.Contains(c.after, "guard: accepted") {
			t.Errorf("%s: accepted %t", c.reason, other.Accepted)
		}
	}
	if !v.Created.IsZero() || bytes.Contains(v.Text, []byte("managedFields")) || bytes.Contains(v.Text, []byte("resourceVersion")) || !bytes.Contains(v.Text, []byte("team")) {
		t.Errorf("kept is %s", v.Text)
	}
	if again := read(t, enforcing(), string(v.Text)); again.Hash != v.Hash {
		t.Error("the kept text is another version")
	}
	for written, want := range map[string]time.Time{`"2026-03-01T12:00:00Z"`: day, "null": {}, "yesterday": {}} {
		made := read(t, enforcing(), strings.Replace(document, "uid: u", "uid: u, creationTimestamp: "+written, 1))
		if !made.Created.Equal(want) || made.Hash != v.Hash || !bytes.Equal(made.Text, v.Text) {
			t.Errorf("made at %s: %+v", written, made)
		}
	}
	for _, c := range []struct {
		p      *policy.Policy
		want   bool
		reason string
	}{
		{&policy.Policy{Settings: policy.Settings{AuditOnly: true}, Rules: []policy.Rule{rule{}}}, false, "it audits"},
		{&policy.Policy{}, false, "it has no rule that denies"},
		{&policy.Policy{Problems: policy.Problems{Broken: errors.New("x")}}, true, "it is broken, and denies the objects it names"},
	} {
		if got := rollout.Enforces(c.p); got != c.want {
			t.Errorf("%s: %t", c.reason, got)
		}
	}
	for _, text := range []string{"", "a: [", "[]"} {
		if _, err := rollout.Read(enforcing(), []byte(text)); err == nil {
			t.Errorf("%q is a document", text)
		}
	}
	if _, err := rollout.Read(nil, []byte(document)); err == nil {
		t.Error("no policy is one")
	}
}

func version(id, hash string) rollout.Version {
	return rollout.Version{ID: id, Hash: hash, Enforcing: true, Text: []byte(`{"hash":"` + hash + `"}`)}
}

// TestStanding: no policy is weakened by a pending newer version, or by a missing record.
func TestStanding(t *testing.T) {
	known := rollout.New(version("a", "1"), rollout.Version{ID: "audits", Hash: "1"}, rollout.Version{ID: "textless", Hash: "1", Enforcing: true})
	accepted, loosened := version("a", "2"), version("a", "2")
	accepted.Accepted, loosened.Enforcing = true, false
	for _, c := range []struct {
		approvals *rollout.Approvals
		v         rollout.Version
		want      rollout.Effect
		reason    string
	}{
		{known, version("a", "1"), rollout.Itself, "approved"},
		{known, version("a", "2"), rollout.Previous, "a change: the approved version stays"},
		{known, accepted, rollout.Itself, "an accepted change"},
		{known, loosened, rollout.Itself, "its author has it audit"},
		{known, version("new", "1"), rollout.Audited, "a new one"},
		{known, version("audits", "2"), rollout.Audited, "one that only audited before"},
		{known, version("textless", "2"), rollout.Itself, "the previous text is unknown: the new one is active"},
		{nil, version("new", "1"), rollout.Itself, "nothing is known"},
		{rollout.New(), version("new", "1"), rollout.Audited, "there was nothing when the guard began"},
	} {
		if got := c.approvals.Of(c.v, day); got != c.want {
			t.Errorf("%s: %s, want %s", c.reason, got, c.want)
		}
	}
}

// day is any time.
var day = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// TestNameIsUsedAgain: an approved version is restored with a change that follows at once, and
// not with a policy that has its name long after.
func TestNameIsUsedAgain(t *testing.T) {
	made := func(hash string, after time.Duration) rollout.Version {
		v := version("a", hash)
		v.Created = day.Add(after)
		return v
	}
	textless := rollout.Version{ID: "a", Hash: "1", Enforcing: true}
	accepted, loosened := made("2", time.Hour), made("2", time.Hour)
	accepted.Accepted, loosened.Enforcing = true, false
	gone := rollout.New(version("a", "1")).There(day)
	earlier, err := rollout.Decode(zipped(`{"version":1,"policies":{"a":{"hash":"1","enforcing":true,"text":"e30=","gone":true}}}`))
	if err != nil {
		t.Fatal(err)
	}
	const grace = 10 * time.Minute
	for _, c := range []struct {
		reason    string
		approvals *rollout.Approvals
		v         rollout.Version
		after     time.Duration // since it went
		want      rollout.Effect
		next      rollout.Effect // once it is noted that it is there
	}{
		{"replaced by force", gone, made("2", time.Second), time.Second, rollout.Previous, rollout.Previous},
		{"the last moment", gone, made("2", grace), grace, rollout.Previous, rollout.Previous},
		{"the first after it", gone, made("2", grace+time.Second), grace + time.Second, rollout.Audited, rollout.Audited},
		{"replaced by force, and it is looked at late", gone, made("2", time.Second), time.Hour, rollout.Previous, rollout.Previous},
		{"it was there all the time, and not seen", gone, made("2", -time.Hour), time.Hour, rollout.Previous, rollout.Previous},
		{"its name is used again", gone, made("2", time.Hour), time.Hour, rollout.Audited, rollout.Audited},
		{"the same comes back", gone, made("1", time.Hour), time.Hour, rollout.Itself, rollout.Itself},
		{"its name is used again, and it is accepted", gone, accepted, time.Hour, rollout.Itself, rollout.Itself},
		{"its name is used again, and it audits", gone, loosened, time.Hour, rollout.Itself, rollout.Itself},
		{"of a folder, at once", gone, version("a", "2"), grace, rollout.Previous, rollout.Previous},
		{"of a folder, later", gone, version("a", "2"), grace + time.Second, rollout.Audited, rollout.Audited},
		{"it went, and its text is unknown", rollout.New(textless).There(day), made("2", time.Hour), time.Hour, rollout.Audited, rollout.Audited},
		{"it is replaced by force, and its text is unknown", rollout.New(textless).There(day), made("2", time.Second), time.Second, rollout.Itself, rollout.Itself},
		{"an earlier version noted that it went", earlier, made("2", time.Second), time.Second, rollout.Audited, rollout.Audited},
		{"an earlier version noted it, and the same comes back", earlier, made("1", time.Second), time.Second, rollout.Itself, rollout.Itself},
	} {
		now := day.Add(c.after)
		if got := c.approvals.Of(c.v, now); got != c.want {
			t.Errorf("%s: %s, want %s", c.reason, got, c.want)
		}
		noted := c.approvals.There(now, c.v)
		if got := noted.Of(c.v, now.Add(24*time.Hour)); got != c.next {
			t.Errorf("%s: %s once it is noted, want %s", c.reason, got, c.next)
		}
		// A version approved then applies, not the one that had its name before.
		later := made("3", 48*time.Hour)
		if got := noted.Approve(made("2", 0)).Of(later, now); got != rollout.Previous {
			t.Errorf("%s: a change of the approved version is %s", c.reason, got)
		}
		if got := noted.Of(version("a", "1"), now); got != rollout.Itself {
			t.Errorf("%s: the approved version is %s", c.reason, got)
		}
	}
}

// TestTheSameComesBack: it is there again, however long it was gone, and a change follows
// upon it.
func TestTheSameComesBack(t *testing.T) {
	back := version("a", "1")
	back.Created = day.Add(time.Hour)
	changed := version("a", "2")
	changed.Created = day.Add(2 * time.Hour)
	gone := rollout.New(version("a", "1")).There(day)
	if got := gone.There(back.Created, back).Of(changed, changed.Created); got != rollout.Previous {
		t.Errorf("a change of what came back is %s", got)
	}
	if got := gone.Of(changed, changed.Created); got != rollout.Audited {
		t.Errorf("one of the name of what did not is %s", got)
	}
	earlier, err := rollout.Decode(zipped(`{"version":1,"policies":{"a":{"hash":"1","enforcing":true,"gone":true}}}`))
	if err != nil || earlier.There(day, back).Equal(earlier) || !earlier.There(day).Equal(earlier) {
		t.Errorf("what an earlier version noted: %v", err)
	}
}

// TestGoneAt: since when is noted once, written, and mended where a clock was wrong.
func TestGoneAt(t *testing.T) {
	l := rollout.New(version("a", "1"))
	gone := l.There(day)
	text, err := gone.Encode()
	if err != nil {
		t.Fatal(err)
	}
	read, err := rollout.Decode(text)
	if err != nil || !read.Equal(gone) {
		t.Errorf("it is read as another: %v", err)
	}
	for _, c := range []struct {
		reason    string
		approvals *rollout.Approvals
		same      bool
	}{
		{"later it is still since then", gone.There(day.Add(time.Hour)), true},
		{"another came by its name", gone.There(day.Add(time.Hour), version("a", "2")), true},
		{"it went later", l.There(day.Add(time.Hour)), false},
		{"it was noted in the future", l.There(day.Add(time.Hour)).There(day), true},
		{"it came back, and went later", gone.There(day, version("a", "1")).There(day.Add(time.Hour)), false},
	} {
		if c.approvals.Equal(gone) != c.same {
			t.Errorf("%s: the same %t", c.reason, !c.same)
		}
	}
}

// TestThere: a policy that goes and comes back as it was is in force at once.
func TestThere(t *testing.T) {
	l := rollout.New(version("a", "1"), version("b", "1")).There(day, version("a", "1"))
	if b, known := l.Before("b"); !known || !b.Gone || l.Of(version("b", "1"), day) != rollout.Itself {
		t.Errorf("it is forgotten: %+v", b)
	}
	if back := l.There(day, version("a", "1"), version("b", "1")); back.Equal(l) || !back.Equal(rollout.New(version("a", "1"), version("b", "1"))) {
		t.Error("it does not come back")
	}
	var many []rollout.Version
	for i := range 1_500 {
		many = append(many, version(fmt.Sprint("p", i), "1"))
	}
	l = rollout.New(many...).There(day)
	kept := 0
	for _, v := range many {
		if _, known := l.Before(v.ID); known {
			kept++
		}
	}
	if kept != 1_000 {
		t.Errorf("%d that are gone are remembered", kept)
	}
}

func TestEncode(t *testing.T) {
	l := rollout.New(version("a", "1"), version("b", "2"))
	text, err := l.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := rollout.Decode(text)
	if err != nil || !got.Equal(l) || got.Equal(rollout.New()) || got.Equal(nil) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := (*rollout.Approvals)(nil).Encode(); err == nil {
		t.Error("nothing is written")
	}
}

// TestEncodeIsBounded: where texts have no room, the longest go, and no hash.
func TestEncodeIsBounded(t *testing.T) {
	random := rand.NewChaCha8([32]byte{})
	var versions []rollout.Version
	for i := range 40 {
		noise := make([]byte, 40<<10)
		_, _ = random.Read(noise)
		versions = append(versions, rollout.Version{ID: fmt.Sprint(i), Hash: fmt.Sprint(i), Enforcing: true, Text: noise})
	}
	versions = append(versions, version("short", "1"))
	text, err := rollout.New(versions...).Encode()
	if err != nil || len(text) > rollout.MaxEncoded {
		t.Fatalf("%d bytes, %v", len(text), err)
	}
	l, err := rollout.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	without := 0
	for _, v := range versions {
		before, known := l.Before(v.ID)
		if !known || before.Hash != v.Hash {
			t.Errorf("%s is lost", v.ID)
		}
		if len(before.Text) == 0 {
			without++
		}
	}
	if short, _ := l.Before("short"); len(short.Text) == 0 || without == 0 || without == len(versions) {
		t.Errorf("%d of %d without a text", without, len(versions))
	}
}

func zipped(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.Bytes()
}

// TestDecodeRefuses: damaged data, and data of a later version, are refused.
func TestDecodeRefuses(t *testing.T) {
	const good = `{"version":1,"policies":{"a":{"hash":"1"}}}`
	if _, err := rollout.Decode(zipped(good)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text   []byte
		later  bool
		reason string
	}{
		{nil, false, "nothing"},
		{[]byte(good), false, "not compressed"},
		{zipped(good)[:30], false, "cut"},
		{zipped(good + "x"), false, "more behind it"},
		{zipped(strings.Replace(good, ":1", ":2", 1)), true, "of a later version"},
		{zipped(strings.Replace(good, ":1", ":0", 1)), false, "of none"},
		{zipped(`{"version":1}`), false, "without policies"},
		{zipped(strings.Replace(good, `"a"`, `""`, 1)), false, "without a name"},
		{zipped(strings.Replace(good, `"1"`, `""`, 1)), false, "without a hash"},
	} {
		if _, err := rollout.Decode(c.text); err == nil || errors.Is(err, rollout.ErrVersion) != c.later {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(zipped(`{"version":1,"policies":{"a":{"hash":"1","text":"e30="}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := rollout.Decode(text)
		if err != nil {
			return
		}
		again, err := l.Encode()
		if err != nil {
			t.Skip("it has no room")
		}
		if got, err := rollout.Decode(again); err != nil || len(again) < rollout.MaxEncoded/2 && !got.Equal(l) {
			t.Errorf("it is read as another one: %v", err)
		}
	})
}

func Example() {
	approved := rollout.Version{ID: "ClusterPolicy/signed", Hash: "1", Enforcing: true, Text: []byte("{}")}
	approvals := rollout.New(approved)
	changed := approved
	changed.Hash = "2"
	now := time.Now()
	fmt.Println(approvals.Of(approved, now), approvals.Of(changed, now), approvals.Approve(changed).Of(changed, now))
	// Output: itself previous itself
}
