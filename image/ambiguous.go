package image

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// CheckManifest refuses a manifest or index that a policy and a container runtime read differently:
// one with a repeated key, or with a key that differs from a field's name by case alone. Go's
// decoder, which runtimes use, ignores case, and the last of several keys counts.
func CheckManifest(text []byte) error { return checkKeys(text, manifestFields()) }

// CheckConfig refuses a configuration of an image in the same way.
func CheckConfig(text []byte) error { return checkKeys(text, configFields()) }

// fields are the fields of a JSON object of the OCI Image Specification 1.1, or of the elements of
// a list of them, each with its own fields. nil is any other value, as a map of annotations, in
// which case distinguishes keys.
type fields map[string]fields

func manifestFields() fields {
	descriptor := func() fields {
		return named("mediaType", "artifactType", "digest", "size", "urls", "annotations", "data").
			with("platform", named("architecture", "os", "os.version", "os.features", "variant"))
	}
	return named("schemaVersion", "mediaType", "artifactType", "annotations").
		with("config", descriptor()).with("layers", descriptor()).with("manifests", descriptor()).with("subject", descriptor())
}

func configFields() fields {
	return named("created", "author", "architecture", "variant", "os", "os.version", "os.features").
		with("config", named("User", "ExposedPorts", "Env", "Entrypoint", "Cmd", "Volumes", "WorkingDir", "Labels", "StopSignal",
			"ArgsEscaped", "Shell", "OnBuild", "Hostname", "Domainname").
			with("Healthcheck", named("Test", "Interval", "Timeout", "StartPeriod", "StartInterval", "Retries"))).
		with("rootfs", named("type", "diff_ids")).
		with("history", named("created", "created_by", "author", "comment", "empty_layer"))
}

func named(names ...string) fields {
	f := fields{}
	for _, name := range names {
		f[name] = nil
	}
	return f
}

func (f fields) with(name string, of fields) fields {
	f[name] = of
	return f
}

func checkKeys(text []byte, f fields) error {
	decoder := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowInvalidUTF8(true))
	if err := f.check(decoder); err != nil {
		return fmt.Errorf("JSON: %w", err)
	}
	if _, err := decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("JSON: more bytes follow the value")
	}
	return nil
}

// check reads one value. The decoder refuses repeated keys.
func (f fields) check(decoder *jsontext.Decoder) error {
	kind := decoder.PeekKind()
	if f == nil || kind != '{' && kind != '[' {
		return decoder.SkipValue()
	}
	if _, err := decoder.ReadToken(); err != nil {
		return err
	}
	for decoder.PeekKind() != '}' && decoder.PeekKind() != ']' {
		of := f
		if kind == '{' {
			token, err := decoder.ReadToken()
			if err != nil {
				return err
			}
			of, err = f.of(token.String())
			if err != nil {
				return err
			}
		}
		if err := of.check(decoder); err != nil {
			return err
		}
	}
	_, err := decoder.ReadToken()
	return err
}

// of returns the fields of a member.
func (f fields) of(key string) (fields, error) {
	of, known := f[key]
	if known {
		return of, nil
	}
	for name := range f {
		if strings.EqualFold(name, key) {
			return nil, fmt.Errorf("key %q: container runtimes read it as %q; write it so", shorten(key), name)
		}
	}
	return nil, nil
}
