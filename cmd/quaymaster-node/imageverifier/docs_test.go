package imageverifier

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// TestSettingsAreDocumented: the manual names each member.
func TestSettingsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/node.md")
	if err != nil {
		t.Fatal(err)
	}
	for prefix, of := range map[string]any{"": Settings{}, "gateway.": Gateway{}, "local.": Local{}} {
		kind := reflect.TypeOf(of)
		for i := range kind.NumField() {
			field := kind.Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name == "" || field.Type.Kind() == reflect.Pointer {
				continue
			}
			if !strings.Contains(string(text), "`"+prefix+name+"`") {
				t.Errorf("docs/node.md does not name `%s%s`", prefix, name)
			}
		}
	}
}
