package compare

import (
	"io"
	"strconv"
	"strings"
)

// The supported histograms: the API server's own, which measures all webhooks alike, and
// Kyverno's. Each has a sum in seconds and a count.
const (
	apiServerHistogram = "apiserver_admission_webhook_admission_duration_seconds"
	kyvernoHistogram   = "kyverno_admission_review_duration_seconds"
)

// Account is the source of a measurement.
type Account string

// The sources.
const (
	ByAPIServer Account = "the API server"
	ByItself    Account = "itself"
)

type timingKey struct {
	engine Engine
	by     Account
}

// timing is the number and the total duration of calls.
type timing struct {
	calls        int64
	milliseconds float64
}

// Metrics adds a scrape in the text format of Prometheus, of an API server or of Kyverno. The
// values of several scrapes are added up.
func (c *Collector) Metrics(from io.Reader) error {
	read := 0
	return lines(from, maxMetric, func(line []byte, long bool) {
		read++
		if long || read > maxMetrics || line[0] == '#' {
			return
		}
		c.sample(string(line))
	})
}

func (c *Collector) sample(line string) {
	name, rest := line, ""
	if at := strings.IndexAny(line, "{ "); at > 0 {
		name, rest = line[:at], line[at:]
	}
	histogram, isSum := strings.CutSuffix(name, "_sum")
	if !isSum {
		var isCount bool
		histogram, isCount = strings.CutSuffix(name, "_count")
		if !isCount {
			return
		}
	}
	key := timingKey{engine: Kyverno, by: ByItself}
	switch histogram {
	case kyvernoHistogram:
	case apiServerHistogram:
		engine, known := engineOf(label(rest, "name"))
		if !known {
			return
		}
		key = timingKey{engine: engine, by: ByAPIServer}
	default:
		return
	}
	fields := strings.Fields(rest[strings.LastIndexByte(rest, '}')+1:])
	if len(fields) == 0 {
		return
	}
	value, err := strconv.ParseFloat(fields[0], 64)
	if err != nil || !(value >= 0 && value < 1e15) {
		return
	}
	t := c.metrics[key]
	if isSum {
		t.milliseconds += value * 1000
	} else {
		t.calls += int64(value)
	}
	c.metrics[key] = t
}

// label returns the value of a label without escapes.
func label(labels, name string) string {
	for _, before := range []string{"{", ","} {
		if _, rest, ok := strings.Cut(labels, before+name+`="`); ok {
			value, _, _ := strings.Cut(rest, `"`)
			return value
		}
	}
	return ""
}
