package staging

import (
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// swap puts a throw-away key where another stands.
type swap struct {
	place int    // of the key, for errors
	block []byte // the content of a PEM block; nil for a text
	// certificate: the block is one, and a key in its place would not be read.
	certificate bool
	text        string
	by          string
	used        bool
}

// replace notes what a key stands for.
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
	for i := range s.swaps { // a key that signs as notation does, too, stands for its certificate then
		if s.swaps[i].place == place {
			s.swaps[i] = one
			return nil
		}
	}
	s.swaps = append(s.swaps, one)
	return nil
}

// replacesCertificate reports whether the key at a place stands for a certificate.
func (s *Stage) replacesCertificate(place int) bool {
	return slices.ContainsFunc(s.swaps, func(one swap) bool { return one.place == place && one.certificate })
}

// Swap returns a value with throw-away keys where those stand that they replace. The
// value itself stays as it is.
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

// swapBlocks replaces the PEM blocks of a text that have the content of the key's,
// however they are written.
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

// Unused says which keys were to replace something that stands nowhere.
func (s *Stage) Unused() error {
	var errs []error
	for _, one := range s.swaps {
		if !one.used {
			errs = append(errs, fmt.Errorf("keys[%d].replaces: it stands nowhere in the policies or in what they look up", one.place))
		}
	}
	return errors.Join(errs...)
}
