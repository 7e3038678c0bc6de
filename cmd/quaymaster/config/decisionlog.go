package config

import (
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/quaymaster/quaymaster/report/decisionlog/journal"
)

// DecisionLog is the log of every verdict, in lines that cannot be changed undetected
// (docs/decision-log.md). It is off unless there is a folder or stdout.
type DecisionLog struct {
	// Folder of the log. In a cluster each replica writes into a folder of its own name below it.
	// Default: no files are written.
	Folder string `json:"folder,omitempty"`
	// Write the lines to standard output, too; without a folder, only there.
	Stdout bool `json:"stdout,omitempty"`
	// When lines are flushed to disk: interval; always, before an endpoint responds; or never,
	// which leaves it to the operating system. Default interval.
	Fsync string `json:"fsync,omitempty"`
	// The interval. Default 1s.
	FsyncInterval Duration `json:"fsyncInterval,omitempty"`
	// With fsync always, the effect on a request if its lines cannot be flushed within
	// flushTimeout: deny returns only an HTTP error, and the API server applies the webhook's
	// failure policy; continue responds, and counts the lost lines. Default deny.
	OnFailure string `json:"onFailure,omitempty"`
	// Longest wait for the flush in a request. Default 2s.
	FlushTimeout Duration `json:"flushTimeout,omitempty"`
	// Size at which the log continues in another file, as in 64Mi; the previous one is
	// compressed. Default 64Mi.
	FileSize string `json:"fileSize,omitempty"`
	// Age at which the log continues in another file. Default 24h.
	FileAge Duration `json:"fileAge,omitempty"`
	// Size of all files of a replica, beyond which the oldest are removed; at least two
	// files. Default 1Gi.
	TotalSize string `json:"totalSize,omitempty"`
	// Age at which a file is removed. Default: age alone removes nothing.
	TotalAge Duration `json:"totalAge,omitempty"`
	// Decisions that may wait for writing; further ones are lost, which is counted and recorded.
	// Default 4096.
	Queue int `json:"queue,omitempty"`
	// Longest time between lines and the checkpoint that signs them. Default 1m.
	CheckpointInterval Duration `json:"checkpointInterval,omitempty"`
	// File of the key (PEM, ECDSA on P-256) that signs checkpoints; created if it is missing,
	// with its public key next to it as FILE.pub. Default: in a cluster the entry
	// decision-log.key of certificate.secret, standalone checkpoint.key in the folder.
	KeyFile string `json:"keyFile,omitempty"`

	Webhook DecisionWebhook `json:"webhook,omitzero"`
	OTLP    DecisionOTLP    `json:"otlp,omitzero"`
}

// DecisionWebhook is an HTTPS receiver of the decision log's lines. They wait in the log until
// they are delivered.
type DecisionWebhook struct {
	// URL of the receiver (POST, application/x-ndjson): https, or http on this machine. Default:
	// none.
	URL string `json:"url,omitempty"`
	// File with a bearer token, read for each delivery. Default: none is sent.
	TokenFile string `json:"tokenFile,omitempty"`
	// File of certificate authorities (PEM) in place of the system's.
	CAFile string `json:"caFile,omitempty"`
}

// DecisionOTLP is an OpenTelemetry collector of the decision log's lines, as OpenTelemetry logs.
// They wait in the log until they are delivered.
type DecisionOTLP struct {
	// OTLP endpoint over HTTP, as in http://collector:4318. Default: none.
	Endpoint string `json:"endpoint,omitempty"`
	// File of certificate authorities (PEM) in place of the system's.
	CAFile string `json:"caFile,omitempty"`
}

// The values of DecisionLog.OnFailure.
const (
	OnFailureDeny     = "deny"
	onFailureContinue = "continue"
)

// IsOn reports whether there is a log.
func (d DecisionLog) IsOn() bool { return d.Folder != "" || d.Stdout }

// Waits reports whether responses wait for the disk.
func (d DecisionLog) Waits() bool { return d.Folder != "" && d.Fsync == string(journal.SyncAlways) }

// fill sets the defaults.
func (d *DecisionLog) fill() {
	if !d.IsOn() {
		return
	}
	orText(&d.Fsync, string(journal.SyncInterval))
	if d.Fsync == string(journal.SyncAlways) {
		orText(&d.OnFailure, OnFailureDeny)
		if d.FlushTimeout == 0 {
			d.FlushTimeout = Duration(2 * time.Second)
		}
	}
}

func (d DecisionLog) check(found *complaints) {
	if !d.IsOn() {
		found.refuse(d != (DecisionLog{}), "decisionLog: without a folder or stdout there is none")
		return
	}
	found.refuse(d.Folder != "" && !filepath.IsAbs(d.Folder), "decisionLog.folder: %q: want an absolute path", d.Folder)
	found.refuse(!slices.Contains([]string{"always", "interval", "never"}, d.Fsync), "decisionLog.fsync: %q: want always, interval or never", d.Fsync)
	found.refuse(!slices.Contains([]string{"", OnFailureDeny, onFailureContinue}, d.OnFailure), "decisionLog.onFailure: %q: want deny or continue", d.OnFailure)
	found.refuse(d.Fsync != "always" && (d.OnFailure != "" || d.FlushTimeout != 0), "decisionLog.onFailure and decisionLog.flushTimeout are for decisionLog.fsync: always")
	found.refuse(d.Fsync != "interval" && d.FsyncInterval != 0, "decisionLog.fsyncInterval is for decisionLog.fsync: interval")
	found.refuse(d.FlushTimeout > Duration(10*time.Second), "decisionLog.flushTimeout: want at most 10s")
	found.refuse(d.Folder == "" && (d.FileSize+d.TotalSize != "" || d.FileAge+d.TotalAge != 0 || d.Fsync == "always"),
		"decisionLog: files need decisionLog.folder")
	found.refuse(d.Folder == "" && d.Webhook.URL+d.OTLP.Endpoint != "", "decisionLog.webhook and decisionLog.otlp need decisionLog.folder, where lines wait for them")
	found.refuse(d.Webhook.URL == "" && d.Webhook != (DecisionWebhook{}), "decisionLog.webhook.url is required")
	found.refuse(d.OTLP.Endpoint == "" && d.OTLP != (DecisionOTLP{}), "decisionLog.otlp.endpoint is required")
	if to, err := url.Parse(d.OTLP.Endpoint); d.OTLP.Endpoint != "" {
		found.refuse(err != nil || to.Host == "", "decisionLog.otlp.endpoint: want a URL such as http://collector:4318")
	}
	config, err := d.Journal()
	if err == nil {
		config.Replica, config.Log = "any", slog.New(slog.DiscardHandler) // they are not settings
		if config.Folder == "" {
			config.Stream = io.Discard
		}
		err = config.Check()
	}
	found.refuse(err != nil, "decisionLog: %w", err)
}

// Journal returns the settings of the log's writer, without its dependencies.
func (d DecisionLog) Journal() (journal.Config, error) {
	file, err := size("fileSize", d.FileSize)
	if err != nil {
		return journal.Config{}, err
	}
	total, err := size("totalSize", d.TotalSize)
	if err != nil {
		return journal.Config{}, err
	}
	return journal.Config{
		Folder: d.Folder, Sync: journal.Sync(d.Fsync), SyncEvery: time.Duration(d.FsyncInterval),
		SegmentSize: file, SegmentAge: time.Duration(d.FileAge), TotalSize: total, TotalAge: time.Duration(d.TotalAge),
		Queue: d.Queue, CheckpointInterval: time.Duration(d.CheckpointInterval),
	}, nil
}

// size reads a size such as 64Mi; empty is 0, for the default.
func size(name, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	parsed, err := resource.ParseQuantity(text)
	if err != nil || parsed.Value() <= 0 {
		return 0, fmt.Errorf("%s: %q: want a size such as 64Mi", name, text)
	}
	return parsed.Value(), nil
}
