package sink

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/log"
	sdk "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/quaymaster/quaymaster/report/decisionlog"
)

// CollectorConfig configures a Collector.
type CollectorConfig struct {
	// Endpoint is the collector's base URL, as OTEL_EXPORTER_OTLP_ENDPOINT: records are sent to
	// v1/logs below it. In a cluster it may be http.
	Endpoint string
	// TLS has the certificate authorities; nil: the system's.
	TLS *tls.Config
	// Version is the version of this program.
	Version string
}

// Collector is a Receiver that sends each line as the body of an OpenTelemetry log record (OTLP
// 1.x over HTTP), with its number and kind as attributes. Severity is WARN for denials, for
// undecided requests and for lines that report a problem of the log itself; else INFO.
type Collector struct {
	exporter *otlploghttp.Exporter
	provider *sdk.LoggerProvider
	logger   log.Logger
	records  *records
}

// NewCollector creates a Collector. It does not connect yet.
func NewCollector(ctx context.Context, config CollectorConfig) (*Collector, error) {
	to, err := url.Parse(config.Endpoint)
	if err != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https" {
		return nil, fmt.Errorf("decision log's OTLP endpoint %q: want a URL such as http://collector:4318", config.Endpoint)
	}
	exporter, err := otlploghttp.New(ctx, otlploghttp.WithEndpointURL(to.JoinPath("v1", "logs").String()),
		otlploghttp.WithHTTPClient(newClient(config.TLS)), otlploghttp.WithRetry(otlploghttp.RetryConfig{}))
	if err != nil {
		return nil, fmt.Errorf("decision log's OTLP endpoint: %w", err)
	}
	kept := &records{}
	about := resource.NewSchemaless(attribute.String("service.name", "quaymaster"), attribute.String("service.version", config.Version))
	provider := sdk.NewLoggerProvider(sdk.WithResource(about), sdk.WithProcessor(kept))
	return &Collector{exporter: exporter, provider: provider, logger: provider.Logger("github.com/quaymaster/quaymaster/report/decisionlog"), records: kept}, nil
}

// Deliver implements Receiver.
func (c *Collector) Deliver(ctx context.Context, lines []decisionlog.Line) error {
	c.records.list = c.records.list[:0]
	for i := range lines {
		c.logger.Emit(ctx, recordOf(&lines[i]))
	}
	return c.exporter.Export(ctx, c.records.list)
}

// Close shuts down the provider and the exporter.
func (c *Collector) Close(ctx context.Context) error {
	return errors.Join(c.provider.Shutdown(ctx), c.exporter.Shutdown(ctx))
}

// recordOf converts a line to a record.
func recordOf(line *decisionlog.Line) log.Record {
	var r log.Record
	r.SetTimestamp(line.Time)
	r.SetEventName("quaymaster." + string(line.Kind))
	r.SetBody(attribute.StringValue(string(line.Raw)))
	r.AddAttributes(attribute.Int64("quaymaster.seq", int64(line.Seq)), attribute.String("quaymaster.replica", line.Replica))
	severity, text := log.SeverityInfo, "INFO"
	if isTrouble(line) {
		severity, text = log.SeverityWarn, "WARN"
	}
	r.SetSeverity(severity)
	r.SetSeverityText(text)
	return r
}

func isTrouble(line *decisionlog.Line) bool {
	switch {
	case line.Decision != nil:
		return line.Decision.Undecided != "" || !line.Decision.Result.Admits()
	case line.Open != nil:
		return line.Open.Torn != nil || line.Open.Damaged != "" || line.Open.Missing > 0
	}
	return line.Lost != nil
}

// records is the sdk.Processor that gathers emitted records, so that Deliver can export them and
// return the error.
type records struct{ list []sdk.Record }

// Enabled implements sdk.Processor: every record is accepted.
func (*records) Enabled(context.Context, sdk.EnabledParameters) bool { return true }
func (*records) Shutdown(context.Context) error                      { return nil }
func (*records) ForceFlush(context.Context) error                    { return nil }

// OnEmit stores a copy, since the logger owns the record.
func (r *records) OnEmit(_ context.Context, record *sdk.Record) error {
	r.list = append(r.list, record.Clone())
	return nil
}
