package jp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/output"
	"github.com/quaymaster/quaymaster/internal/spelling"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath/signature"
)

func functionsCommand(t command.Terminal) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "functions [NAME...]",
		Short: "List the functions, their arguments and an example",
		Long: `Functions lists the functions of JMESPath and those that Kyverno adds, with the kinds
of their arguments and a call that can be evaluated with quaymaster jp query.

Exit status: 0, or 2 if there is no such function.`,
		Example: `  quaymaster jp functions
  quaymaster jp functions add time_add
  quaymaster jp functions -o json`,
		RunE: func(_ *cobra.Command, names []string) error {
			if err := output.CheckDocument(format); err != nil {
				return err
			}
			engine, err := newEngine()
			if err != nil {
				return err
			}
			list, err := choose(signature.Functions(), names)
			if err != nil {
				return err
			}
			if format != output.Text {
				return output.WriteDocument(t.Out, format, list)
			}
			for _, f := range list {
				fmt.Fprintf(t.Out, "%s\n  %s\n", spelled(f), example(engine, f))
			}
			return nil
		},
	}
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return namesOf(signature.Functions()), cobra.ShellCompDirectiveNoFileComp
	}
	output.RegisterDocument(cmd, "output", &format)
	return cmd
}

// choose returns the named functions; all of them without names.
func choose(all []signature.Function, names []string) ([]signature.Function, error) {
	if len(names) == 0 {
		return all, nil
	}
	var list []signature.Function
	for _, name := range names {
		i := slices.IndexFunc(all, func(f signature.Function) bool { return f.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no function %q%s", name, spelling.DidYouMean(spelling.Similar(name, namesOf(all))))
		}
		list = append(list, all[i])
	}
	return list, nil
}

func namesOf(all []signature.Function) []string {
	var names []string
	for _, f := range all {
		names = append(names, f.Name)
	}
	return names
}

// spelled returns a signature such as add(any value, any value).
func spelled(f signature.Function) string {
	more := ""
	if f.Variadic {
		more = ", ..."
	}
	return f.Name + "(" + strings.Join(f.Arguments, ", ") + more + ")"
}

// example returns the call of an example, with its value.
func example(engine *jmespath.Engine, f signature.Function) string {
	query, err := engine.Compile(f.Example)
	if err != nil {
		return f.Example
	}
	value, err := query.Search(map[string]any{})
	if err != nil || value == nil { // of data that is not here
		return f.Example
	}
	text, err := json.Marshal(value)
	if err != nil {
		return f.Example
	}
	return f.Example + " = " + string(text)
}
