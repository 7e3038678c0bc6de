package age_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy/age"
	"github.com/quaymaster/quaymaster/verify"
)

var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

// fact is a signature that was made so long ago by the clock of a source.
func fact(source verify.TimeSource, ago time.Duration, ids ...string) verify.Fact {
	return verify.Fact{SignedAt: noon.Add(-ago), TimeSource: source, Signatures: ids, Signer: verify.Signer{KeyFingerprint: "0123456789abcdef"}}
}

func ExampleBounds_Fresh() {
	bounds := age.Bounds{By: "requirements[0]", Maximum: 72 * time.Hour, At: noon}
	fresh, old, unknown := bounds.Fresh([]verify.Fact{fact(verify.LogTime, 100*time.Hour), fact(verify.StampTime, time.Hour)})
	fmt.Println(len(fresh), old[0].Found, unknown)
	// Output: 1 signed at 2026-03-10T08:00:00Z by key 0123456789abcdef, 4 days 4h ago <nil>
}

func TestFresh(t *testing.T) {
	old, fresh := fact(verify.LogTime, 100*time.Hour), fact(verify.StampTime, time.Hour)
	untimed, own := verify.Fact{}, fact(verify.OwnTime, time.Hour)
	unsaid := fact("", time.Hour)
	for _, c := range []struct {
		reason    string
		facts     []verify.Fact
		fresh     []int
		old       int
		isUnknown bool
	}{
		{"none", nil, nil, 0, false},
		{"a fresh one", []verify.Fact{fresh}, []int{0}, 0, false},
		{"an old one", []verify.Fact{old}, nil, 1, false},
		{"as old as the bound", []verify.Fact{fact(verify.LogTime, 72*time.Hour)}, []int{0}, 0, false},
		{"a second older", []verify.Fact{fact(verify.LogTime, 72*time.Hour+time.Second)}, nil, 1, false},
		{"of later than now", []verify.Fact{fact(verify.LogTime, -time.Hour)}, []int{0}, 0, false},
		{"no time", []verify.Fact{untimed}, nil, 0, true},
		{"the signer's own time", []verify.Fact{own}, nil, 0, true},
		{"a time of an unknown source", []verify.Fact{unsaid}, nil, 0, true},
		{"no time beside an old one", []verify.Fact{untimed, old}, nil, 1, true},
		{"no time beside a fresh one", []verify.Fact{untimed, fresh}, []int{1}, 0, false},
		{"one that is logged again beside its first entry", []verify.Fact{fact(verify.LogTime, time.Hour, "x"), fact(verify.LogTime, 100*time.Hour, "x")}, nil, 2, false},
		{"one that is made again", []verify.Fact{fact(verify.LogTime, time.Hour, "y"), fact(verify.LogTime, 100*time.Hour, "x")}, []int{0}, 1, false},
	} {
		got, rejected, unknown := age.Bounds{Maximum: 72 * time.Hour, At: noon}.Fresh(c.facts)
		var want []time.Time
		for _, i := range c.fresh {
			want = append(want, c.facts[i].SignedAt)
		}
		var times []time.Time
		for _, f := range got {
			times = append(times, f.SignedAt)
		}
		if !slices.Equal(times, want) || len(rejected) != c.old || errors.Is(unknown, age.ErrUnknown) != c.isUnknown {
			t.Errorf("%s: %v, %d old, %v", c.reason, times, len(rejected), unknown)
		}
	}
	for _, unbounded := range []age.Bounds{{}, {Minimum: time.Hour, At: noon}, {Maximum: time.Hour, At: noon, Whole: true}} {
		if got, rejected, err := unbounded.Fresh([]verify.Fact{old, untimed}); len(got) != 2 || len(rejected) > 0 || err != nil {
			t.Errorf("%+v: %d facts, %v", unbounded, len(got), err)
		}
	}
	if got, _, err := (age.Bounds{Maximum: time.Hour}).Fresh([]verify.Fact{fresh}); len(got) > 0 || !errors.Is(err, age.ErrNoClock) {
		t.Errorf("without a clock: %d facts, %v", len(got), err)
	}
}

func TestStricter(t *testing.T) {
	a := age.Bounds{By: "a", Minimum: time.Hour, Maximum: 2 * time.Hour, At: noon, Whole: true}
	b := age.Bounds{By: "b", Minimum: 3 * time.Hour, Maximum: time.Hour, At: noon, Whole: true}
	want := age.Bounds{By: "b", Minimum: 3 * time.Hour, Maximum: time.Hour, At: noon}
	if got := (age.Bounds{}).Stricter(a).Stricter(b); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := (age.Bounds{}).Stricter(b).Stricter(a); got != want {
		t.Errorf("%+v in the other order, want %+v", got, want)
	}
	if got := (age.Bounds{}).Stricter(a).Stricter(age.Bounds{Minimum: time.Minute, At: noon}); got.Maximum != 2*time.Hour || got.By != "a" {
		t.Errorf("%+v beside one without a maximum", got)
	}
}

func TestFirst(t *testing.T) {
	facts := []verify.Fact{{}, fact(verify.OwnTime, 9*time.Hour), fact(verify.LogTime, time.Hour), fact(verify.StampTime, 2*time.Hour)}
	if first := age.First(facts); first != &facts[3] {
		t.Errorf("%+v", first)
	}
	if first := age.First(facts[:2]); first != nil {
		t.Errorf("%+v of evidence without a verified time", first)
	}
}

func TestEarliestAndLatest(t *testing.T) {
	young, old := fact(verify.LogTime, time.Hour, "a"), fact(verify.StampTime, 9*time.Hour, "b")
	for _, c := range []struct {
		reason        string
		facts         []verify.Fact
		first, last   time.Duration
		firsts, lasts int
	}{
		{"none", nil, 0, 0, 0, 0},
		{"no time", []verify.Fact{{}, fact(verify.OwnTime, time.Hour)}, 0, 0, 0, 0},
		{"no time next to one", []verify.Fact{{}, young}, time.Hour, time.Hour, 1, 1},
		{"two signatures", []verify.Fact{young, old}, 9 * time.Hour, time.Hour, 1, 1},
		{"two of one time", []verify.Fact{young, fact(verify.LogTime, time.Hour, "c")}, time.Hour, time.Hour, 2, 2},
		{"one that is logged again", []verify.Fact{fact(verify.LogTime, time.Hour, "b"), old}, 9 * time.Hour, 9 * time.Hour, 2, 2},
	} {
		at := func(ago time.Duration) (at time.Time) {
			if ago > 0 {
				at = noon.Add(-ago)
			}
			return at
		}
		first, firsts := age.Earliest(c.facts)
		last, lasts := age.Latest(c.facts)
		if !first.At.Equal(at(c.first)) || !last.At.Equal(at(c.last)) || len(firsts) != c.firsts || len(lasts) != c.lasts {
			t.Errorf("%s: first %v (%d), last %v (%d)", c.reason, first, len(firsts), last, len(lasts))
		}
	}
}

func TestText(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s": time.Millisecond, "59s": 59 * time.Second, "5m": 5 * time.Minute, "1m30s": 90 * time.Second, "5h": 5 * time.Hour, "5h1m": 5*time.Hour + time.Minute,
		"47h0m1s": 47*time.Hour + time.Second, "3 days": 72 * time.Hour, "4 days 4h": 100 * time.Hour, "-1m0s": -time.Minute,
	} {
		if got := age.Text(d); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
}
