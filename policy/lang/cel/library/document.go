package library

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/internal/limit"
)

// documentFunctions are those of the variables json and yaml.
func documentFunctions() []cel.EnvOption {
	jsonType, yamlType := JSON().is, YAML().is
	return []cel.EnvOption{
		cel.Variable("json", jsonType),
		cel.Variable("yaml", yamlType),
		member("unmarshal", "unmarshal_string_dyn", []*cel.Type{jsonType, cel.DynType}, cel.DynType, second(unmarshalJSON)),
		member("marshal", "marshal_dyn_string", []*cel.Type{jsonType, cel.DynType}, cel.StringType,
			cel.BinaryBinding(func(_, value ref.Val) ref.Val { return valueOr(marshalJSON(value)) })),
		member("parse", "parse_string_dyn", []*cel.Type{yamlType, cel.StringType}, cel.DynType, second(parseYAML)),
	}
}

// second binds a function of a receiver that matters not, and a text.
func second(of func(string) (ref.Val, error)) cel.OverloadOpt {
	return cel.BinaryBinding(func(_, argument ref.Val) ref.Val {
		s, ok := argument.(types.String)
		if !ok {
			return types.MaybeNoSuchOverloadErr(argument)
		}
		return valueOr(of(string(s)))
	})
}

func checkDocument(text string) error {
	if len(text) > maxDocument {
		return &limit.ExceededError{What: "the document", Most: maxDocument}
	}
	return nil
}

func unmarshalJSON(text string) (ref.Val, error) {
	if err := checkDocument(text); err != nil {
		return nil, err
	}
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return nil, err
	}
	return types.DefaultTypeAdapter.NativeToValue(value), nil
}

func marshalJSON(value ref.Val) (ref.Val, error) {
	native, err := Native(value)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(native)
	if err != nil {
		return nil, err
	}
	if len(text) > maxText {
		return nil, &limit.ExceededError{What: "the JSON", Most: maxText}
	}
	return types.String(text), nil
}

func parseYAML(text string) (ref.Val, error) {
	if err := checkDocument(text); err != nil {
		return nil, err
	}
	if err := checkAliases(text); err != nil {
		return nil, err
	}
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		return nil, err
	}
	return types.DefaultTypeAdapter.NativeToValue(value), nil
}

func gzipFunctions() []cel.EnvOption {
	return append(
		function("decompress_bytes_string", []*cel.Type{cel.BytesType}, cel.StringType, cel.UnaryBinding(decompress), "gzip.decompress"),
		function("compress_any_bytes", []*cel.Type{cel.DynType}, cel.BytesType, text(compress), "gzip.compress")...,
	)
}

func decompress(packed ref.Val) ref.Val {
	b, ok := packed.(types.Bytes)
	if !ok {
		return types.MaybeNoSuchOverloadErr(packed)
	}
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return types.WrapErr(fmt.Errorf("gzip.decompress: %w", err))
	}
	plain, err := limit.ReadAll(r, maxText, "the decompressed text")
	if err != nil {
		return types.WrapErr(fmt.Errorf("gzip.decompress: %w", err))
	}
	return types.String(plain)
}

// compress writes no time, so that the same text gives the same bytes.
func compress(text string) (ref.Val, error) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	w.ModTime = time.Unix(0, 0)
	if _, err := w.Write([]byte(text)); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return types.Bytes(packed.Bytes()), nil
}
