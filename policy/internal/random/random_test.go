package random_test

import (
	"bytes"
	"crypto/sha256"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/internal/random"
)

// stream is the same randomness each time.
type stream struct{ state [32]byte }

func (s *stream) Read(p []byte) (int, error) {
	s.state = sha256.Sum256(s.state[:])
	return copy(p, s.state[:]), nil
}

func TestRandom(t *testing.T) {
	tests := []struct {
		reason, pattern string
		err             string
	}{
		{reason: "the default", pattern: "[0-9a-z]{8}"},
		{reason: "a literal", pattern: "abc"},
		{reason: "a choice", pattern: "a|bc|d"},
		{reason: "groups and repetitions", pattern: "(ab?){2,5}c+d*"},
		{reason: "anything", pattern: ".{10}"},
		{reason: "not a letter", pattern: "[^a-z]{5}"},
		{reason: "letters of another alphabet", pattern: "[α-ω]{4}"},
		{reason: "anchors", pattern: "^a$"},
		{reason: "no less than", pattern: "a{3,}"},
		{reason: "nothing", pattern: "", err: "0 bytes"},
		{reason: "no pattern", pattern: "(", err: "missing closing"},
		{reason: "what nothing matches", pattern: "[^\\x00-\\x{10FFFF}]", err: "nothing matches"},
		{reason: "too long a pattern", pattern: strings.Repeat("a", 9<<10), err: "bytes"},
		{reason: "too long a text", pattern: strings.Repeat("a{1000}", 5), err: "more than"},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			source := &stream{}
			for range 20 {
				got, err := random.Text(test.pattern, source)
				if (err == nil) != (test.err == "") || (err != nil && !strings.Contains(err.Error(), test.err)) {
					t.Fatalf("error %v, want %q", err, test.err)
				}
				if err == nil && !regexp.MustCompile("^(?:"+test.pattern+")$").MatchString(got) {
					t.Errorf("%q does not match", got)
				}
			}
		})
	}
	if _, err := random.Text("[ab]", bytes.NewReader(nil)); err == nil || !strings.Contains(err.Error(), io.EOF.Error()) {
		t.Errorf("without randomness: %v", err)
	}
	one, _ := random.Text("[a-z]{20}", &stream{})
	other, _ := random.Text("[a-z]{20}", &stream{})
	if one != other {
		t.Error("the same randomness gives different texts")
	}
}
