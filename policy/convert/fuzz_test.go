package convert_test

import (
	"bytes"
	"testing"

	"github.com/quaymaster/quaymaster/policy/convert"
)

// FuzzConvert hands foreign bytes to each reader: it never panics, says the same of
// the same bytes, and writes either policies or a refusal, not both.
func FuzzConvert(f *testing.F) {
	for i, format := range convert.Formats() {
		for _, sample := range samples() {
			if sample.format == format {
				f.Add(uint8(i+1), input(f, sample.file))
			}
		}
	}
	for base, rows := range refusals() {
		f.Add(uint8(0), []byte(fill(f, base)))
		f.Add(uint8(0), []byte(fill(f, rows[0].new)))
	}
	f.Fuzz(func(t *testing.T, from uint8, text []byte) {
		options := rooted()
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
		policies(t, string(text), options) // is YAML
	})
}
