package gateway

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/report/decisionlog/journal"
	logsink "github.com/quaymaster/quaymaster/report/decisionlog/sink"
	"github.com/quaymaster/quaymaster/webhook/metrics"
)

// keep prepares the decision log and its sinks.
func (g *assembly) keep(ctx context.Context) error {
	c := g.configuration.DecisionLog
	if !c.IsOn() {
		return nil
	}
	config, err := c.Journal()
	if err != nil {
		return err
	}
	config.Replica, config.Program, config.Log = g.logReplica(), g.options.Version, g.log
	config.Folder = g.decisionFolder()
	if config.Folder == "" {
		config.Stream = os.Stdout
	}
	made, err := journal.New(config)
	if err != nil {
		return err
	}
	g.decisions = made
	g.sinks.Every = append(g.sinks.Every, made)
	g.group.Require("decisionlog", "the decision log is not open yet", made)
	g.group.Add("decision log", gateway.Func(g.writeDecisions))
	followers, err := g.followers(ctx, config.Folder)
	if err != nil {
		return err
	}
	for _, f := range followers {
		g.group.Add("decision log's sink "+f.Name(), gateway.Func(f.Run))
	}
	return g.metrics.WatchDecisionLog(func() metrics.DecisionLog { return decisionLogReadings(made, followers) })
}

// logReplica names the writer of the decision log.
func (g *assembly) logReplica() string { return cmp.Or(g.options.Replica, Replica()) }

// decisionFolder is the folder of this replica's decision log; empty without files.
func (g *assembly) decisionFolder() string {
	folder := g.configuration.DecisionLog.Folder
	if folder == "" || g.cluster == nil {
		return folder
	}
	return filepath.Join(folder, g.logReplica())
}

// writeDecisions writes the log until ctx ends.
func (g *assembly) writeDecisions(ctx context.Context) error {
	if _, ok := g.certificates.Key(ctx); !ok {
		return nil
	}
	key, err := g.checkpointKey(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the gateway ends, and has received no request
		}
		return err
	}
	g.log.Info("the decision log is signed", slog.String("key", key.ID()))
	return g.decisions.Run(ctx, key)
}

// followers are the sinks in addition to the files.
func (g *assembly) followers(ctx context.Context, folder string) ([]*logsink.Follower, error) {
	c := g.configuration.DecisionLog
	if folder == "" {
		return nil, nil // standard output is the log itself
	}
	var made []*logsink.Follower
	add := func(name string, to logsink.Receiver) error {
		f, err := logsink.New(logsink.Config{Name: name, Folder: folder, Log: g.decisions, To: to, Trouble: g.log})
		made = append(made, f)
		return err
	}
	var failed []error
	if c.Stdout {
		failed = append(failed, add("stdout", logsink.Stream{To: os.Stdout}))
	}
	if c.Webhook.URL != "" {
		to, err := newDecisionWebhook(c.Webhook)
		if err != nil {
			return nil, err
		}
		g.group.OnClose(to.Close)
		failed = append(failed, add("webhook", to))
	}
	if c.OTLP.Endpoint != "" {
		trusted, err := tlsOf(c.OTLP.CAFile)
		if err != nil {
			return nil, fmt.Errorf("decisionLog.otlp.caFile: %w", err)
		}
		to, err := logsink.NewCollector(ctx, logsink.CollectorConfig{Endpoint: c.OTLP.Endpoint, TLS: trusted, Version: g.options.Version})
		if err != nil {
			return nil, err
		}
		g.group.OnClose(func() { _ = to.Close(context.WithoutCancel(ctx)) }) // undelivered lines remain in the log
		failed = append(failed, add("otlp", to))
	}
	return made, errors.Join(failed...)
}

func newDecisionWebhook(c config.DecisionWebhook) (*logsink.Webhook, error) {
	trusted, err := tlsOf(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("decisionLog.webhook.caFile: %w", err)
	}
	config := logsink.WebhookConfig{URL: c.URL, TLS: trusted}
	if c.TokenFile != "" {
		config.Token = func() (string, error) {
			text, err := os.ReadFile(c.TokenFile)
			return strings.TrimSpace(string(text)), err
		}
	}
	return logsink.NewWebhook(config)
}

// tlsOf trusts the authorities of a file; nil without one.
func tlsOf(caFile string) (*tls.Config, error) {
	if caFile == "" {
		return nil, nil
	}
	pool, err := poolWith(caFile, false)
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}, err
}

func decisionLogReadings(of *journal.Journal, followers []*logsink.Follower) metrics.DecisionLog {
	s := of.Stats()
	now := metrics.DecisionLog{Written: s.Written, Lost: s.Lost, Failures: s.Failures, Queued: s.Queued, Flushed: s.Flushed, Bytes: s.Bytes}
	for _, f := range followers {
		s := f.Stats()
		now.Sinks = append(now.Sinks, metrics.DecisionLogSink{Name: f.Name(), Delivered: s.Delivered, Dropped: s.Dropped, Failures: s.Failures, Behind: s.Behind})
	}
	return now
}
