package reporting

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/certpool"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/gateway/certificates"
	"github.com/quaymaster/quaymaster/gateway/reporting"
	"github.com/quaymaster/quaymaster/report/decisionlog"
	"github.com/quaymaster/quaymaster/report/decisionlog/journal"
	logsink "github.com/quaymaster/quaymaster/report/decisionlog/sink"
	"github.com/quaymaster/quaymaster/webhook/metrics"
)

// openDecisionLog prepares the decision log and its sinks.
func (r *Records) openDecisionLog(ctx context.Context) error {
	c := r.options.Configuration.DecisionLog
	if !c.IsOn() {
		return nil
	}
	settings, err := c.Journal()
	if err != nil {
		return err
	}
	settings.Replica, settings.Program, settings.Log = r.options.Writer, r.options.Version, r.options.Log
	settings.Folder = r.DecisionFolder()
	if settings.Folder == "" {
		settings.Stream = os.Stdout
	}
	made, err := journal.New(settings)
	if err != nil {
		return err
	}
	r.Decisions = made
	r.Sinks.Every = append(r.Sinks.Every, made)
	r.options.Group.Require("decisionlog", "the decision log is not open yet", made)
	r.options.Group.Add("decision log", gateway.Func(r.writeDecisions))
	followers, err := r.followers(ctx, settings.Folder)
	if err != nil {
		return err
	}
	for _, f := range followers {
		r.options.Group.Add("decision log's sink "+f.Name(), gateway.Func(f.Run))
	}
	return r.options.Metrics.WatchDecisionLog(func() metrics.DecisionLog { return reporting.DecisionLogReadings(made, followers) })
}

// DecisionFolder is the folder of this replica's decision log; empty without files.
func (r *Records) DecisionFolder() string {
	folder := r.options.Configuration.DecisionLog.Folder
	if folder == "" || r.options.Cluster == nil {
		return folder
	}
	return filepath.Join(folder, r.options.Writer)
}

// writeDecisions writes the log until ctx ends.
func (r *Records) writeDecisions(ctx context.Context) error {
	if _, ok := r.options.Certificates.Key(ctx); !ok {
		return nil
	}
	key, err := r.checkpointKey(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the gateway ends, and has received no request
		}
		return err
	}
	r.options.Log.Info("the decision log is signed", slog.String("key", key.ID()))
	return r.Decisions.Run(ctx, key)
}

// checkpointKey returns the key that signs checkpoints, and creates it if necessary.
func (r *Records) checkpointKey(ctx context.Context) (*decisionlog.Key, error) {
	c := r.options.Configuration
	switch {
	case c.DecisionLog.KeyFile != "":
		return reporting.KeyInFile(c.DecisionLog.KeyFile)
	case r.options.Cluster != nil:
		store := certificates.NewSecretStore(r.options.Cluster.Client.Typed.CoreV1().Secrets(c.Namespace), c.Certificate.Secret)
		return reporting.KeyInStore(ctx, store, "Secret "+c.Namespace+"/"+c.Certificate.Secret, r.options.Log)
	case c.DecisionLog.Folder != "":
		return reporting.KeyInFile(filepath.Join(c.DecisionLog.Folder, "checkpoint.key"))
	}
	return decisionlog.GenerateKey() // of a stream that no process continues
}

// followers are the sinks in addition to the files.
func (r *Records) followers(ctx context.Context, folder string) ([]*logsink.Follower, error) {
	c := r.options.Configuration.DecisionLog
	if folder == "" {
		return nil, nil // standard output is the log itself
	}
	var made []*logsink.Follower
	add := func(name string, to logsink.Receiver) error {
		f, err := logsink.New(logsink.Config{Name: name, Folder: folder, Log: r.Decisions, To: to, Trouble: r.options.Log})
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
		r.options.Group.OnClose(to.Close)
		failed = append(failed, add("webhook", to))
	}
	if c.OTLP.Endpoint != "" {
		trusted, err := tlsOf(c.OTLP.CAFile)
		if err != nil {
			return nil, fmt.Errorf("decisionLog.otlp.caFile: %w", err)
		}
		to, err := logsink.NewCollector(ctx, logsink.CollectorConfig{Endpoint: c.OTLP.Endpoint, TLS: trusted, Version: r.options.Version})
		if err != nil {
			return nil, err
		}
		r.options.Group.OnClose(func() { _ = to.Close(context.WithoutCancel(ctx)) }) // undelivered lines remain in the log
		failed = append(failed, add("otlp", to))
	}
	return made, errors.Join(failed...)
}

func newDecisionWebhook(c config.DecisionWebhook) (*logsink.Webhook, error) {
	trusted, err := tlsOf(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("decisionLog.webhook.caFile: %w", err)
	}
	options := logsink.WebhookConfig{URL: c.URL, TLS: trusted}
	if c.TokenFile != "" {
		options.Token = func() (string, error) {
			text, err := os.ReadFile(c.TokenFile)
			return strings.TrimSpace(string(text)), err
		}
	}
	return logsink.NewWebhook(options)
}

// tlsOf trusts the authorities of a file; nil without one.
func tlsOf(caFile string) (*tls.Config, error) {
	if caFile == "" {
		return nil, nil
	}
	pool, err := certpool.Read(caFile, false)
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}, err
}
