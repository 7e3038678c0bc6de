package report

import (
	"slices"
	"strings"
	"testing"
)

func TestWrap(t *testing.T) {
	tests := []struct {
		reason, in string
		want       []string
	}{
		{"nothing is one empty line", "", []string{""}},
		{"what fits stays", "one two", []string{"one two"}},
		{"exactly full", "one two three 45", []string{"one two three 45"}},
		{"one too long", "one two three 456", []string{"one two three", "456"}},
		{"a name is never cut", "of registry.example/team/app or", []string{"of", "registry.example/team/app", "or"}},
		{"nor a digest", "a@sha256:0123456789abcdef0123", []string{"a@sha256:0123456789abcdef0123"}},
		{"wide letters take two columns", "日本語日本語 日本語", []string{"日本語日本語", "日本語"}},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			if got := wrap(test.in, 16); !slices.Equal(got, test.want) {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

func TestWrapCommand(t *testing.T) {
	tests := []struct {
		reason, in string
		want       []string
	}{
		{"what fits stays", "qm explain a", []string{"qm explain a"}},
		{"a shell joins the lines again", "qm explain --policy p.yaml a", []string{`qm explain \`, `  --policy \`, `  p.yaml a`}},
		{"quotes are not cut", "qm -f 'a b c d e f g' x", []string{`qm -f \`, `  'a b c d e f g' \`, "  x"}},
		{"nor escaped blanks", `qm a\ b\ c\ d\ e\ f x`, []string{`qm \`, `  a\ b\ c\ d\ e\ f \`, "  x"}},
		{"a word that is too long is left whole", "qm " + strings.Repeat("a", 20), []string{`qm \`, "  " + strings.Repeat("a", 20)}},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			if got := wrapCommand(test.in, 16); !slices.Equal(got, test.want) {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

func FuzzWrap(f *testing.F) {
	f.Add("registry.example/team/app@sha256:0123 and more", 16)
	f.Add("日本語", 1)
	f.Fuzz(func(t *testing.T, s string, width int) {
		width = pageWidth(width)
		text := clean(s)
		lines := wrap(text, width)
		for _, line := range lines {
			if columns(line) > width && strings.Contains(line, " ") {
				t.Errorf("%q has more than %d columns", line, width)
			}
		}
		if got := strings.ReplaceAll(strings.Join(lines, ""), " ", ""); got != strings.ReplaceAll(text, " ", "") {
			t.Errorf("%q became %q", text, lines)
		}
		_ = wrapCommand(text, width)
	})
}
