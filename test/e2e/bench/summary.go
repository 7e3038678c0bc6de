package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"
)

// The targets, relative to the no-op pair, and in bytes.
const (
	mostCPU    = 1.6
	mostSpent  = 600 * time.Microsecond // a pod, under the Pod Security Standards
	mostMemory = 96 << 20
	tagAge     = 30 * time.Second // the gateway's default
)

// leastRate is how much of the no-op pair's rate is wanted.
func leastRate(policy string) float64 {
	switch policy {
	case podSecurity:
		return 0.75
	case imageValidatingPolicy:
		return 0.8
	}
	return 0.85
}

// row is one line of the table.
type row struct {
	name  string
	value func(measurement) float64
	show  func(float64) string
	// ratio: how the gateway compares with the pair is shown.
	ratio bool
}

func rows() []row {
	milliseconds := func(of func(measurement) time.Duration) func(measurement) float64 {
		return func(m measurement) float64 { return float64(of(m)) / float64(time.Millisecond) }
	}
	format := func(verb string) func(float64) string { return func(v float64) string { return fmt.Sprintf(verb, v) } }
	return []row{
		{"rate, 1/s", func(m measurement) float64 { return m.rate }, format("%.0f"), true},
		{"latency p50, ms", milliseconds(func(m measurement) time.Duration { return m.p50 }), format("%.1f"), true},
		{"latency p90, ms", milliseconds(func(m measurement) time.Duration { return m.p90 }), format("%.1f"), true},
		{"latency p99, ms", milliseconds(func(m measurement) time.Duration { return m.p99 }), format("%.1f"), true},
		{"CPU of the webhook per pod, ms", milliseconds(func(m measurement) time.Duration { return m.webhookCPU }), format("%.3f"), true},
		{"CPU of the API server per pod, ms", milliseconds(func(m measurement) time.Duration { return m.serverCPU }), format("%.3f"), true},
		{"CPU of the client per pod, ms", milliseconds(func(m measurement) time.Duration { return m.clientCPU }), format("%.3f"), true},
		{"requests to the gateway", func(m measurement) float64 { return float64(m.calls) }, format("%.0f"), false},
		{"registry requests", func(m measurement) float64 { return float64(m.registry) }, format("%.0f"), false},
	}
}

// summarize prints medians over the rounds, and ratios as medians over the
// rounds' ratios.
func summarize(w io.Writer, s settings, stand *stand, results map[int][]round) error {
	fmt.Fprintf(w, "Creating pods, dry run, with an image by tag that is signed with a key, warm.\n"+
		"kube-apiserver %s, %s %s/%s, %d CPUs for all programs; medians of %d rounds of %s, phases in turn.\n",
		stand.version, runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), s.rounds, s.measure)
	if s.gateway {
		with := "one " + s.policy
		switch s.policy {
		case podSecurity:
			with = "the 18 policies of the Pod Security Standards, which enforce"
		case nativePolicies:
			with = "the 18 controls of the Pod Security Standards in CEL, of which the API server evaluates those for one namespace itself"
		}
		fmt.Fprintf(w, "The gateway has its default settings and %s: a tag is asked for again after %s.\n", with, tagAge)
	}
	missed := 0
	for _, users := range s.users {
		fmt.Fprintf(w, "\n%d users\n", users)
		table(w, s, stand, results[users])
		if s.policy == nativePolicies {
			missed += judgeNative(w, results[users])
		} else if s.gateway {
			missed += judge(w, s.policy, results[users])
		}
	}
	if s.check && missed > 0 {
		return fmt.Errorf("%d targets missed", missed)
	}
	return nil
}

func table(w io.Writer, s settings, stand *stand, rounds []round) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(cells ...string) {
		for _, cell := range cells {
			fmt.Fprintf(t, "%s\t", cell)
		}
		fmt.Fprintln(t)
	}
	head := []string{""}
	for _, p := range stand.phases {
		head = append(head, p.name)
	}
	if s.gateway {
		head = append(head, "gateway / pair")
	}
	line(head...)
	for _, r := range rows() {
		cells := []string{r.name}
		for _, p := range stand.phases {
			cells = append(cells, r.show(median(rounds, func(round round) float64 { return r.value(round[p.name]) })))
		}
		if s.gateway && r.ratio {
			cells = append(cells, fmt.Sprintf("%.2f", ratio(rounds, r.value)))
		}
		line(cells...)
	}
	cells := []string{"peak RssAnon of the webhook, MiB"}
	for _, p := range stand.phases {
		cells = append(cells, fmt.Sprintf("%.0f", float64(peak(rounds, p.name))/(1<<20)))
	}
	line(cells...)
	_ = t.Flush()
}

// judge prints which targets are met, and returns how many are not.
func judge(w io.Writer, policy string, rounds []round) (missed int) {
	say := func(met bool, format string, args ...any) {
		verdict := "met"
		if !met {
			verdict = "MISSED"
			missed++
		}
		fmt.Fprintf(w, "  %-6s  %s\n", verdict, fmt.Sprintf(format, args...))
	}
	rate := ratio(rounds, func(m measurement) float64 { return m.rate })
	least := leastRate(policy)
	say(rate >= least, "rate %.2f of the no-op pair's, want at least %.2f", rate, least)
	if policy == podSecurity {
		spent := median(rounds, func(r round) float64 { return r[gated].webhookCPU.Seconds() })
		say(spent <= mostSpent.Seconds(), "CPU %.3f ms a pod, want at most %s", 1000*spent, mostSpent)
	} else {
		cpu := ratio(rounds, func(m measurement) float64 { return float64(m.webhookCPU) })
		say(cpu <= mostCPU, "CPU %.2f times the no-op pair's, want at most %.2f", cpu, mostCPU)
	}
	asked := 0
	for _, r := range rounds {
		asked += r[gated].registry
	}
	span := rounds[len(rounds)-1][gated].end.Sub(rounds[0][gated].start)
	allowed := 1 + int(span/tagAge)
	say(asked <= allowed, "%d registry requests in %s, want at most %d for one tag", asked, span.Round(time.Second), allowed)
	memory := peak(rounds, gated)
	say(memory <= mostMemory, "peak memory %.0f MiB, want at most %d MiB", float64(memory)/(1<<20), mostMemory>>20)
	return missed
}

func median(rounds []round, value func(round) float64) float64 {
	values := make([]float64, len(rounds))
	for i, r := range rounds {
		values[i] = value(r)
	}
	slices.SortFunc(values, cmp.Compare)
	if middle := len(values) / 2; len(values)%2 == 1 {
		return values[middle]
	} else {
		return (values[middle-1] + values[middle]) / 2
	}
}

// ratio is the gateway's value over the pair's in the same round.
func ratio(rounds []round, value func(measurement) float64) float64 {
	return median(rounds, func(r round) float64 { return value(r[gated]) / value(r[allowing]) })
}

func peak(rounds []round, name string) (most int64) {
	for _, r := range rounds {
		most = max(most, r[name].peak)
	}
	return most
}
