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

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/report/decisionlog"
)

// CollectorConfig says where OpenTelemetry logs go.
type CollectorConfig struct {
	// Endpoint is the collector's base URL, as OTEL_EXPORTER_OTLP_ENDPOINT: records go to
	// v1/logs below it. In a cluster it may be http.
	Endpoint string
	// TLS has the certificate authorities; nil: the system's.
	TLS *tls.Config
	// Version is the program's.
	Version string
}

// Collector is a Receiver that sends each line as the body of an OpenTelemetry log
// record (OTLP 1.x over HTTP), with its number and kind as attributes. Severity is WARN
// where something was denied or could not be decided, or where the log itself has to say
// that something is wrong; else INFO.
type Collector struct {
	exporter *otlploghttp.Exporter
	provider *sdk.LoggerProvider
	logger   log.Logger
	records  *records
}

// NewCollector makes a Collector that connects to nobody yet.
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

// Close ends what it made.
func (c *Collector) Close(ctx context.Context) error {
	return errors.Join(c.provider.Shutdown(ctx), c.exporter.Shutdown(ctx))
}

// recordOf is a line as a record.
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
		return line.Decision.Undecided != "" || line.Decision.Answer != gate.Allow
	case line.Open != nil:
		return line.Open.Torn != nil || line.Open.Damaged != "" || line.Open.Missing > 0
	}
	return line.Lost != nil
}

// records is the sdk.Processor that gathers what is emitted, to be delivered by whom
// knows whether it arrived.
type records struct{ list []sdk.Record }

// Enabled implements sdk.Processor, as what is below does.
func (*records) Enabled(context.Context, sdk.EnabledParameters) bool { return true }
func (*records) Shutdown(context.Context) error                      { return nil }
func (*records) ForceFlush(context.Context) error                    { return nil }

// OnEmit keeps a copy, since the record is the logger's.
func (r *records) OnEmit(_ context.Context, record *sdk.Record) error {
	r.list = append(r.list, record.Clone())
	return nil
}
