// Package jp is the command quaymaster jp: JMESPath expressions of Kyverno's policies, evaluated outside of a
// policy. It implements JMESPath with the functions of Kyverno 1.19.
package jp

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/output"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/usage"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath/signature"
	"github.com/quaymaster/quaymaster/report"
)

// New is the command with its subcommands.
func New(t command.Terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use: "jp", Short: "Evaluate JMESPath expressions of policies", Args: usage.NoArguments, SuggestFor: []string{"jmespath"},
		Long: `Evaluate and show JMESPath expressions as Kyverno's policies have them, with
Kyverno's functions and the bounds that hold at admission; see docs/expressions.md.

Exit status: that of the subcommand.`,
		Example: `  quaymaster jp query 'spec.containers[].image' -f pod.yaml
  quaymaster jp parse 'a.b || c'
  quaymaster jp functions time_add`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(queryCommand(t), parseCommand(t), functionsCommand(t))
	return cmd
}

func newEngine() (*jmespath.Engine, error) {
	return jmespath.New(jmespath.Options{Now: time.Now, Random: rand.Reader})
}

// compile refuses an expression in the braces of a policy, of which the error would be one about braces.
func compile(expression string) (*jmespath.Query, error) {
	if strings.HasPrefix(strings.TrimSpace(expression), "{{") {
		return nil, errors.New("write the expression without {{ and }}")
	}
	engine, err := newEngine()
	if err != nil {
		return nil, err
	}
	return engine.Compile(expression)
}

func queryCommand(t command.Terminal) *cobra.Command {
	var file, format string
	cmd := &cobra.Command{
		Use:   "query EXPRESSION",
		Short: "Evaluate an expression against a document",
		Long: `Query evaluates an expression against a document, YAML or JSON: an object, or what
a policy sees of a request ({request: {object: ...}}). Without -f the document is
empty. The text of a string is printed as it is; any other value as JSON.

Exit status: 0 if the expression has a value, 3 if it could not be evaluated on
this document, 2 for wrong use.`,
		Example: `  quaymaster jp query 'spec.containers[].image' -f pod.yaml
  kubectl get pod web -o json | quaymaster jp query 'metadata.labels' -f - -o yaml
  quaymaster jp query "time_add('2026-11-01T00:00:00Z', '36h')"`,
		Args: usage.Arguments("an expression", 1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := output.CheckDocument(format); err != nil {
				return err
			}
			query, err := compile(args[0])
			if err != nil {
				return err
			}
			data, err := document(t, file)
			if err != nil {
				return err
			}
			result, err := query.Search(data)
			if err != nil {
				fmt.Fprintf(t.Err, "quaymaster: %s\n", report.Escape(err.Error()))
				return command.Status(command.ExitError)
			}
			return write(t, format, result)
		},
	}
	cmd.Flags().StringVarP(&file, "filename", "f", "", "`file` with the document, or - for standard input")
	usage.CompleteFiles(cmd, "filename", usage.Documents()...)
	output.RegisterDocument(cmd, "output", &format)
	return cmd
}

// document reads the data of an expression; without a file it is an empty object.
func document(t command.Terminal, file string) (any, error) {
	if file == "" {
		return map[string]any{}, nil
	}
	return command.ReadDocument(t, "-f", file)
}

func write(t command.Terminal, format string, result any) error {
	text, isText := result.(string)
	if isText && format == output.Text {
		_, err := fmt.Fprintln(t.Out, report.Escape(text))
		return err
	}
	return output.WriteDocument(t.Out, format, result)
}

func parseCommand(t command.Terminal) *cobra.Command {
	return &cobra.Command{
		Use:   "parse EXPRESSION",
		Short: "Show the syntax tree of an expression",
		Long: `Parse shows the syntax tree of an expression, a node a line below its parent: it
shows what ||, !, pipes and projections apply to.

Exit status: 0 if the expression can be compiled, 2 if not.`,
		Example: `  quaymaster jp parse 'spec.containers[].image'
  quaymaster jp parse '!(a || b) && c'
  quaymaster jp parse 'a | [0]'`,
		Args: usage.Arguments("an expression", 1),
		RunE: func(_ *cobra.Command, args []string) error {
			if _, err := compile(args[0]); err != nil { // also for wrong calls
				return err
			}
			tree, err := signature.Tree(args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(t.Out, tree)
			return err
		},
	}
}
