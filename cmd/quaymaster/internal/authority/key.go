package authority

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/redact"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/trust"
)

// StandardInput is the name of a key that is read from standard input.
const StandardInput = "-"

// Elsewhere returns the keys that are in no file and not added yet, each once: URLs, and standard input. Settings that
// no user has typed (those of a node) name none.
func (f *Flags) Elsewhere() []string {
	if f.fetched == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(f.Keys))), func(name string) bool {
		_, read := f.fetched[name]
		return read || name != StandardInput && !isURL(name)
	})
}

// Shown is the name of a key for output: a URL without its secrets, such as those of a presigned one.
func Shown(name string) string {
	if isURL(name) {
		return redact.Text(name)
	}
	return name
}

func isURL(name string) bool {
	lower := strings.ToLower(name)
	return strings.HasPrefix(lower, "https://") || strings.HasPrefix(lower, "http://")
}

// Add adds the text of a key of Elsewhere.
func (f *Flags) Add(name string, text []byte) { f.fetched[name] = text }

// key returns the key of --key.
func (f *Flags) key(name string) (*verify.Key, error) {
	if text, ok := f.fetched[name]; ok {
		return parseKey(name, text, f.digestAlgorithm)
	}
	return ReadKey(name, f.digestAlgorithm)
}

// ReadKey reads a key file; the trust store resolves a KMS URI.
func ReadKey(name, hash string) (*verify.Key, error) {
	switch {
	case trust.IsLookup(name):
		return &verify.Key{Ref: name, Hash: hash}, nil
	case isURL(name), name == StandardInput:
		return nil, fmt.Errorf("--key %s: only quaymaster verify, explain and scan read keys from there: name a file", Shown(name))
	}
	pem, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("--key: %w", err)
	}
	return parseKey(name, pem, hash)
}

func parseKey(name string, pem []byte, hash string) (*verify.Key, error) {
	if _, err := trust.ParsePublicKey(pem, hash); err != nil {
		return nil, fmt.Errorf("--key %s: %w", Shown(name), err)
	}
	return &verify.Key{Ref: string(pem), Hash: hash}, nil
}

// sources are the repositories of evidence; none for the image's own.
func (f *Flags) sources() ([]attest.Source, error) {
	if f.repository == "" {
		return nil, nil
	}
	repository, err := image.ParseRepository(f.repository)
	if err != nil {
		return nil, fmt.Errorf("--signature-repository: %w", err)
	}
	return []attest.Source{{Repository: repository}}, nil
}
