package verify

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/output"
	"github.com/quaymaster/quaymaster/internal/spelling"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/hint"
	"github.com/quaymaster/quaymaster/report"
)

// explained is the JSON of explain --code.
type explained struct {
	Code string `json:"code"`
	// Next is the recommended next step; empty for a code in favour of an image.
	Next string `json:"next,omitempty"`
	// Page is the address of the code's documentation.
	Page string `json:"page"`
}

// explainCode prints what to do about a reason code. Other flags would have no effect.
func explainCode(cmd *cobra.Command, t command.Terminal, code, format string, images []string) error {
	others := len(images) > 0
	cmd.Flags().Visit(func(f *pflag.Flag) { others = others || f.Name != "code" && f.Name != "output" && f.Name != "config" })
	if others {
		return errors.New("--code explains a reason code alone: give no images and no flags but -o")
	}
	if !slices.Contains(hint.Codes(), code) {
		return fmt.Errorf("--code %s: there is no such reason code%s", code, spelling.DidYouMean(spelling.Similar(code, hint.Codes())))
	}
	found := explained{Code: code, Next: hint.Of(code), Page: report.CodePage(policy.Code(code))}
	if format != output.Text {
		return output.WriteDocument(t.Out, format, found)
	}
	_, err := fmt.Fprintf(t.Out, "%s\n  next: %s\n  see: %s\n", code, cmp.Or(found.Next, "no action needed"), found.Page)
	return err
}
