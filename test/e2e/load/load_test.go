package main

import (
	"strings"
	"testing"
	"time"
)

func TestStages(t *testing.T) {
	all := []stage{{"up", 10, 10 * time.Second}, {"hold", 10, 5 * time.Second}, {"spike", 30, 2 * time.Second}, {"down", 0, 3 * time.Second}}
	for _, row := range []struct {
		reason       string
		after        time.Duration
		users, index int
	}{
		{"at the start there is no user", 0, 0, 0},
		{"half of the way", 5 * time.Second, 5, 0},
		{"the first moment of a stage is the last of the one before", 10 * time.Second, 10, 1},
		{"held", 14 * time.Second, 10, 1},
		{"rushing in", 16 * time.Second, 20, 2},
		{"leaving", 18500 * time.Millisecond, 15, 3},
		{"over", 20 * time.Second, 0, 4},
	} {
		if users, index := at(all, row.after); users != row.users || index != row.index {
			t.Errorf("%s: %d users in stage %d, want %d in %d", row.reason, users, index, row.users, row.index)
		}
	}
	if most(all) != 30 {
		t.Errorf("most: %d, want 30", most(all))
	}
}

func TestQuantile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[99-i] = time.Duration(i + 1)
	}
	for _, row := range []struct {
		reason string
		times  []time.Duration
		share  float64
		want   time.Duration
	}{
		{"of none", nil, 0.99, 0},
		{"of one", []time.Duration{7}, 0.5, 7},
		{"the 99th of a hundred", hundred, 0.99, 99},
		{"the middle", hundred, 0.5, 50},
		{"the most", hundred, 1, 100},
		{"of a few the most", []time.Duration{3, 1, 2}, 0.99, 3},
	} {
		if got := quantile(row.times, row.share); got != row.want {
			t.Errorf("%s: %d, want %d", row.reason, got, row.want)
		}
	}
	if hundred[0] != 100 {
		t.Error("the caller's times were sorted")
	}
}

func TestParse(t *testing.T) {
	if s, err := parse(nil); err != nil || len(s.scenarios) != 3 {
		t.Errorf("no arguments: %+v, %v", s, err)
	}
	for _, row := range []struct{ reason, argument, word string }{
		{"a scenario that is none", "-scenarios=ramp,storm", `"storm"`},
		{"fewer pods than images", "-pods=59", "each image"},
		{"a name of another kind", "-by=name", `"name"`},
		{"no user", "-users=0", "at least one"},
		{"too short", "-time=10ms", "at least"},
		{"fewer pods than new images", "-rate=1", "new in each"},
	} {
		if _, err := parse([]string{row.argument}); err == nil || !strings.Contains(err.Error(), row.word) {
			t.Errorf("%s: %v", row.reason, err)
		}
	}
}

func TestShots(t *testing.T) {
	warm, cold := []string{"a", "b", "c"}, []string{"x", "y"}
	all := shots(8, warm, cold)
	seen := map[string]int{}
	for i, s := range all {
		seen[s.image]++
		if s.cold != (s.image == "x" || s.image == "y") {
			t.Errorf("shot %d: %+v", i, s)
		}
	}
	if len(all) != 8 || seen["x"] != 1 || seen["y"] != 1 || seen["a"] != 2 || seen["b"] != 2 || seen["c"] != 2 {
		t.Errorf("%v", seen)
	}
	if all[0].cold || !all[3].cold || !all[7].cold {
		t.Errorf("the new ones are not spread: %+v", all)
	}
	if got := shots(4, warm, nil); len(got) != 4 || got[3].cold {
		t.Errorf("without new ones: %+v", got)
	}
}

func TestJudge(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	for _, row := range []struct {
		reason     string
		warm, cold time.Duration
		missed     int
	}{
		{"all is met", ms(15), ms(400), 0},
		{"warm is slow", ms(16), ms(400), 1},
		{"cold is slow", ms(15), ms(501), 1},
	} {
		said := &strings.Builder{}
		v := &verdicts{out: said}
		judge(v, []phases{
			{allowed: []time.Duration{ms(10)}, warm: []time.Duration{row.warm}, cold: []time.Duration{ms(1)}},
			{allowed: []time.Duration{ms(10)}, warm: []time.Duration{row.warm}, cold: []time.Duration{row.cold}},
			{allowed: []time.Duration{ms(10)}, warm: []time.Duration{ms(90)}, cold: []time.Duration{ms(1)}},
		})
		if v.missed != row.missed {
			t.Errorf("%s: %d missed\n%s", row.reason, v.missed, said)
		}
	}
}
