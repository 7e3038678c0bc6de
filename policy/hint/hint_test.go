package hint

import (
	"os"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/internal/testkit"
)

// TestCodes: the hint of a code that does not exist any more is dropped. Package report holds that
// each code has a hint and a section of the page.
func TestCodes(t *testing.T) {
	page := string(testkit.Must(os.ReadFile("../../docs/reason-codes.md"))(t))
	for code, text := range byCode {
		if !strings.Contains(page, "\n### `"+code+"`\n") {
			t.Errorf("%s: the page of codes has no such section", code)
		}
		if text == "" || strings.HasSuffix(text, ".") || Of(code) != text {
			t.Errorf("%s: %q", code, text)
		}
	}
	for code, reason := range map[string]string{"verified": "in favour of an image", "": "no code", "no-such-code": "not a code"} {
		if text := Of(code); text != "" {
			t.Errorf("%s (%s): %q", code, reason, text)
		}
	}
}
