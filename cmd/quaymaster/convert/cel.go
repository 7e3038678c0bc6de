package convert

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/usage"
	"github.com/quaymaster/quaymaster/policy/convert"
	"github.com/quaymaster/quaymaster/policy/convert/cel"
	"github.com/quaymaster/quaymaster/policy/convert/review"
	"github.com/quaymaster/quaymaster/workload"
)

// celFlags configure the conversion to policies in CEL.
type celFlags struct {
	existing string
	partial  bool
	output   string
	// tested are the objects with which the suites test rules.
	tested map[string]map[string]string
}

func celNames() []string { return []string{"existing-violations", "partial", "output"} }

func (f *celFlags) register(cmd *cobra.Command) {
	keep, drop := string(cel.Keep), string(cel.Drop)
	flags := cmd.Flags()
	flags.StringVar(&f.existing, "existing-violations", keep,
		"`treatment` of updates of objects that violated a rule before, with --to cel: "+keep+" admits them as the source does, "+drop+" denies them")
	usage.Complete(cmd, "existing-violations", keep, drop)
	flags.BoolVar(&f.partial, "partial", false, "convert the rules that can be, with --to cel, and write and report the others as they are")
	flags.StringVar(&f.output, "output", "", "write the policies, and the test suites for them, to a `folder` as they lie in theirs, with --to cel")
}

// convert writes the policies, and with --report the page about them.
func (f *celFlags) convert(ctx context.Context, t command.Terminal, args []string, report checkFlags) error {
	if err := usage.Choice("--existing-violations", f.existing, string(cel.Keep), string(cel.Drop)); err != nil {
		return err
	}
	objects, err := read(t, args)
	if err != nil {
		return err
	}
	var out *tree
	if f.output != "" {
		out, err = newTree(f.output, args)
		if err != nil {
			return err
		}
		f.tested = out.tested()
	}
	result, err := f.result(objects)
	if err != nil {
		return err
	}
	for _, p := range result.Problems {
		if _, err := fmt.Fprintln(t.Err, "not converted:", p.Error()); err != nil {
			return err
		}
	}
	for _, name := range result.Dropped {
		if _, err := fmt.Fprintf(t.Err, "%s: updates of objects that violate are denied now\n", name); err != nil {
			return err
		}
	}
	for _, resource := range result.Guessed {
		if _, err := fmt.Fprintf(t.Err, "%s is the resource of a custom kind by its name: compare it with kubectl api-resources\n", resource); err != nil {
			return err
		}
	}
	if report.isFile() {
		text, err := cel.YAML(result.Policies)
		if err != nil {
			return err
		}
		if err := writeReview(report.format, objects, conversion{text, result}); err != nil {
			return err
		}
	}
	if out != nil {
		return out.convert(ctx, t, result)
	}
	text, err := cel.YAML(slices.Concat(result.Policies, result.Rest))
	if err != nil {
		return err
	}
	_, err = t.Out.Write(text)
	return err
}

// writeReview writes the page about a conversion without a comparison.
func writeReview(name string, source []workload.Object, made conversion) error {
	results, err := resultsOf(made)
	if err != nil {
		return err
	}
	policies, _, err := review.Of(source, results, made.of)
	if err != nil {
		return err
	}
	return writePage(name, policies)
}

// parts converts documents, and returns the problems with the result.
func (f *celFlags) parts(objects []workload.Object) (cel.Result, error) {
	return cel.Convert(objects, cel.Options{ExistingViolations: cel.ExistingViolations(f.existing), Partial: f.partial, Tested: f.tested})
}

// result converts documents. With --partial the result has the rules that were not converted.
func (f *celFlags) result(objects []workload.Object) (cel.Result, error) {
	result, err := f.parts(objects)
	if err == nil && len(result.Problems) > 0 && !f.partial {
		err = &convert.Refusal{Problems: result.Problems}
	}
	return result, err
}
