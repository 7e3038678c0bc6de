package limit_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/quaymaster/quaymaster/internal/limit"
)

func TestReadAll(t *testing.T) {
	broken := errors.New("broken")
	tests := []struct {
		reason   string
		reader   io.Reader
		most     int64
		want     string
		exceeded bool
		err      error
	}{
		{reason: "below the bound", reader: strings.NewReader("abc"), most: 4, want: "abc"},
		{reason: "at the bound", reader: strings.NewReader("abcd"), most: 4, want: "abcd"},
		{reason: "one byte above it", reader: strings.NewReader("abcde"), most: 4, exceeded: true},
		{reason: "nothing is allowed and nothing is there", reader: strings.NewReader(""), most: 0},
		{reason: "nothing is allowed", reader: strings.NewReader("a"), most: 0, exceeded: true},
		{reason: "the reader breaks", reader: iotest.ErrReader(broken), most: 4, err: broken},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			got, err := limit.ReadAll(test.reader, test.most, "thing")
			_, exceeded := errors.AsType[*limit.ExceededError](err)
			if exceeded != test.exceeded || (!exceeded && !errors.Is(err, test.err)) || string(got) != test.want {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	if _, err := limit.ReadAll(strings.NewReader("a"), -1, "thing"); err == nil {
		t.Error("a negative bound was accepted")
	}
}

func Example() {
	_, err := limit.ReadAll(strings.NewReader("far too much"), 4, "policy")
	fmt.Println(err)
	// Output: policy is larger than 4 bytes
}
