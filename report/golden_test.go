package report_test

import (
	"io"
	"testing"

	"github.com/quaymaster/quaymaster/report"
)

func TestGolden(t *testing.T) {
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			outcomes := s.outcomes(t)
			golden(t, "text/"+s.name+".txt", func(w io.Writer) error {
				return report.Text(w, outcomes, report.TextOptions{Reproduce: reproduce})
			})
			golden(t, "tree/"+s.name+".txt", func(w io.Writer) error {
				return report.Tree(w, outcomes[0], report.TreeOptions{})
			})
			golden(t, "json/"+s.name+".json", func(w io.Writer) error { return report.JSON(w, outcomes) })
		})
	}
}

func TestGoldenOptions(t *testing.T) {
	everything, pod := all(t), find(t, "pod").outcomes(t)
	texts := map[string]report.TextOptions{
		"text/colour.txt":  {Color: true, Reproduce: reproduce},
		"text/verbose.txt": {Verbose: true, Width: 100, Reproduce: reproduce},
		"text/narrow.txt":  {Width: 1, Reproduce: reproduce},
	}
	for file, options := range texts {
		golden(t, file, func(w io.Writer) error { return report.Text(w, pod, options) })
	}
	golden(t, "text/everything.txt", func(w io.Writer) error { return report.Text(w, everything, report.TextOptions{}) })
	trees := map[string]report.TreeOptions{
		"tree/colour.txt":  {Color: true},
		"tree/verbose.txt": {Verbose: true, Width: 100},
	}
	for file, options := range trees {
		golden(t, file, func(w io.Writer) error { return report.Tree(w, pod[0], options) })
	}
	golden(t, "text/none.txt", func(w io.Writer) error { return report.Text(w, nil, report.TextOptions{}) })
}
