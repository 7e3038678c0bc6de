package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/quaymaster/quaymaster/gate"
)

// JSON writes outcomes as an indented List, described in docs/record.md. The values are
// unchanged; terminal control characters are written as JSON escapes.
func JSON(w io.Writer, outcomes []gate.Outcome) error {
	return NewList(outcomes).Write(w)
}

// Write writes the list as JSON.
func (l List) Write(w io.Writer) error { return writeJSON(w, "verdicts", l) }

// writeJSON writes an indented document that is safe for a terminal.
func writeJSON(w io.Writer, what string, document any) error {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(document); err != nil {
		return fmt.Errorf("write %s as JSON: %w", what, err)
	}
	if _, err := w.Write(escapeJSON(buffer.Bytes())); err != nil {
		return fmt.Errorf("write %s as JSON: %w", what, err)
	}
	return nil
}

// escapeJSON replaces characters of a JSON document that are not plain by \u escapes. They occur
// only in its strings, and the encoder has already escaped the ASCII ones.
func escapeJSON(document []byte) []byte {
	out := make([]byte, 0, len(document))
	for len(document) > 0 {
		r, size := utf8.DecodeRune(document)
		switch {
		case r == '\n' || isPlain(r):
			out = append(out, document[:size]...)
		case r < 0x10000:
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		}
		document = document[size:]
	}
	return out
}
