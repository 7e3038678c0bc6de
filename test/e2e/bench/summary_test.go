package main

import (
	"strings"
	"testing"
	"time"
)

// good is a round that meets every target, at some second of the run.
func good(second int, change func(*measurement)) round {
	start := time.Unix(int64(second), 0)
	m := measurement{rate: 90, webhookCPU: 150, peak: 50 << 20, start: start, end: start.Add(5 * time.Second)}
	if change != nil {
		change(&m)
	}
	return round{allowing: measurement{rate: 100, webhookCPU: 100}, gated: m}
}

func TestJudge(t *testing.T) {
	for _, row := range []struct {
		reason string
		change func(*measurement) // of two rounds of three
		missed string
		policy string
	}{
		{"all is met", nil, "", clusterPolicy},
		{"too slow", func(m *measurement) { m.rate = 84 }, "rate", clusterPolicy},
		{"too slow for objects", func(m *measurement) { m.rate = 74 }, "rate", podSecurity},
		{"fast enough for objects", func(m *measurement) { m.rate = 76 }, "", podSecurity},
		{"too much CPU for objects", func(m *measurement) { m.webhookCPU = 601 * time.Microsecond }, "CPU", podSecurity},
		{"too much CPU", func(m *measurement) { m.webhookCPU = 161 }, "CPU", clusterPolicy},
		{"too much memory", func(m *measurement) { m.peak = 97 << 20 }, "memory", clusterPolicy},
		{"two registry requests a round, 30 seconds apart", func(m *measurement) { m.registry = 2 }, "registry", clusterPolicy},
		{"a registry request each age of the tag", func(m *measurement) { m.registry = 1 }, "", clusterPolicy},
	} {
		rounds := []round{good(0, row.change), good(15, nil), good(30, row.change)}
		said := &strings.Builder{}
		missed := judge(said, row.policy, rounds)
		if want := map[bool]int{true: 0, false: 1}[row.missed == ""]; missed != want {
			t.Errorf("%s: %d targets missed:\n%s", row.reason, missed, said)
		}
		for line := range strings.Lines(said.String()) {
			if strings.Contains(line, "MISSED") && (row.missed == "" || !strings.Contains(line, row.missed)) {
				t.Errorf("%s: missed %s", row.reason, line)
			}
		}
	}
}

func TestMedian(t *testing.T) {
	rounds := []round{good(0, func(m *measurement) { m.rate = 30 }), good(1, func(m *measurement) { m.rate = 10 }), good(2, func(m *measurement) { m.rate = 1000 })}
	rate := func(r round) float64 { return r[gated].rate }
	if got := median(rounds, rate); got != 30 {
		t.Errorf("of three: %v, want 30", got)
	}
	if got := median(rounds[:2], rate); got != 20 {
		t.Errorf("of two: %v, want 20", got)
	}
	if got := ratio(rounds, func(m measurement) float64 { return m.rate }); got != 0.3 {
		t.Errorf("the ratio is %v, want 0.3", got)
	}
}

func TestTurns(t *testing.T) {
	phases := []phase{{name: bare}, {name: allowing}, {name: gated}}
	if forth, back := turns(phases, 0), turns(phases, 1); forth[0].name != bare || back[0].name != gated || phases[0].name != bare {
		t.Errorf("forth %v, back %v", forth, back)
	}
}

func TestJudgeNative(t *testing.T) {
	for _, row := range []struct {
		reason string
		rate   float64
		calls  int
		missed int
	}{
		{"all is met", 98, 0, 0},
		{"slower than by hand", 96, 0, 1},
		{"a request to the gateway", 98, 1, 1},
		{"slower than the webhook", 79, 0, 2},
	} {
		one := round{bare: {rate: 200}, gated: {rate: 80}, written: {rate: 100}, native: {rate: row.rate, calls: row.calls}}
		said := &strings.Builder{}
		if missed := judgeNative(said, []round{one, one, one}); missed != row.missed {
			t.Errorf("%s: %d targets missed:\n%s", row.reason, missed, said)
		}
	}
}
