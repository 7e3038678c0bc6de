package demo

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	demo "github.com/quaymaster/quaymaster/examples/demo"
	"github.com/quaymaster/quaymaster/workload"
)

// call is one request that the demo sends to the gateway as an API server would.
type call struct {
	review  string // a file of the examples
	path    string
	story   string
	allowed bool
}

func demoCalls() []call {
	return []call{
		{"1-pod-signed.json", "/mutate", "a Pod of two signed images is created", true},
		{"2-pod-unsigned.json", "/mutate", "a Pod with an unsigned image is created", false},
		{"3-deployment-wrong-signer.json", "/validate", "a Deployment of an image signed with another key", false},
		{"4-pod-label.json", "/mutate", "a label of a running Pod changes", true},
		{"5-pod-debug-unsigned.json", "/mutate", "kubectl debug with an unsigned image", false},
	}
}

// demoGateway starts the gateway with the demo's policies and mirror, sends it the requests, and
// prints the responses. It ends with afterwards, which gets the address of the dashboard.
func demoGateway(ctx context.Context, t command.Terminal, on stand, afterwards func(dashboard string) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	log, err := os.Create(filepath.Join(on.folder, "gateway.log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the log is for users that keep the demo
	settings, err := writeGateway(on.folder)
	if err != nil {
		return err
	}
	listening, dashboard, ended := make(chan string, 1), make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- gateway.Run(ctx, settings, gateway.Options{
			Log: log, Version: "quaymaster " + t.Version(), Replica: "demo", Listening: func(address, _ string) { listening <- address },
			Dashboard: func(address string) { dashboard <- address },
		})
	}()
	var address string
	select {
	case address = <-listening:
	case err := <-ended:
		return fmt.Errorf("gateway: %w", err)
	}
	client, err := demoClient(on.folder)
	if err != nil {
		return err
	}
	fmt.Fprintf(t.Out, "\nThe gateway on https://%s receives requests like those of an API server:\n", address)
	for _, c := range demoCalls() {
		if err := c.send(ctx, t.Out, client, address, on.registry); err != nil {
			return fmt.Errorf("gateway: %s: %w", c.review, err)
		}
	}
	if err := createPods(ctx, t.Out, client, address, on.scenes); err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	var shown string
	select {
	case shown = <-dashboard:
	case err := <-ended:
		return fmt.Errorf("gateway: %w", err)
	}
	if err := afterwards(shown); err != nil {
		return err
	}
	stop()
	return <-ended
}

// writeGateway writes the configuration of a typical user.
func writeGateway(folder string) (config.Configuration, error) {
	text := fmt.Sprintf(`apiVersion: quaymaster.dev/v1alpha1
kind: Configuration
standalone: true
listen: {address: "127.0.0.1:0", plain: "127.0.0.1:0", drainDelay: 1ms}
certificate: {folder: %[1]s/certificate}
policies: {folders: [%[1]s/policies, %[1]s/keys.yaml]}
trust: {trustedRoot: %[1]s/trusted_root.json}
mirrors: {files: [%[1]s/mirrors.yaml]}
dashboard: {address: "127.0.0.1:0", playground: true}
`, folder)
	file := filepath.Join(folder, "gateway.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return config.Configuration{}, err
	}
	return config.Load(file)
}

// demoClient trusts the gateway's own authority, as the API server does.
func demoClient(folder string) (*http.Client, error) {
	authority, err := os.ReadFile(filepath.Join(folder, "certificate", "ca.crt"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
	return &http.Client{Transport: transport, Timeout: 10 * time.Second}, nil
}

// send sends one request and prints the response.
func (c call) send(ctx context.Context, out io.Writer, client *http.Client, address, registry string) error {
	text, err := demo.Reviews.ReadFile(path.Join("reviews", c.review))
	if err != nil {
		return err
	}
	body := bytes.ReplaceAll(text, []byte("REGISTRY"), []byte(registry))
	review, err := post(ctx, client, address, c.path, body)
	if err != nil {
		return err
	}
	if review.Response.Allowed != c.allowed {
		return fmt.Errorf("allowed: %t, and %t was expected: %s", review.Response.Allowed, c.allowed, review.Response.Status.Message)
	}
	return review.tell(out, c)
}

// post sends one AdmissionReview and returns the response.
func post(ctx context.Context, client *http.Client, address, endpoint string, body []byte) (answeredReview, error) {
	var review answeredReview
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+address+endpoint+"?timeout=10s", bytes.NewReader(body))
	if err != nil {
		return review, err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(request)
	if err != nil {
		return review, err
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	if err := json.NewDecoder(answer.Body).Decode(&review); err != nil {
		return review, fmt.Errorf("HTTP %d: %w", answer.StatusCode, err)
	}
	return review, nil
}

// answeredReview is the part of a response that the demo reads.
type answeredReview struct {
	Response struct {
		Allowed bool   `json:"allowed"`
		Patch   []byte `json:"patch"`
		Status  struct {
			Message string `json:"message"`
		} `json:"status"`
	} `json:"response"`
}

func (r answeredReview) tell(out io.Writer, c call) error {
	word := "allowed"
	if !r.Response.Allowed {
		word = "denied"
	}
	fmt.Fprintf(out, "\n  %-9s %-42s POST %s\n", word, c.story, c.path)
	operations, err := r.operations()
	if err != nil {
		return err
	}
	for _, op := range operations {
		if op.Op == "replace" {
			fmt.Fprintf(out, "            %s\n              becomes %s\n", op.Path, op.Value)
		}
	}
	for line := range strings.Lines(r.Response.Status.Message) {
		fmt.Fprintf(out, "            %s", line)
	}
	if r.Response.Status.Message != "" {
		fmt.Fprintln(out)
	}
	return nil
}

// operations are those of the patch.
func (r answeredReview) operations() (operations []workload.Operation, err error) {
	if len(r.Response.Patch) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(r.Response.Patch, &operations); err != nil {
		return nil, fmt.Errorf("the patch: %w", err)
	}
	return operations, nil
}
