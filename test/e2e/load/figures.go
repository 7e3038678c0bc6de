package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// verdicts prints which targets are met, and counts those that are not.
type verdicts struct {
	out    io.Writer
	missed int
}

func (v *verdicts) say(met bool, format string, args ...any) {
	word := "met"
	if !met {
		word = "MISSED"
		v.missed++
	}
	fmt.Fprintf(v.out, "  %-6s  %s\n", word, fmt.Sprintf(format, args...))
}

// quantile returns the least of the times that at least a share of them do not exceed, by
// the nearest rank; zero of none.
func quantile(times []time.Duration, share float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	rank := int(share * float64(len(sorted)))
	if float64(rank) < share*float64(len(sorted)) {
		rank++
	}
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// median of values, of which there is at least one.
func median[T cmp.Ordered](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// milliseconds as a table has them; nothing where nothing was measured.
func milliseconds(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f", float64(d)/float64(time.Millisecond))
}

// table writes lines of cells.
func table(out io.Writer, lines ...[]string) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, line := range lines {
		for _, cell := range line {
			fmt.Fprintf(t, "%s\t", cell)
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush()
}

// latencies are the cells of a line: how many, and how long they took.
func latencies(times []time.Duration) []string {
	cells := []string{fmt.Sprint(len(times))}
	for _, share := range []float64{0.5, 0.95, 0.99, 1} {
		cells = append(cells, milliseconds(quantile(times, share)))
	}
	return cells
}

// latencyHead is the head of latencies.
func latencyHead(first string) []string {
	return []string{first, "pods", "p50, ms", "p95", "p99", "most"}
}
