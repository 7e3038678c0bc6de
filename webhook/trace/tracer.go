package trace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/claims"
)

// Limits of the export.
const (
	// spanQueue bounds the buffered spans. Further ones are dropped and not counted.
	spanQueue = 2048
	// exportTimeout bounds one export of spans.
	exportTimeout = 10 * time.Second
)

// Config configures the export of spans.
type Config struct {
	// Endpoint is the collector's base URL, as OTEL_EXPORTER_OTLP_ENDPOINT. Spans are posted to
	// v1/traces below it.
	Endpoint string
	// Version is the program's.
	Version string
	// Log receives export errors, at most one a minute.
	Log *slog.Logger
}

// Tracer makes a span for each request to an endpoint and for each phase in it. It is safe for
// concurrent use and has no global state.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// New makes a Tracer that exports in the background. It follows the sampling decision of the
// caller and otherwise samples all requests. OTEL_TRACES_SAMPLER changes that.
func New(ctx context.Context, config Config) (*Tracer, error) {
	to, err := url.Parse(config.Endpoint)
	if err != nil || to.Host == "" || (to.Scheme != "http" && to.Scheme != "https") {
		return nil, fmt.Errorf("traces: endpoint %q: must be a URL such as http://collector:4318", config.Endpoint)
	}
	if config.Log == nil {
		return nil, errors.New("traces: a log is required")
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(to.JoinPath("v1", "traces").String()))
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	quiet := &quietExporter{SpanExporter: exporter, log: config.Log, limit: rate.NewLimiter(rate.Limit(1.0/60), 1)}
	return newTracer(config.Version, sdk.WithBatcher(quiet, sdk.WithMaxQueueSize(spanQueue), sdk.WithExportTimeout(exportTimeout))), nil
}

func newTracer(version string, delivery sdk.TracerProviderOption) *Tracer {
	about := resource.NewSchemaless(attribute.String("service.name", "quaymaster"), attribute.String("service.version", version))
	provider := sdk.NewTracerProvider(delivery, sdk.WithResource(about))
	return &Tracer{provider: provider, tracer: provider.Tracer("github.com/quaymaster/quaymaster")}
}

// Close exports the remaining spans until ctx ends.
func (t *Tracer) Close(ctx context.Context) error {
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("traces: %w", err)
	}
	return nil
}

// Enter implements webhook.Observer. A span continues the trace of the caller (W3C Trace Context).
func (t *Tracer) Enter(r *http.Request, endpoint string) (context.Context, func(status int)) {
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, span := t.tracer.Start(ctx, "endpoint "+endpoint, trace.WithSpanKind(trace.SpanKindServer))
	return ctx, func(status int) {
		span.SetAttributes(attribute.Int("http.response.status_code", status))
		if status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, http.StatusText(status))
		}
		span.End()
	}
}

// Panicked implements webhook.Observer. The span's status already covers it.
func (*Tracer) Panicked(string) {}

// Begin implements gate.Observer.
func (t *Tracer) Begin(ctx context.Context, phase gate.Phase) (context.Context, func()) {
	ctx, span := t.tracer.Start(ctx, string(phase))
	return ctx, func() { span.End() }
}

// Asked implements gate.Observer. Cache lookups are only in the metrics.
func (*Tracer) Asked(claims.Layer, bool) {}

// quietExporter logs export errors itself, so that they do not reach OpenTelemetry's global
// handler.
type quietExporter struct {
	sdk.SpanExporter
	log   *slog.Logger
	limit *rate.Limiter
}

// ExportSpans implements sdk.SpanExporter.
func (q *quietExporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if err := q.SpanExporter.ExportSpans(ctx, spans); err != nil && q.limit.Allow() {
		q.log.LogAttrs(ctx, slog.LevelWarn, "traces could not be delivered", slog.Int("spans", len(spans)), slog.Any("error", err))
	}
	return nil
}
