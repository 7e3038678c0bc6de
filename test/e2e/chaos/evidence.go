package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/report/decisionlog"
	"github.com/quaymaster/quaymaster/test/e2e/chaos/checker"
	"github.com/quaymaster/quaymaster/test/e2e/chaos/footprint"
	"github.com/quaymaster/quaymaster/test/e2e/process"
)

// Where the public key of the decision logs is, in the gateways' Secret.
const ownNamespace, ownSecret, publicEntry = "quaymaster", "quaymaster-certificate", "decision-log.pub"

// findings compares the answers with the images, the stored pods with both, and both decision
// logs with all of that.
func (s *stand) findings(ctx context.Context, out io.Writer) ([]checker.Finding, error) {
	answers, signed := s.record.All(), map[string]bool{}
	for _, p := range s.ports {
		p.AddSigned(signed)
	}
	all := checker.Answers(answers, s.windows)
	pods, err := s.stored(ctx)
	if err != nil {
		return nil, err
	}
	all = append(all, checker.Stored(pods, answers, signed)...)
	recorded, more, err := s.recorded(ctx, out)
	if err != nil {
		return nil, err
	}
	all = append(all, more...)
	fmt.Fprintf(out, "%d pods were wanted and answered about, %d decisions are in the logs, %d pods are left.\n", len(answers), len(recorded), len(pods))
	return append(all, checker.Replay(answers, recorded)...), nil
}

// stored lists the pods of all namespaces of the load.
func (s *stand) stored(ctx context.Context) (pods []checker.Pod, err error) {
	list, err := s.client.CoreV1().Pods(meta.NamespaceAll).List(ctx, meta.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, p := range list.Items {
		if strings.HasPrefix(p.Namespace, prefix) {
			for _, c := range p.Spec.Containers {
				pods = append(pods, checker.Pod{Namespace: p.Namespace, Name: p.Name, Image: c.Image})
			}
		}
	}
	return pods, nil
}

// clear deletes the pods of the load.
func (s *stand) clear(ctx context.Context) error {
	now := new(int64)
	for i := range namespaces {
		if err := s.client.CoreV1().Pods(fmt.Sprint(prefix, i)).DeleteCollection(ctx, meta.DeleteOptions{GracePeriodSeconds: now}, meta.ListOptions{}); err != nil {
			return err
		}
	}
	return process.Eventually(ctx, func(ctx context.Context) error {
		pods, err := s.stored(ctx)
		if err == nil && len(pods) > 0 {
			err = fmt.Errorf("%d pods are left", len(pods))
		}
		return err
	})
}

// recorded ends the gateways, verifies their logs by the command line, and returns the
// decisions. A log that reports lost lines is no finding where its disk was full: no request
// was answered then, which Replay sees.
func (s *stand) recorded(ctx context.Context, out io.Writer) (all []decisionlog.Decision, findings []checker.Finding, err error) {
	secret, err := s.client.CoreV1().Secrets(ownNamespace).Get(ctx, ownSecret, meta.GetOptions{})
	if err != nil {
		return nil, nil, err
	}
	key := filepath.Join(s.folder, publicEntry)
	if err := os.WriteFile(key, secret.Data[publicEntry], 0o600); err != nil {
		return nil, nil, err
	}
	full := slices.ContainsFunc(s.windows, func(w checker.Window) bool { return w.Fault == faultDisk })
	for i, r := range s.replicas {
		stopping, cancel := context.WithTimeout(ctx, openTimeout)
		err := r.now().Stop(stopping)
		cancel()
		if err != nil {
			return nil, nil, err
		}
		said, err := s.verified(ctx, key, r.log)
		if err != nil {
			return nil, nil, err
		}
		fmt.Fprintf(out, "log of replica %d: the chain holds; %d lines, %d decisions, %d checkpoints, %d lost, %d notes\n",
			i, said.Lines, said.Decisions, said.Checkpoints, said.Lost, len(said.Notes))
		if said.Lost > 0 && !full || !said.Closed || said.Checkpoints == 0 {
			findings = append(findings, checker.Finding{Kind: checker.LostRecord, What: fmt.Sprintf("replica %d: %+v", i, said)})
		}
		for line, err := range decisionlog.Read(r.log, 1) {
			if err != nil {
				return nil, nil, err
			}
			if line.Decision != nil {
				all = append(all, *line.Decision)
			}
		}
	}
	return all, findings, nil
}

// verified asks the program about a log.
func (s *stand) verified(ctx context.Context, key, folder string) (decisionlog.Summary, error) {
	var said struct {
		Summary decisionlog.Summary `json:"summary"`
	}
	text, err := exec.CommandContext(ctx, s.program, "log", "verify", "--json", "--key", key, folder).Output()
	if err != nil {
		return said.Summary, fmt.Errorf("%s: the decision log does not hold: %w\n%s", filepath.Base(folder), err, text)
	}
	return said.Summary, json.Unmarshal(text, &said)
}

// printFaults prints the table of faults, and the gateways' resources before and after.
func (s *stand) printFaults(out io.Writer, before, after []footprint.Reading) {
	head := []string{"fault", "s", "admitted", "denied", "error", "unanswered", "away", "first good, s", "all good, s", "goroutines", "files", "MiB"}
	rows := [][]string{head, append([]string{"before", "", "", "", "", "", "", "", ""}, footprint.Cells(before)...)}
	for _, l := range s.lines {
		row := []string{l.fault, seconds(l.lasted)}
		for _, said := range []checker.Outcome{checker.Admitted, checker.Denied, checker.Error, checker.Unanswered, checker.Away} {
			row = append(row, fmt.Sprint(l.counts[said]))
		}
		rows = append(rows, append(append(row, seconds(l.first), seconds(l.all)), footprint.Cells(l.after)...))
	}
	rows = append(rows, append([]string{"in the end", "", "", "", "", "", "", "", ""}, footprint.Cells(after)...))
	footprint.Table(out, rows)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f", d.Seconds()) }
