package builtin_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/internal/builtin"
)

func TestMayBeGenerated(t *testing.T) {
	long := strings.Repeat("a", 60)
	for _, c := range []struct {
		reason, name, from string
		want               bool
	}{
		{"five characters more", "web-x7kd2", "web-", true},
		{"with a vowel", "web-x7ad2", "web-", false},
		{"with a digit that is not used", "web-x7k12", "web-", false},
		{"one less", "web-x7kd", "web-", false},
		{"one more", "web-x7kd22", "web-", false},
		{"the base alone", "web-", "web-", false},
		{"another base", "job-x7kd2", "web-", false},
		{"a base that is cut", long[:58] + "x7kd2", long, true},
		{"a base that is not cut", long + "x7kd2", long, false},
		{"no base", "x7kd2", "", false},
	} {
		if got := builtin.MayBeGenerated(c.name, c.from); got != c.want {
			t.Errorf("%s: %t", c.reason, got)
		}
	}
}
