package signing

import (
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// swap replaces a key by a throw-away key.
type swap struct {
	place int    // of the key, for errors
	block []byte // the content of a PEM block; nil for a text
	// certificate: the block is a certificate, and a bare key in its place would be invalid.
	certificate bool
	text        string
	by          string
	used        bool
}

// replace registers the key that a throw-away key replaces.
func (s *Stage) replace(place int, k Key, by []byte) error {
	if k.Replaces == "" {
		return nil
	}
	path := fmt.Sprintf("keys[%d].replaces", place)
	text := k.Replaces
	if !strings.Contains(text, "-----BEGIN") && !strings.Contains(text, "://") {
		content, err := os.ReadFile(s.file(text))
		if err != nil {
			return fmt.Errorf("%s: want a PEM block, a file with one, or a text with ://: %w", path, err)
		}
		text = string(content)
	}
	one := swap{place: place, text: strings.TrimSpace(text), by: strings.TrimSpace(string(by)) + "\n"}
	if strings.Contains(text, "-----BEGIN") {
		block, rest := pem.Decode([]byte(one.text))
		if block == nil || strings.Contains(string(rest), "-----BEGIN") {
			return fmt.Errorf("%s: want one PEM block", path)
		}
		one.block, one.certificate = block.Bytes, block.Type == "CERTIFICATE"
	}
	for i := range s.swaps { // a key that also signs as notation does replaces a certificate then
		if s.swaps[i].place == place {
			s.swaps[i] = one
			return nil
		}
	}
	s.swaps = append(s.swaps, one)
	return nil
}

// replacesCertificate reports whether the key at an index replaces a certificate.
func (s *Stage) replacesCertificate(place int) bool {
	return slices.ContainsFunc(s.swaps, func(one swap) bool { return one.place == place && one.certificate })
}

// Swap returns a copy of a value with the throw-away keys in place of the keys that they
// replace.
func (s *Stage) Swap(value any) any {
	switch value := value.(type) {
	case string:
		return s.swapText(value)
	case []any:
		list := make([]any, len(value))
		for i, item := range value {
			list[i] = s.Swap(item)
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(value))
		for key, item := range value {
			object[key] = s.Swap(item)
		}
		return object
	}
	return value
}

func (s *Stage) swapText(text string) string {
	for i := range s.swaps {
		one := &s.swaps[i]
		switch {
		case one.block != nil:
			text = one.swapBlocks(text)
		case strings.TrimSpace(text) == one.text:
			text, one.used = one.by, true
		}
	}
	return text
}

// swapBlocks replaces the PEM blocks of a text that have the key's content, in any formatting.
func (w *swap) swapBlocks(text string) string {
	const begin, end = "-----BEGIN ", "-----END "
	var out strings.Builder
	for {
		before, block, found := strings.Cut(text, begin)
		out.WriteString(before)
		if !found {
			return out.String()
		}
		body, after, closed := strings.Cut(block, end)
		line, rest, _ := strings.Cut(after, "\n")
		whole := begin + body + end + line
		if !closed {
			out.WriteString(begin + block)
			return out.String()
		}
		text = rest
		if decoded, _ := pem.Decode([]byte(whole + "\n")); decoded != nil && string(decoded.Bytes) == string(w.block) {
			out.WriteString(w.by)
			w.used = true
			continue
		}
		out.WriteString(whole)
		if rest != "" || strings.HasSuffix(after, "\n") {
			out.WriteByte('\n')
		}
	}
}

// Unused returns an error for keys whose replaced key occurs nowhere.
func (s *Stage) Unused() error {
	var errs []error
	for _, one := range s.swaps {
		if !one.used {
			errs = append(errs, fmt.Errorf("keys[%d].replaces: it stands nowhere in the policies or in what they look up", one.place))
		}
	}
	return errors.Join(errs...)
}
