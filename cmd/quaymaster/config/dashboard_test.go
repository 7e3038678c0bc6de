package config

import (
	"testing"
)

// TestDashboardSettings: nothing shows every namespace to everybody.
func TestDashboardSettings(t *testing.T) {
	for _, row := range []struct {
		reason     string
		settings   Dashboard
		standalone bool
		wrong      int
	}{
		{"nothing is set", Dashboard{}, true, 0},
		{"another port of loopback", Dashboard{Address: "127.0.0.1:9000"}, true, 0},
		{"loopback of IPv6", Dashboard{Address: "[::1]:9000"}, true, 0},
		{"by name", Dashboard{Address: "localhost:9000"}, true, 0},
		{"everywhere, for tokens of a file", Dashboard{Address: ":9000", Tokens: "f"}, true, 0},
		{"everywhere, authorised by the cluster", Dashboard{Address: "0.0.0.0:9000", TokenReview: true}, false, 0},
		{"everywhere, for everybody", Dashboard{Address: ":9000"}, false, 1},
		{"everywhere by a name that may be anything", Dashboard{Address: "localhost.example:9000"}, false, 1},
		{"no port", Dashboard{Address: "127.0.0.1"}, false, 1},
		{"a cluster is asked without one", Dashboard{TokenReview: true}, true, 1},
		{"two ways", Dashboard{Tokens: "f", TokenReview: true}, false, 1},
		{"audiences of no token", Dashboard{Audiences: []string{"a"}}, false, 1},
		{"disabled, and where it is", Dashboard{Disabled: true, Address: ":9000"}, false, 1},
		{"a playground", Dashboard{Playground: true}, true, 0},
		{"disabled, and with a playground", Dashboard{Disabled: true, Playground: true}, false, 1},
		{"disabled", Dashboard{Disabled: true}, false, 0},
	} {
		var found complaints
		row.settings.fill()
		row.settings.check(row.standalone, &found)
		if len(found) != row.wrong {
			t.Errorf("%s: %v", row.reason, found)
		}
	}
}
