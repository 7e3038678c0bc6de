package verify_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/verify"
)

// TestExpressionBounds: a policy's author with few rights cannot fill the memory by a short expression.
func TestExpressionBounds(t *testing.T) {
	for _, row := range []struct {
		reason, pattern, wrong string
	}{
		{"as long as may be", strings.Repeat("a", 4096), ""},
		{"longer", strings.Repeat("a", 4097), "4097 bytes, more than the bound of 4096"},
		{"as large as may be for its length", "a{364}", ""},
		{"larger", "a{365}", "some 1098 instructions, more than the bound of 1096"},
		{"as large as may be for the longest", strings.Repeat("b", 3990) + "a{999}a{999}", ""},
		{"larger", strings.Repeat("b", 4000) + "a{999}a{999}", "some 10002 instructions, more than the bound of 10000"},
		{"large by nesting", "((a{10}){10}){10}", "more than the bound"},
		{"large by alternatives", "(a|b|c|d|e|f|gh{90}){11}", "more than the bound"},
		{"large by classes", strings.Repeat(`\pL`, 20), "more than the bound"},
		{"of a few classes", `\pL+@\pL+`, ""},
		{"usual repetitions", `https://github\.com/[\w.-]{1,39}/[\w.-]{1,100}/\.github/workflows/.+@refs/tags/v\d{1,4}(\.\d{1,4}){2}|[0-9a-f]{40}`, ""},
		{"beyond what the parser takes", "a{1001}", "invalid repeat count"},
	} {
		_, err := verify.Expression(row.pattern)
		if (err == nil) != (row.wrong == "") || err != nil && !strings.Contains(err.Error(), row.wrong) {
			t.Errorf("%s: got %v, want %q", row.reason, err, row.wrong)
		}
	}
}

// TestWildcardIsNotCompiled: a long pattern takes no more memory than its text.
func TestWildcardIsNotCompiled(t *testing.T) {
	m := verify.Wildcard(strings.Repeat("*a?", 1<<20))
	if m.Size() > 4<<20 || m.Match("ba") || !m.Match(strings.Repeat("ab", 1<<20)) || m.Match(strings.Repeat("ab", 1<<20-1)) {
		t.Errorf("size %d, or a wrong match", m.Size())
	}
}

// TestSizeCountsAll: all parts that a policy may repeat or make long are in the size, which is at least the memory.
func TestSizeCountsAll(t *testing.T) {
	long := strings.Repeat("x", 1<<10)
	subject := verify.Identity{Issuer: verify.Exactly("i"), Subject: verify.Exactly("s")}
	base := func() verify.Authority {
		return verify.Authority{Keyless: &verify.Keyless{Identities: []verify.Identity{subject}}}
	}
	for _, row := range []struct {
		reason string
		add    func(a *verify.Authority)
	}{
		{"an annotation's name", func(a *verify.Authority) { a.Annotations = map[string]string{long: ""} }},
		{"an annotation's value", func(a *verify.Authority) { a.Annotations = map[string]string{"a": long} }},
		{"an issuer", func(a *verify.Authority) { a.Keyless.Identities[0].Issuer = verify.Exactly(long) }},
		{"a subject", func(a *verify.Authority) { a.Keyless.Identities[0].Subject = verify.Exactly(long) }},
		{"a pattern", func(a *verify.Authority) { a.Keyless.Identities[0].Subject = verify.Wildcard(long + "*") }},
		{"a program", func(a *verify.Authority) { a.Keyless.Identities[0].Subject = expression(t, "a{300}") }},
		{"identities", func(a *verify.Authority) { a.Keyless.Identities = make([]verify.Identity, 100) }},
		{"an extension", func(a *verify.Authority) { a.Keyless.Extensions = []verify.Extension{{Value: verify.Exactly(long)}} }},
		{"an extension's name", func(a *verify.Authority) { a.Keyless.Extensions = []verify.Extension{{Name: long}} }},
		{"a retired key", func(a *verify.Authority) { a.Retired = map[string]time.Time{long: {}} }},
		{"an identity of notation", func(a *verify.Authority) { a.Keyless, a.Notation = nil, &verify.Notation{Identities: []string{long}} }},
	} {
		a := base()
		row.add(&a)
		if a.Size() < 1<<10 || a.Size() < base().Size()+900 && a.Keyless != nil {
			t.Errorf("%s: size %d, and %d without it", row.reason, a.Size(), base().Size())
		}
	}

	const count = 20
	var before, after runtime.MemStats
	authorities := make([]verify.Authority, count)
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range authorities {
		m := expression(t, fmt.Sprint(i)+strings.Repeat("b", 900)+strings.Repeat("a{1000}", 3))
		authorities[i] = verify.Authority{Keyless: &verify.Keyless{Identities: []verify.Identity{{Issuer: verify.Exactly("x"), Subject: m}}}}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if used := int(after.HeapAlloc-before.HeapAlloc) / count; authorities[0].Size() < used || used > 1<<20 {
		t.Errorf("size %d, and the heap has %d bytes for each", authorities[0].Size(), used)
	}
	runtime.KeepAlive(authorities)
}
