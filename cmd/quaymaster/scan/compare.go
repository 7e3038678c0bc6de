package scan

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cluster/comparison"
	"github.com/quaymaster/quaymaster/cluster/reports"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/manifest"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/output"
	"github.com/quaymaster/quaymaster/report/compare"
	"github.com/quaymaster/quaymaster/report/decisionlog"
)

// compareFlags compare a gateway's verdicts with those of another engine.
type compareFlags struct {
	compare            bool
	auditLogs, scrapes []string
}

func (f *compareFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.compare, "compare", false, "show differences between the verdicts of a gateway and of another engine")
	flags.StringArrayVar(&f.auditLogs, "audit-log", nil, "API server audit log `file` or -, for --compare; may be repeated")
	flags.StringArrayVar(&f.scrapes, "metrics", nil, "scraped metrics `file` of the API server or Kyverno, or -, for --compare; may be repeated")
}

// given reports whether a flag is set that only applies to --compare.
func (f *compareFlags) given() bool { return len(f.auditLogs)+len(f.scrapes) > 0 }

func (f *scanFlags) checkCompare() error {
	switch {
	case command.Inputs(f.files, f.compare.auditLogs, f.compare.scrapes) > 1:
		return errors.New("standard input can be read once: give - once")
	case f.signer.signer != "" || f.signer.gateway != "" || f.signer.tokenFile != "":
		return errors.New("--compare reads reports and decision logs: --signer, --gateway and --token-file are not for it")
	case f.whatIf():
		return errors.New("--compare asks no policies: it reads what was decided; --policy and keys are not for it")
	case f.outputs.HasOther(output.Text, output.JSON):
		return errors.New("-o: with --compare, want text or json")
	case len(f.files) > 0 && (f.setup.Cluster.Kubeconfig != "" || f.setup.Cluster.Context != ""):
		return errors.New("--kubeconfig and --context are about a cluster, and -f is in place of one")
	}
	return nil
}

// runCompare shows where the verdicts differ.
func (f *scanFlags) runCompare(ctx context.Context, t command.Terminal) error {
	if err := f.checkCompare(); err != nil {
		return err
	}
	files, err := f.outputs.Open(t)
	if err != nil {
		return err
	}
	found, err := f.compared(ctx, t)
	if err != nil {
		found = &compared{Verdicts: output.Verdicts{Failure: err}}
	}
	found.all = f.all
	err = writeAll(t, files, found, found.Failure)
	if err != nil {
		return err
	}
	return found.exit()
}

// compared reads both sides.
func (f *scanFlags) compared(ctx context.Context, t command.Terminal) (*compared, error) {
	into := compare.New()
	found := &compared{}
	if err := f.readBeside(t, into); err != nil {
		return nil, err
	}
	var err error
	if len(f.files) > 0 {
		err = f.readObjects(t, into)
	} else {
		found.untold, err = f.readCluster(ctx, t, into)
	}
	if err != nil {
		return nil, err
	}
	found.comparison = into.Compare(time.Now())
	return found, nil
}

// readCluster reads a cluster. A decision log may take the place of its reports.
func (f *scanFlags) readCluster(ctx context.Context, t command.Terminal, into *compare.Collector) (notRead []string, err error) {
	client, err := f.client(t)
	if err != nil {
		return nil, err
	}
	notRead, err = comparison.Read(ctx, client, into)
	switch {
	case errors.Is(err, reports.ErrNone) && len(f.signer.decisionLogs) == 0:
		return nil, roundError{fmt.Errorf("%w: where is what was decided? name a decision log with --decision-log", err)}
	case err != nil && !errors.Is(err, reports.ErrNone):
		return nil, roundError{err}
	}
	return notRead, nil
}

// readBeside reads files: decision logs, audit logs, scrapes.
func (f *scanFlags) readBeside(t command.Terminal, into *compare.Collector) error {
	for _, name := range f.signer.decisionLogs {
		if err := readDecisions(name, into); err != nil {
			return roundError{fmt.Errorf("--decision-log %s: %w", name, err)}
		}
	}
	for _, name := range f.compare.auditLogs {
		if err := readLines(t, name, into.Audit); err != nil {
			return roundError{fmt.Errorf("--audit-log %s: %w", name, err)}
		}
	}
	for _, name := range f.compare.scrapes {
		if err := readLines(t, name, into.Metrics); err != nil {
			return roundError{fmt.Errorf("--metrics %s: %w", name, err)}
		}
	}
	return nil
}

// readObjects reads files in place of a cluster.
func (f *scanFlags) readObjects(t command.Terminal, into *compare.Collector) error {
	for _, name := range f.files {
		objects, err := manifest.Read(name, t.In)
		if err != nil {
			return roundError{fmt.Errorf("-f %s: %w", name, err)}
		}
		for _, object := range objects {
			text, err := json.Marshal(object.Content())
			if err != nil {
				return err
			}
			_ = into.Object(text) // it is counted
		}
	}
	return nil
}

// readLines opens a file, which may be compressed, or standard input.
func readLines(t command.Terminal, name string, read func(io.Reader) error) error {
	if name == "-" {
		return read(t.In)
	}
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	if !strings.HasSuffix(name, ".gz") {
		return read(file)
	}
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	return read(unpacked)
}

// readDecisions reads a file of lines, a replica's folder, or a folder of several replicas'
// folders. Of each log the latest lines count.
func readDecisions(name string, into *compare.Collector) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return readLines(command.Terminal{}, name, into.Log)
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return err
	}
	folders := []string{name}
	for _, entry := range entries {
		if entry.IsDir() {
			folders = append(folders, filepath.Join(name, entry.Name()))
		}
	}
	logs := 0
	for _, folder := range folders {
		segments, err := decisionlog.Segments(folder)
		if err != nil {
			return err
		}
		if len(segments) == 0 {
			continue
		}
		logs++
		if err := readFolder(folder, into); err != nil {
			return err
		}
	}
	if logs == 0 {
		return errors.New("there is no decision log in it")
	}
	return nil
}

// readFolder reads one replica's log. A corrupt line is reported, and ends it.
func readFolder(folder string, into *compare.Collector) error {
	var last uint64
	for line, err := range decisionlog.ReadBack(folder) {
		if err != nil {
			return err
		}
		last = line.Seq
		break
	}
	from := uint64(1)
	if last > decisionlog.MaxLines {
		from = last - decisionlog.MaxLines + 1
	}
	for line, err := range decisionlog.Read(folder, from) {
		if err != nil {
			into.Unread()
			return nil // it is counted, and the comparison continues
		}
		into.Decision(line.Entry)
	}
	return nil
}
