package dial

import "testing"

func TestCheckByDefault(t *testing.T) {
	tests := []struct {
		reason, host, resolved string
		refused                bool
	}{
		{"a registry in a private network", "reg.corp", "10.1.2.3:443", false},
		{"a unique local address", "reg.corp", "[fd12::1]:443", false},
		{"shared space", "reg.corp", "100.64.0.1:443", false},
		{"a public address", "reg.example", "93.184.216.34:443", false},
		{"a public address behind NAT64", "reg.example", "[64:ff9b::5db8:d822]:443", false},
		{"link-local", "reg.corp", "169.254.1.1:443", true},
		{"loopback under another name", "reg.corp", "127.0.0.1:443", true},
		{"no address at all", "reg.corp", "socket", true},
	}
	dialer := New(Config{})
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			if err := dialer.check(test.host, test.resolved); (err != nil) != test.refused {
				t.Errorf("got %v", err)
			}
		})
	}
}
