package metrics

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// requestSeries are the collectors of requests to endpoints.
type requestSeries struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	answers  *prometheus.CounterVec
	shadowed *prometheus.CounterVec
	panics   *prometheus.CounterVec
	open     prometheus.Gauge

	endpoints, words *label
}

func newRequestSeries(words *label) requestSeries {
	return requestSeries{
		requests: counters("requests_total", "HTTP requests to an endpoint, by status.", "endpoint", "status"),
		seconds:  histograms("request_duration_seconds", "Time from a request's header to the end of the response.", "endpoint"),
		answers:  counters("admissions_total", "Admission requests by answer and cause.", "endpoint", "cause", "answer"),
		shadowed: counters("shadow_admissions_total", "Admission requests admitted in shadow mode, by endpoint and the result without it.",
			"endpoint", "cause", "result"),
		panics:    counters("panics_total", "Panics of handlers; each one is a defect.", "endpoint"),
		open:      prometheus.NewGauge(prometheus.GaugeOpts{Name: prefix + "requests_in_flight", Help: "Requests to endpoints in flight."}),
		endpoints: newLabel(maxWords), words: words,
	}
}

func (s *requestSeries) collectors() []prometheus.Collector {
	return []prometheus.Collector{s.requests, s.seconds, s.answers, s.shadowed, s.panics, s.open}
}

// Enter implements webhook.Observer.
func (s *requestSeries) Enter(r *http.Request, endpoint string) (context.Context, func(status int)) {
	endpoint = s.endpoints.value(endpoint)
	started := time.Now()
	s.open.Inc()
	return r.Context(), func(status int) {
		s.open.Dec()
		s.seconds.WithLabelValues(endpoint).Observe(time.Since(started).Seconds())
		s.requests.WithLabelValues(endpoint, statusText(status)).Inc()
	}
}

// statusText is the label of a status. Non-standard statuses of a handler are other.
func statusText(status int) string {
	if http.StatusText(status) == "" {
		return other
	}
	return strconv.Itoa(status)
}

// Panicked implements webhook.Observer.
func (s *requestSeries) Panicked(endpoint string) {
	s.panics.WithLabelValues(s.endpoints.value(endpoint)).Inc()
}

// Admitted records one response of an admission endpoint: the cause as webhook/admission names it,
// and whether the request was allowed.
func (s *requestSeries) Admitted(endpoint, cause string, allowed bool) {
	s.answers.WithLabelValues(s.endpoints.value(endpoint), s.words.value(cause), answerOf(allowed)).Inc()
}

// Shadowed replaces Admitted in shadow mode. It records the response that the endpoint would have
// given.
func (s *requestSeries) Shadowed(endpoint, cause string, allowed bool) {
	s.shadowed.WithLabelValues(s.endpoints.value(endpoint), s.words.value(cause), answerOf(allowed)).Inc()
}

func answerOf(allowed bool) string {
	if allowed {
		return "allow"
	}
	return "deny"
}
