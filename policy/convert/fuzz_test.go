package convert_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy/convert"
	"github.com/quaymaster/quaymaster/policy/convert/internal/converttest"
)

// FuzzConvert hands foreign bytes to each reader: it never panics, returns the same for
// the same bytes, and writes either policies or a refusal, not both.
func FuzzConvert(f *testing.F) {
	files, err := filepath.Glob("*/testdata/*")
	if err != nil || len(files) < len(convert.Formats()) {
		f.Fatalf("%d files for %d formats: %v", len(files), len(convert.Formats()), err)
	}
	for _, file := range files {
		for i, format := range convert.Formats() {
			if strings.HasPrefix(filepath.Base(file), string(format)) {
				f.Add(uint8(i+1), testkit.Must(converttest.Read(file))(f))
			}
		}
	}
	for _, text := range sources() {
		f.Add(uint8(0), []byte(text))
	}
	f.Fuzz(func(t *testing.T, from uint8, text []byte) {
		options := converttest.Options()
		if formats := convert.Formats(); from > 0 {
			options.From = formats[int(from-1)%len(formats)]
		}
		out, err := convert.Convert(text, options)
		again, second := convert.Convert(text, options)
		if !bytes.Equal(out, again) || (err == nil) != (second == nil) {
			t.Fatalf("not stable: %v and %v", err, second)
		}
		if err != nil {
			if len(out) > 0 || err.Error() != second.Error() {
				t.Fatalf("%d bytes beside the error %v, then %v", len(out), err, second)
			}
			return
		}
		if _, err := converttest.Policies(string(text), options); err != nil {
			t.Fatal(err)
		}
	})
}
