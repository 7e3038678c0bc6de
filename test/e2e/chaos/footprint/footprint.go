// Package footprint answers: what does a gateway hold, and does it grow, or is it only restless?
package footprint

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// Reading is what a gateway holds at one moment.
type Reading struct {
	Goroutines, Files float64
	Memory            float64 // RssAnon, in bytes
}

// The allowed growth of a gateway over faults: a few idle connections with their goroutines,
// and the heap of a burst until the next cycles.
const (
	moreGoroutines = 80
	moreFiles      = 40
	moreMemory     = 64 << 20
)

// Read reads what a gateway holds.
func Read(ctx context.Context, g *gateway.Gateway) (Reading, error) {
	samples, err := g.Metrics(ctx)
	if err != nil {
		return Reading{}, err
	}
	memory, err := g.RssAnon()
	return Reading{
		Goroutines: gateway.Sum(samples, "go_goroutines"), Files: gateway.Sum(samples, "process_open_fds"), Memory: float64(memory),
	}, err
}

// IsBack reports whether a gateway has about as much in use as before.
func (r Reading) IsBack(before Reading) bool {
	return r.Goroutines <= before.Goroutines+moreGoroutines && r.Files <= before.Files+moreFiles && r.Memory <= before.Memory+moreMemory
}

// Cells are those of a table: each gateway's, with a stroke between.
func Cells(of []Reading) []string {
	var goroutines, files, memory []string
	for _, r := range of {
		goroutines, files = append(goroutines, fmt.Sprint(r.Goroutines)), append(files, fmt.Sprint(r.Files))
		memory = append(memory, fmt.Sprintf("%.0f", r.Memory/(1<<20)))
	}
	return []string{strings.Join(goroutines, "/"), strings.Join(files, "/"), strings.Join(memory, "/")}
}

// Table writes rows of cells.
func Table(out io.Writer, rows [][]string) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range rows {
		fmt.Fprintln(t, strings.Join(row, "\t")+"\t")
	}
	_ = t.Flush()
}

// At is a reading with its time since the first.
type At struct {
	After time.Duration
	Reading
}

// What may be gained over the time that is judged. Memory: what a heap of this size may be off
// by between two cycles.
var (
	mostMemory     = Bound{Absolute: 12 << 20, Share: 0.1}
	mostGoroutines = Bound{Absolute: 10}
	mostFiles      = Bound{Absolute: 10}
)

// Judge prints the trend of each gateway's readings from some time on, and counts those that
// grow more than they may.
func Judge(out io.Writer, series [][]At, warm time.Duration) (grown int, err error) {
	rows := [][]string{{"", "low", "median", "high", "an hour", "gained", "may gain", ""}}
	for i := range series {
		for _, of := range []struct {
			name  string
			unit  float64
			bound Bound
			value func(Reading) float64
		}{
			{"memory, MiB", 1 << 20, mostMemory, func(r Reading) float64 { return r.Memory }},
			{"goroutines", 1, mostGoroutines, func(r Reading) float64 { return r.Goroutines }},
			{"files", 1, mostFiles, func(r Reading) float64 { return r.Files }},
		} {
			var points []Point
			for _, a := range series[i] {
				if a.After >= warm {
					points = append(points, Point{At: a.After, Value: of.value(a.Reading)})
				}
			}
			t, err := TrendOf(points)
			if err != nil {
				return grown, fmt.Errorf("replica %d, %s: %w", i, of.name, err)
			}
			word := "flat"
			if t.Exceeds(of.bound) {
				word = "GROWS"
				grown++
			}
			row := []string{fmt.Sprintf("replica %d, %s", i, of.name)}
			for _, value := range []float64{t.Low, t.Median, t.High, t.PerHour, t.Growth, max(of.bound.Absolute, of.bound.Share*t.Median)} {
				row = append(row, fmt.Sprintf("%.1f", value/of.unit))
			}
			rows = append(rows, append(row, word))
		}
	}
	Table(out, rows)
	return grown, nil
}
