// Package gateway runs quaymaster serve as its users run it.
//
// It writes a configuration file, runs the real binary with an environment of its own, and
// reads its readiness, metrics and log.
package gateway

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/test/e2e/process"
)

// readyTimeout is how long a gateway may take to get ready, on a busy machine.
const readyTimeout = time.Minute

// maxLine bounds one line of the metrics, in bytes.
const maxLine = 1 << 20

// noProxy is a proxy that does not run: loopback needs none, and other connections fail at
// once.
const noProxy = "http://127.0.0.1:1"

// Options of a gateway. Program and Folder are required.
type Options struct {
	// Program is the path of the binary.
	Program string
	// Folder holds its configuration, home and log; a folder for each replica.
	Folder string
	// Configuration; Start fills in addresses that are empty.
	Configuration Configuration
	// Env is added to the environment, and Args to the arguments.
	Env, Args []string
}

// Gateway is a running replica.
type Gateway struct {
	*process.Process
	// Configuration as it was given to the binary.
	Configuration Configuration
	client        *http.Client
}

// Start runs a gateway and does not wait for anything; see Ready. The caller calls Kill in
// the end.
func Start(ctx context.Context, o Options) (*Gateway, error) {
	c := o.Configuration
	for _, address := range []*string{&c.Listen.Address, &c.Listen.Plain} {
		if *address != "" {
			continue
		}
		free, err := process.FreeAddress(ctx)
		if err != nil {
			return nil, fmt.Errorf("start a gateway: %w", err)
		}
		*address = free
	}
	if c.Webhooks.URL == "" && c.Webhooks.Service == "" && !c.Webhooks.Disabled && !c.Standalone {
		c.Webhooks.URL = "https://" + c.Listen.Address
	}
	file := filepath.Join(o.Folder, "configuration.yaml")
	if err := c.write(file); err != nil {
		return nil, fmt.Errorf("start a gateway: %w", err)
	}
	running, err := process.Start(process.Options{
		Path: o.Program, Folder: o.Folder, Args: append([]string{"serve", "--config", file}, o.Args...),
		Env: append([]string{
			"HOME=" + o.Folder, "DOCKER_CONFIG=" + o.Folder, "XDG_CACHE_HOME=" + o.Folder, "TMPDIR=" + o.Folder,
			"HTTP_PROXY=" + noProxy, "HTTPS_PROXY=" + noProxy, "NO_PROXY=127.0.0.1",
		}, o.Env...),
	})
	if err != nil {
		return nil, err
	}
	return &Gateway{Process: running, Configuration: c, client: &http.Client{Timeout: readyTimeout}}, nil
}

func (c Configuration) write(file string) error {
	content, err := yaml.Marshal(struct {
		APIVersion    string `json:"apiVersion"`
		Kind          string `json:"kind"`
		Configuration `json:",inline"`
	}{"quaymaster.dev/v1alpha1", "Configuration", c})
	if err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o600)
}

// Ready waits until the gateway reports that it is ready.
func (g *Gateway) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("not ready after %s", readyTimeout))
	defer cancel()
	return g.Await(ctx, g.IsReady)
}

// IsReady asks once.
func (g *Gateway) IsReady(ctx context.Context) error {
	return process.Answers(ctx, g.client, "http://"+g.Configuration.Listen.Plain+"/readyz")
}

// Terminate sends SIGTERM and does not wait; Done is closed when it has ended.
func (g *Gateway) Terminate() error { return g.Signal(syscall.SIGTERM) }

// Lines returns the log's records, oldest first. Lines that are no JSON are an
// error: the log is structured.
func (g *Gateway) Lines() ([]map[string]any, error) {
	var records []map[string]any
	for line := range strings.Lines(g.Log()) {
		if !strings.HasSuffix(line, "\n") {
			break // still being written
		}
		var record map[string]any
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			return nil, fmt.Errorf("the log's line %q: %w", line, err)
		}
		records = append(records, record)
	}
	return records, nil
}

// Sample is one line of the metrics.
type Sample struct {
	// Name of the metric, of a histogram with _count, _sum or _bucket.
	Name   string
	Labels map[string]string
	Value  float64
}

// Metrics reads the current /metrics.
func (g *Gateway) Metrics(ctx context.Context) ([]Sample, error) {
	samples, err := g.metrics(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the gateway's metrics: %w", err)
	}
	return samples, nil
}

func (g *Gateway) metrics(ctx context.Context) ([]Sample, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+g.Configuration.Listen.Plain+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := g.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, errors.New(response.Status)
	}
	return Samples(response.Body)
}

// Samples reads metrics in the text format.
func Samples(from io.Reader) ([]Sample, error) {
	var samples []Sample
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		if line := lines.Text(); line != "" && line[0] != '#' {
			sample, err := parseSample(line)
			if err != nil {
				return nil, err
			}
			samples = append(samples, sample)
		}
	}
	return samples, lines.Err()
}

// parseSample reads a line of the text format: name{label="value",...} number.
func parseSample(line string) (Sample, error) {
	sample := Sample{Labels: map[string]string{}}
	bad := fmt.Errorf("not a sample: %q", line)
	i := strings.IndexAny(line, "{ ")
	if i < 0 {
		return sample, bad
	}
	sample.Name, line = line[:i], line[i:]
	if line[0] == '{' {
		line = line[1:]
		for line != "" && line[0] != '}' {
			name, rest, _ := strings.Cut(line, "=")
			quoted, err := strconv.QuotedPrefix(rest)
			if err != nil {
				return sample, bad
			}
			// The format escapes a part of what Go does, in the same way.
			sample.Labels[name], err = strconv.Unquote(quoted)
			if err != nil {
				return sample, bad
			}
			line = strings.TrimPrefix(rest[len(quoted):], ",")
		}
		line = strings.TrimPrefix(line, "}")
	}
	number, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	var err error
	sample.Value, err = strconv.ParseFloat(number, 64)
	if err != nil {
		return sample, bad
	}
	return sample, nil
}

// Sum adds up the samples of a name that have all the labels, which are given
// as name, value, name, value.
func Sum(samples []Sample, name string, labels ...string) float64 {
	var sum float64
next:
	for _, sample := range samples {
		if sample.Name != name {
			continue
		}
		for i := 0; i+1 < len(labels); i += 2 {
			if sample.Labels[labels[i]] != labels[i+1] {
				continue next
			}
		}
		sum += sample.Value
	}
	return sum
}

// Port is the port of the TLS endpoints.
func (g *Gateway) Port() string {
	_, port, _ := net.SplitHostPort(g.Configuration.Listen.Address)
	return port
}
