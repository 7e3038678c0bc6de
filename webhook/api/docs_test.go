package api

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestCausesAreDocumented: the manual has a row for each error.
func TestCausesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	for cause, status := range statuses {
		if row := fmt.Sprintf("| %d | `%s` |", status, cause); cause != Decided && !strings.Contains(string(text), row) {
			t.Errorf("docs/api.md has no row %s", row)
		}
	}
}
