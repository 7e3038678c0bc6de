package sigstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/quaymaster/quaymaster/policy/dialect/sigstore/clusterimagepolicy"
	scripts "github.com/quaymaster/quaymaster/policy/dialect/sigstore/internal/script"
	"github.com/quaymaster/quaymaster/policy/internal/field"
)

// Fetcher reads policies at an address.
type Fetcher interface {
	// Fetch returns the document at an https address. Its SHA-256, sum, is given in lower-case
	// hexadecimal as a cache key; the caller compares it, too. It is called within requests
	// until it succeeds, and the document is then kept, since no other document has that sum.
	// An error means that the policy cannot be evaluated yet.
	Fetch(ctx context.Context, url, sum string) ([]byte, error)
}

// script is a policy in CUE or Rego: in the document, in a ConfigMap or at an
// address. The zero script is none.
type script struct {
	// path is its field; language is empty for none.
	path, language string
	// text is the policy's text; empty where it is elsewhere.
	text string
	// condition is compiled from text; nil for an external policy.
	condition *scripts.Condition
	// configMap and remote are the location of an external policy; at most one is set.
	configMap *clusterimagepolicy.ConfigMapRef
	remote    *clusterimagepolicy.RemotePolicy
	scriptInput
}

// scriptInput describes a policy's input: its members, and the absent ones.
type scriptInput struct {
	members, absent []string
	names           map[string][]string // below members, by path
	// why is the reason for the absent members.
	why string
}

// script reads the four fields that policies of both levels have.
func (c *Compiler) script(doc clusterimagepolicy.Policy, path string, data scriptInput) (script, error) {
	s := script{path: path, language: doc.Type, text: doc.Data, scriptInput: data}
	if doc.Type != "cue" && doc.Type != "rego" {
		return s, field.Fail(path+".type", "unknown type %q: want cue or rego", doc.Type)
	}
	if doc.URL != "" {
		return s, field.Fail(path+".url", "is the form of earlier versions, without a checksum: write remote, with url and sha256sum")
	}
	ways := 0
	for _, is := range []bool{doc.Data != "", doc.Remote != nil, doc.ConfigMapRef != nil} {
		if is {
			ways++
		}
	}
	switch {
	case ways != 1:
		return s, field.Fail(path, "want one of data, remote and configMapRef, found %d", ways)
	case doc.ConfigMapRef != nil:
		if doc.ConfigMapRef.Name == "" || doc.ConfigMapRef.Key == "" {
			return s, field.Fail(path+".configMapRef", "want a name and a key")
		}
		ref := *doc.ConfigMapRef
		ref.Namespace = cmp.Or(ref.Namespace, c.options.Namespace)
		s.configMap = &ref
		return s, nil
	case doc.Remote != nil:
		remote, err := c.remote(*doc.Remote, path+".remote")
		s.remote = remote
		return s, err
	}
	var err error
	s.condition, err = c.compileScript(&s, s.text)
	return s, field.Below(path+".data", err)
}

// remote checks an address. The sum is required: without it, the server at the address
// would control the policy.
func (c *Compiler) remote(doc clusterimagepolicy.RemotePolicy, path string) (*clusterimagepolicy.RemotePolicy, error) {
	doc.Sha256sum = strings.ToLower(doc.Sha256sum)
	sum, err := hex.DecodeString(doc.Sha256sum)
	switch {
	case !strings.HasPrefix(doc.URL, "https://"):
		return nil, field.Fail(path+".url", "%q: want https://host/path", doc.URL)
	case err != nil || len(sum) != sha256.Size:
		return nil, field.Fail(path+".sha256sum", "%q: want the 64 hexadecimal digits that sha256sum prints", doc.Sha256sum)
	case c.options.Fetcher == nil:
		return nil, field.Fail(path, "policies are not fetched from the network here: write it into data or a ConfigMap")
	}
	if err := field.URL(doc.URL, path+".url"); err != nil {
		return nil, err
	}
	return &doc, nil
}

// compileScript compiles a text for a script.
func (c *Compiler) compileScript(s *script, text string) (*scripts.Condition, error) {
	return scripts.Compile(text, scripts.Options{
		CUE: s.language == "cue", Members: s.members, Absent: s.absent, AbsentWhy: s.why, Names: s.names, Now: c.options.Now,
	})
}

// elsewhere reports whether the text is not in the document.
func (s *script) elsewhere() bool { return s.configMap != nil || s.remote != nil }

// place is the location of the text.
func (s *script) place() string {
	switch {
	case s.configMap != nil:
		return fmt.Sprintf("ConfigMap %s/%s, key %s", s.configMap.Namespace, s.configMap.Name, s.configMap.Key)
	case s.remote != nil:
		return s.remote.URL + ", SHA-256 " + s.remote.Sha256sum
	}
	return "the document"
}

// same reports whether two scripts have the same language and text.
func (s *script) same(other *script) bool {
	return s.language == other.language && s.text == other.text && s.elsewhere() == other.elsewhere() &&
		(!s.elsewhere() || s.place() == other.place())
}

// now returns the condition with the current external text.
func (s *script) now(c *Compiler, external map[string]string) (*scripts.Condition, error) {
	condition := s.condition
	if s.elsewhere() {
		var err error
		condition, err = c.compileScript(s, external[s.place()])
		if err != nil {
			return nil, fmt.Errorf("the policy in %s: %w", s.place(), err)
		}
	}
	return condition, nil
}

// read returns the current external text.
func (c *Compiler) read(ctx context.Context, s *script) (string, error) {
	text, err := c.readText(ctx, s)
	if err != nil {
		return "", fmt.Errorf("%s: the policy in %s: %w", strings.TrimPrefix(s.path, "spec."), s.place(), err)
	}
	return text, nil
}

func (c *Compiler) readText(ctx context.Context, s *script) (string, error) {
	if s.remote != nil {
		text, err := c.options.Fetcher.Fetch(ctx, s.remote.URL, s.remote.Sha256sum)
		if err != nil {
			return "", err
		}
		if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != s.remote.Sha256sum {
			return "", fmt.Errorf("what stands there has the SHA-256 %x", sum)
		}
		return string(text), nil
	}
	if c.options.Lookup == nil {
		return "", errors.New("there is no cluster to look it up in")
	}
	object, err := c.options.Lookup.ConfigMap(ctx, s.configMap.Namespace, s.configMap.Name)
	if err != nil {
		return "", err
	}
	data, _ := object["data"].(map[string]any)
	text, ok := data[s.configMap.Key].(string)
	if !ok {
		return "", errors.New("there is no such key")
	}
	return text, nil
}
