// Package log is the command quaymaster log: reading and checking of decision logs.
package log

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/output"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/usage"
	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/decisionlog"
)

const (
	// maxAnchors bounds a file of lines that a log must contain, in bytes.
	maxAnchors = 64 << 20
	// maxPublicKeys bounds a file of public keys, in bytes.
	maxPublicKeys = 1 << 20
)

// New is the command with its subcommands.
func New(t command.Terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use: "log", Short: "Read and check decision logs", Args: usage.NoArguments,
		Long: `Read and check the decision logs that the gateway writes
(docs/decision-log.md).

Exit status: that of the subcommand.`,
		Example: `  quaymaster log show /var/log/quaymaster --last 20
  quaymaster log verify /var/log/quaymaster
  quaymaster log verify /var/log/quaymaster --key decision-log.pub`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(logVerifyCommand(t), logShowCommand(t))
	return cmd
}

// logVerification are the flags of log verify.
type logVerification struct {
	keys, anchors []string
	json          bool
	format        string
	found         []verified // for the formats of one document
}

// verified is the result for one log.
type verified struct {
	Log    string              `json:"log"`
	Error  string              `json:"error,omitempty"`
	Result decisionlog.Summary `json:"summary"`
}

// verifiedList is the document of -o json and -o yaml.
type verifiedList struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Items      []verified `json:"items"`
}

func logVerifyCommand(t command.Terminal) *cobra.Command {
	var v logVerification
	cmd := &cobra.Command{
		Use:   "verify FILE|DIR...",
		Short: "Verify the hash chain of a decision log",
		Long: `Check the chain of a decision log: that each line has the hash of the line
before it and the next number, in a file or across the files of a folder, and
that checkpoints are signed with one of the keys. The first broken link is
reported. A folder may be that of one replica, or contain those of several.

Without --key the signatures are not checked, and a complete rewrite of the log
is not detected. The public key is in the gateway's Secret:

  kubectl -n quaymaster get secret quaymaster-certificate \
    -o jsonpath='{.data.decision-log\.pub}' | base64 -d > decision-log.pub

--anchor compares the log with lines stored elsewhere, such as the checkpoints
that a webhook received: the log must contain each of them unchanged. This
detects a truncated log.

Exit status: 0 if every chain is intact, 1 if one is broken, else 3 if one could
not be read; 2 for wrong use.`,
		Example: `  quaymaster log verify /var/log/quaymaster
  quaymaster log verify /var/log/quaymaster --key decision-log.pub
  quaymaster log verify decisions.log --anchor checkpoints.jsonl`,
		Args: usage.Arguments("a decision log", 0),
		RunE: func(_ *cobra.Command, args []string) error { return v.run(t, args) },
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&v.keys, "key", nil, "`FILE` of public keys (PEM) that sign checkpoints; may be repeated")
	flags.StringArrayVar(&v.anchors, "anchor", nil, "`FILE` of lines that the log must contain; may be repeated")
	flags.BoolVar(&v.json, "json", false, "print the summary of each log as a line of JSON, when it is read")
	output.RegisterDocument(cmd, "output", &v.format)
	return cmd
}

func (v *logVerification) run(t command.Terminal, args []string) error {
	if err := output.CheckDocument(v.format); err != nil {
		return err
	}
	if v.json && v.format != output.Text {
		return errors.New("--json and -o contradict each other: give one of them")
	}
	var o decisionlog.VerifyOptions
	for _, name := range v.keys {
		text, err := limit.ReadFile(name, maxPublicKeys, name)
		if err != nil {
			return err
		}
		keys, err := decisionlog.ParsePublicKeys(text)
		if err != nil {
			return fmt.Errorf("--key %s: %w", name, err)
		}
		if o.Keys == nil {
			o.Keys = decisionlog.Keys{}
		}
		maps.Copy(o.Keys, keys)
	}
	for _, name := range v.anchors {
		lines, err := anchors(name)
		if err != nil {
			return err
		}
		o.Anchors = append(o.Anchors, lines...)
	}
	code := command.ExitAllowed
	for _, name := range args {
		logs, err := logsIn(name)
		if err != nil {
			return err
		}
		for _, each := range logs {
			end := output.Wait(t, "reading "+each)
			summary, err := verifyLog(each, o)
			end()
			if found := v.one(t, verified{Log: each, Result: summary}, err, o); code != command.ExitDenied && found != command.ExitAllowed {
				code = found
			}
		}
	}
	if v.format != output.Text {
		if err := output.WriteDocument(t.Out, v.format, verifiedList{APIVersion: report.APIVersion, Kind: "LogVerificationList", Items: v.found}); err != nil {
			return err
		}
	}
	if code != command.ExitAllowed {
		return command.Status(code)
	}
	return nil
}

// one prints the result of one log, or keeps it for the document, and returns the exit status.
func (v *logVerification) one(t command.Terminal, found verified, err error, o decisionlog.VerifyOptions) int {
	if err != nil {
		found.Error = err.Error()
	}
	switch {
	case v.format != output.Text:
		v.found = append(v.found, found)
	case v.json:
		if text, failed := json.Marshal(found); failed == nil {
			fmt.Fprintf(t.Out, "%s\n", text)
		}
	default:
		tellLog(t.Out, found.Log, found.Result, o.Keys != nil, err)
	}
	switch _, broken := errors.AsType[*decisionlog.BrokenError](err); {
	case err == nil:
		return command.ExitAllowed
	case broken:
		return command.ExitDenied
	default:
		if v.json || v.format != output.Text {
			fmt.Fprintf(t.Err, "quaymaster: %s: %v\n", found.Log, err)
		}
		return command.ExitError
	}
}

func verifyLog(name string, o decisionlog.VerifyOptions) (decisionlog.Summary, error) {
	info, err := os.Stat(name)
	if err != nil {
		return decisionlog.Summary{}, err
	}
	if info.IsDir() {
		return decisionlog.Verify(name, o)
	}
	return decisionlog.VerifyFile(name, o)
}

// tellLog prints the result for a person.
func tellLog(out io.Writer, name string, s decisionlog.Summary, signed bool, err error) {
	if err != nil {
		fmt.Fprintf(out, "%s: BROKEN\n  %s\n", name, report.Escape(err.Error()))
		if s.Lines > 0 {
			fmt.Fprintf(out, "  before it, numbers %d to %d are whole (%d decisions, %d checkpoints)\n", s.First, s.Last, s.Decisions, s.Checkpoints)
		}
		return
	}
	fmt.Fprintf(out, "%s: whole\n  numbers %d to %d in %d files, written by %s: %d decisions, %d checkpoints\n",
		name, s.First, s.Last, s.Segments, report.Escape(s.Replica), s.Decisions, s.Checkpoints)
	if s.First > 1 {
		fmt.Fprintf(out, "  it begins at number %d: what was before is not there to be checked", s.First)
		if s.PrunedThrough+1 >= s.First {
			fmt.Fprint(out, ", and the log says that it removed it")
		}
		fmt.Fprintln(out)
	}
	if !signed {
		fmt.Fprintln(out, "  the signatures of checkpoints were not checked: give --key")
	}
	switch {
	case s.Unsigned > 0:
		fmt.Fprintf(out, "  %d lines after the last checkpoint are not signed yet, and more could be missing unnoticed\n", s.Unsigned)
	case !s.Closed:
		fmt.Fprintln(out, "  it ends with a checkpoint that does not close it: it is being written, or lines after it were cut off")
	}
	if s.Lost > 0 {
		fmt.Fprintf(out, "  the log says that %d decisions were lost\n", s.Lost)
	}
	for _, note := range s.Notes {
		fmt.Fprintf(out, "  %s\n", report.Escape(note))
	}
}

// logsIn returns a file, a log's folder, or the folders of logs in it.
func logsIn(name string) ([]string, error) {
	info, err := os.Stat(name)
	if err != nil || !info.IsDir() {
		return []string{name}, err
	}
	segments, err := decisionlog.Segments(name)
	if err != nil || len(segments) > 0 {
		return []string{name}, err
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	var logs []string
	for _, entry := range entries {
		if below := filepath.Join(name, entry.Name()); entry.IsDir() {
			if segments, err := decisionlog.Segments(below); err == nil && len(segments) > 0 {
				logs = append(logs, below)
			}
		}
	}
	if len(logs) == 0 {
		return nil, fmt.Errorf("%s: there is no decision log in it", name)
	}
	return logs, nil
}

// anchors reads the lines that a log must contain.
func anchors(name string) ([][]byte, error) {
	text, err := limit.ReadFile(name, maxAnchors, name)
	if err != nil {
		return nil, err
	}
	var lines [][]byte
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		if len(line) > 0 {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("--anchor %s: there is no line in it", name)
	}
	return lines, nil
}

func logShowCommand(t command.Terminal) *cobra.Command {
	var (
		last int
		from uint64
	)
	cmd := &cobra.Command{
		Use:   "show DIR",
		Short: "Print the lines of a decision log",
		Long: `Print all lines of a decision log, including those in compressed files,
unchanged: JSON, one per line, for jq. The chain is not checked; quaymaster log
verify does that.

Exit status: 0 if the lines were printed, 2 if the log cannot be read.`,
		Example: `  quaymaster log show /var/log/quaymaster
  quaymaster log show /var/log/quaymaster --from 1000
  quaymaster log show /var/log/quaymaster --last 20 |
    jq -r 'select(.decision.result == "deny") | .decision.image.written'`,
		Args: usage.Arguments("a decision log", 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("last") && cmd.Flags().Changed("from") {
				return errors.New("--last and --from contradict each other: give one of them")
			}
			logs, err := logsIn(args[0])
			switch {
			case err != nil:
				return err
			case len(logs) > 1:
				return fmt.Errorf("%s has several logs: name one of %s", args[0], strings.Join(logs, ", "))
			case from == 0:
				return errors.New("--from 0: the first line has number 1")
			}
			if info, err := os.Stat(logs[0]); err == nil && !info.IsDir() {
				return fmt.Errorf("%s is a file: name its folder", logs[0])
			}
			out := bufio.NewWriter(t.Out)
			err = showLog(out, logs[0], from, last)
			return errors.Join(err, out.Flush())
		},
	}
	cmd.Flags().IntVar(&last, "last", 0, "print only the last `N` lines")
	cmd.Flags().Uint64Var(&from, "from", 1, "print from line number `N` on")
	return cmd
}

// maxLast bounds the lines that are buffered to reverse their order.
const maxLast = 100_000

func showLog(out *bufio.Writer, folder string, from uint64, last int) error {
	if last < 0 || last > maxLast {
		return fmt.Errorf("--last: want 1 to %d", maxLast)
	}
	if last == 0 {
		for line, err := range decisionlog.Read(folder, from) {
			if err != nil {
				return err
			}
			_, _ = out.Write(append(line.Raw, '\n')) // Flush returns its error
		}
		return nil
	}
	var kept [][]byte
	for line, err := range decisionlog.ReadBack(folder) {
		if err != nil {
			return err
		}
		kept = append(kept, line.Raw)
		if len(kept) == last {
			break
		}
	}
	for _, raw := range slices.Backward(kept) {
		_, _ = out.Write(append(raw, '\n')) // as above
	}
	return nil
}
