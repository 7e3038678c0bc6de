package trace

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/claims"
	"github.com/quaymaster/quaymaster/webhook/metrics"
)

func TestSpans(t *testing.T) {
	memory := tracetest.NewInMemoryExporter()
	tracer := newTracer("v1", sdk.WithSyncer(memory))
	m := metrics.New(metrics.Build{})
	all := metrics.Observers{m, tracer}
	request := httptest.NewRequest(http.MethodPost, "/mutate", nil)
	request.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	ctx, done := all.Enter(request, "mutate")
	_, end := all.Begin(ctx, gate.PhaseProve)
	all.Asked(claims.LayerTags, true)
	all.Panicked("mutate")
	end()
	done(http.StatusInternalServerError)
	spans := memory.GetSpans()
	if len(spans) != 2 || spans[0].Name != "prove" || spans[1].Name != "endpoint mutate" {
		t.Fatalf("found %v", spans)
	}
	if spans[0].Parent.SpanID() != spans[1].SpanContext.SpanID() || spans[1].SpanContext.TraceID().String() != "0af7651916cd43dd8448eb211c80319c" {
		t.Error("the phase is not within its request, or the request not within its caller's trace")
	}
	scraped := httptest.NewRecorder()
	m.Handler().ServeHTTP(scraped, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if text := scraped.Body.String(); !strings.Contains(text, `quaymaster_requests_total{endpoint="mutate",status="500"} 1`) || !strings.Contains(text, `quaymaster_panics_total{endpoint="mutate"} 1`) {
		t.Error("the metrics were not updated")
	}
}

func TestSpansAreDelivered(t *testing.T) {
	var path atomic.Value
	status := atomic.Int64{}
	status.Store(http.StatusOK)
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		path.Store(r.URL.Path)
		w.WriteHeader(int(status.Load()))
	}))
	defer collector.Close()
	for _, row := range []struct {
		reason string
		status int
		logged bool
	}{
		{"a collector that takes them", http.StatusOK, false},
		{"one that refuses them", http.StatusForbidden, true},
	} {
		t.Run(row.reason, func(t *testing.T) {
			status.Store(int64(row.status))
			var log strings.Builder
			tracer, err := New(t.Context(), Config{Endpoint: collector.URL, Log: slog.New(slog.NewTextHandler(&log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			_, end := tracer.Begin(t.Context(), gate.PhaseDecide)
			end()
			if err := tracer.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if path.Load() != "/v1/traces" {
				t.Errorf("delivered to %v", path.Load())
			}
			if strings.Contains(log.String(), "could not be delivered") != row.logged {
				t.Errorf("the log is %q", log.String())
			}
		})
	}
}

func TestNewTracerRefuses(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	for _, endpoint := range []string{"", "collector:4318", "ftp://collector", "http://", "://"} {
		if _, err := New(t.Context(), Config{Endpoint: endpoint, Log: log}); err == nil {
			t.Errorf("%q: not refused", endpoint)
		}
	}
	if _, err := New(t.Context(), Config{Endpoint: "http://collector:4318"}); err == nil {
		t.Error("a tracer without a log was made")
	}
}
