package peers

import (
	"os"
	"testing"
)

// longVariable, if it is set to anything, has the suites play what takes minutes, too.
const longVariable = "QUAYMASTER_LONG"

// Long skips a test that takes minutes, unless those are wanted: `make suites` and `make test-all`
// leave them out, `make long` plays them with the rest.
func Long(t testing.TB) {
	t.Helper()
	if !IsLong() {
		t.Skip("takes minutes: make long, or " + longVariable + "=1, plays it")
	}
}

// IsLong reports whether what takes minutes is wanted, for tests that play a part of it
// otherwise.
func IsLong() bool { return os.Getenv(longVariable) != "" }
