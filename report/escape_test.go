package report

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	tests := []struct{ reason, in, want string }{
		{"plain text stays", `CN=Zoë, O="Ärzte" <a@b.example> \d+ €`, `CN=Zoë, O="Ärzte" <a@b.example> \d+ €`},
		{"wide letters and combining marks are text", "日本語 é", "日本語 é"},
		{"colours and cursors", "\x1b[31mred\x1b[2K", `\x1b[31mred\x1b[2K`},
		{"eight-bit controls too", "a\u009b31mb", `a\x9b31mb`},
		{"delete, bell, backspace", "a\x7fb\ac\bd", `a\x7fb\x07c\x08d`},
		{"a line cannot be forged", "one\r\n  ✓ allow\ttwo", "one ✓ allow two"},
		{"nor with Unicode's line ends", "one\u2028two\u0085three", "one two three"},
		{"text cannot run backwards", "a\u202eb\u2066c", `a\u202eb\u2066c`},
		{"nothing is invisible", "a\u200bb\ufeffc\U000e0041d", `a\u200bb\ufeffc\U000e0041d`},
		{"bytes that are no UTF-8", "a\xffb\xc3", `a\xffb\xc3`},
		{"a replacement character that was there", "a\ufffdb", "a\ufffdb"},
		{"the greatest length", strings.Repeat("a", maxText), strings.Repeat("a", maxText)},
		{"one more, counted", strings.Repeat("ä", maxText+1), strings.Repeat("ä", maxText) + "... (1 more characters)"},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			if got := clean(test.in); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

func TestFirstLine(t *testing.T) {
	for _, row := range []struct{ reason, in, want string }{
		{"one line", " a b ", "a b"},
		{"the first of two", "\na\nb", "a"},
		{"the greatest length", strings.Repeat("a", maxLine), strings.Repeat("a", maxLine)},
		{"one more", strings.Repeat("a", maxLine+1), strings.Repeat("a", maxLine)},
		{"a character at the bound", strings.Repeat("a", maxLine-1) + "ä", strings.Repeat("a", maxLine-1)},
	} {
		if got := FirstLine(row.in); got != row.want {
			t.Errorf("%s: got %q, want %q", row.reason, got, row.want)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add("plain")
	f.Add("\x1b[31m\u009b\u202e\xff\n\u2028")
	f.Add(strings.Repeat("\x00", 2*maxText))
	f.Fuzz(func(t *testing.T, s string) {
		got := clean(s)
		if strings.ContainsFunc(got, func(r rune) bool { return !isPlain(r) }) || !utf8.ValidString(got) {
			t.Errorf("%q became %q, which a terminal acts on", s, got)
		}
		if n := utf8.RuneCountInString(got); n > maxText*len(`\U00000000`)+40 {
			t.Errorf("%d characters are left of %d", n, len(s))
		}
		if again := escape(got); again != got {
			t.Errorf("escaped twice, %q became %q", got, again)
		}
	})
}
