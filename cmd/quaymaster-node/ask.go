package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/quaymaster/quaymaster/cmd/quaymaster-node/imageverifier"
	"github.com/quaymaster/quaymaster/internal/limit"
)

const (
	// maxAnswer bounds the record, in bytes: an image matched by many policies yields some
	// hundred KiB.
	maxAnswer = 4 << 20
	// maxFile bounds files of certificates, keys and tokens, in bytes.
	maxFile = 1 << 20
	// maxToken bounds a token, in bytes, and maxHeader the header of a response.
	maxToken  = 8 << 10
	maxHeader = 64 << 10
	// verifyPath is the endpoint for verification requests.
	verifyPath = "/api/v1/verify"
	// modeHeader has the value shadow if the gateway enforces nothing.
	modeHeader = "Quaymaster-Mode"
)

// ask sends the request to the gateway; it is an imageverifier.Look.
func ask(ctx context.Context, settings *imageverifier.Settings, question imageverifier.Question) (imageverifier.Verdict, error) {
	if settings.Gateway == nil {
		return imageverifier.Verdict{}, errors.New("the settings name no gateway")
	}
	raw, shadow, err := post(ctx, settings, question)
	if err != nil {
		err = fmt.Errorf("ask the gateway: %w", err)
	}
	verdict := imageverifier.Verdict{}
	if err == nil {
		verdict, err = imageverifier.Judge(raw, question, settings.RequireMatch)
	}
	if !shadow {
		return verdict, err
	}
	if err != nil {
		verdict.Reason = err.Error()
	}
	return imageverifier.Verdict{Allowed: true, Reason: "allowed, for the gateway is in shadow mode; else: " + verdict.Reason}, nil
}

// post sends the request and returns the gateway's record, and whether the gateway is a shadow.
// It reports a shadow also together with an error.
func post(ctx context.Context, settings *imageverifier.Settings, question imageverifier.Question) (record []byte, shadow bool, err error) {
	transport, base, err := transportOf(settings.Gateway)
	if err != nil {
		return nil, false, err
	}
	body, err := json.Marshal(map[string]any{"images": []string{question.Image}, "namespace": settings.Namespace})
	if err != nil {
		return nil, false, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, base+verifyPath, bytes.NewReader(body))
	if err != nil {
		return nil, false, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "quaymaster-node")
	if settings.Gateway.TokenFile != "" {
		token, err := tokenOf(settings.Gateway.TokenFile)
		if err != nil {
			return nil, false, err
		}
		request.Header.Set("Authorization", "Bearer "+token)
	}
	// A redirect is not followed: it is treated as a response with an unexpected status.
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	record, err = read(response)
	return record, response.Header.Get(modeHeader) == "shadow", err
}

// read accepts a record and no other content.
func read(response *http.Response) ([]byte, error) {
	raw, err := limit.ReadAll(response.Body, maxAnswer, "the answer")
	if err != nil {
		return nil, err
	}
	kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	isJSON := err == nil && kind == "application/json"
	switch {
	case response.StatusCode != http.StatusOK && isJSON:
		var problem struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(raw, &problem) == nil && problem.Message != "" {
			return nil, fmt.Errorf("HTTP %d: %s", response.StatusCode, problem.Message)
		}
		return nil, fmt.Errorf("HTTP %d", response.StatusCode)
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("HTTP %d", response.StatusCode)
	case !isJSON:
		return nil, fmt.Errorf("the answer is of type %q: want application/json", response.Header.Get("Content-Type"))
	}
	return raw, nil
}

// transportOf returns the transport to the gateway and the base URL. The transport ignores
// proxies of the environment.
func transportOf(g *imageverifier.Gateway) (*http.Transport, string, error) {
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHeader}
	if g.Socket != "" {
		var dialer net.Dialer
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", g.Socket)
		}
		return transport, "http://gateway", nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if g.CAFile != "" {
		text, err := imageverifier.ReadFile(g.CAFile, maxFile)
		if err != nil {
			return nil, "", fmt.Errorf("caFile %s: %w", g.CAFile, err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, "", fmt.Errorf("caFile %s: no certificate in it", g.CAFile)
		}
	}
	if g.CertificateFile != "" {
		certificate, err := imageverifier.ReadFile(g.CertificateFile, maxFile)
		if err != nil {
			return nil, "", fmt.Errorf("certificateFile %s: %w", g.CertificateFile, err)
		}
		key, err := imageverifier.ReadFile(g.KeyFile, maxFile)
		if err != nil {
			return nil, "", fmt.Errorf("keyFile %s: %w", g.KeyFile, err)
		}
		pair, err := tls.X509KeyPair(certificate, key)
		if err != nil {
			return nil, "", fmt.Errorf("certificateFile %s: %w", g.CertificateFile, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	transport.TLSClientConfig = config
	return transport, strings.TrimRight(g.URL, "/"), nil
}

// tokenOf reads a token. Errors do not contain the file's content.
func tokenOf(path string) (string, error) {
	text, err := imageverifier.ReadFile(path, maxToken)
	if err != nil {
		return "", fmt.Errorf("tokenFile %s: %w", path, err)
	}
	token := strings.TrimSpace(string(text))
	isOdd := func(c rune) bool { return c <= ' ' || c > '~' }
	if token == "" || strings.ContainsFunc(token, isOdd) {
		return "", errors.New("tokenFile " + path + ": want one token and nothing else")
	}
	return token, nil
}
