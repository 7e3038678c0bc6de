package output

import (
	"bytes"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/usage"
)

// YAML is the format of JSON's documents in YAML.
const YAML = "yaml"

// DocumentFormats are the formats of a command whose result is one document.
func DocumentFormats() []string { return []string{Text, JSON, YAML} }

// RegisterDocument registers -o of a command whose result is one document. Kyverno's commands call it
// --output-format.
func RegisterDocument(cmd *cobra.Command, flag string, to *string) {
	cmd.Flags().StringVarP(to, flag, "o", Text, "`format`: text, json or yaml")
	usage.Complete(cmd, flag, DocumentFormats()...)
}

// CheckDocument refuses any other format.
func CheckDocument(format string) error { return usage.Choice("-o", format, DocumentFormats()...) }

// WriteDocument writes a document as JSON, or as YAML if that is the format.
func WriteDocument(w io.Writer, format string, what any) error {
	return WriteAs(w, format, func(w io.Writer) error { return command.WriteJSON(w, what) })
}

// WriteAs writes what a function writes as JSON, as YAML if that is the format.
func WriteAs(w io.Writer, format string, asJSON func(io.Writer) error) error {
	if format != YAML {
		return asJSON(w)
	}
	var text bytes.Buffer
	if err := asJSON(&text); err != nil {
		return err
	}
	converted, err := yaml.JSONToYAML(text.Bytes())
	if err != nil {
		return err
	}
	_, err = w.Write(converted)
	return err
}
