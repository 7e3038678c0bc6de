package gateway

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

const ciToken = "0123456789abcdef0123456789abcdef"

// post asks an endpoint in JSON.
func post(t *testing.T, client *http.Client, url, token string, body any) (status int, text string) {
	t.Helper()
	encoded, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(encoded))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(content)
}

func imageReview(image string) map[string]any {
	return map[string]any{"apiVersion": "imagepolicy.k8s.io/v1alpha1", "kind": "ImageReview", "spec": map[string]any{
		"containers": []any{map[string]any{"image": image}}, "namespace": "shop",
	}}
}

func apiQuery(image string) map[string]any {
	return map[string]any{"images": []string{image}, "namespace": "shop"}
}

func TestOtherEndpointsAreDisabledByDefault(t *testing.T) {
	r := newEnv(t).start(t, "")
	for _, path := range []string{config.ImageReviewPath, config.DataVerifyPath, config.DataMutatePath, config.APIPath} {
		if status, text := post(t, r.client, "https://"+r.address+path, ciToken, map[string]any{}); status != http.StatusNotFound {
			t.Errorf("%s: HTTP %d: %s", path, status, text)
		}
	}
}

func TestImageReviewEndpoint(t *testing.T) {
	d := newEnv(t)
	r := d.start(t, "endpoints: {imageReview: true}\n")
	for _, c := range []struct {
		reason, image, want string
	}{
		{"a signed image by digest", d.signed.ByDigest(), `"allowed":true`},
		{"an unsigned image", d.unsigned.ByDigest(), `"allowed":false`},
	} {
		if status, text := post(t, r.client, "https://"+r.address+config.ImageReviewPath, "", imageReview(c.image)); status != http.StatusOK || !strings.Contains(text, c.want) {
			t.Errorf("%s: HTTP %d: %s", c.reason, status, text)
		}
	}
	if _, page := get(t, "http://"+r.plain+"/metrics"); !strings.Contains(page, `quaymaster_admissions_total{answer="deny",cause="decided",endpoint="imagereview"} 1`) {
		t.Error("the metrics do not count the endpoint's denials")
	}
}

func TestExternalDataEndpoints(t *testing.T) {
	d := newEnv(t)
	r := d.start(t, "endpoints: {externalData: true}\n")
	ask := func(path string, keys ...string) string {
		status, text := post(t, r.client, "https://"+r.address+path, "", map[string]any{
			"apiVersion": "externaldata.gatekeeper.sh/v1beta1", "kind": "ProviderRequest", "request": map[string]any{"keys": keys},
		})
		if status != http.StatusOK {
			t.Fatalf("%s: HTTP %d: %s", path, status, text)
		}
		return text
	}
	if text := ask(config.DataMutatePath, d.signed.Name); !strings.Contains(text, d.signed.Manifest.Digest) {
		t.Errorf("a signed image is not pinned: %s", text)
	}
	if text := ask(config.DataVerifyPath, d.signed.ByDigest(), d.unsigned.ByDigest()); !strings.Contains(text, d.signed.ByDigest()) || !strings.Contains(text, "no signature found") {
		t.Errorf("a signed and an unsigned image: %s", text)
	}
}

func TestAPIEndpoint(t *testing.T) {
	d := newEnv(t)
	d.write(t, "tokens", ciToken+",ci\n"+strings.ToUpper(ciToken)+",other\n")
	tokens := filepath.Join(d.folder, "tokens")
	r := d.start(t, "endpoints: {api: {tokens: "+tokens+", users: [ci]}}\n")
	for _, c := range []struct {
		reason, token, image string
		status               int
		want                 string
	}{
		{"a signed image", ciToken, d.signed.Name, http.StatusOK, `"result":"allow"`},
		{"an unsigned image: a denial is an answer", ciToken, d.unsigned.Name, http.StatusOK, `"result":"deny"`},
		{"an unknown token", ciToken + "0", d.signed.Name, http.StatusUnauthorized, ""},
		{"no token", "", d.signed.Name, http.StatusUnauthorized, ""},
		{"a user that is not named", strings.ToUpper(ciToken), d.signed.Name, http.StatusForbidden, ""},
		{"the socket's user as a token", "unix-socket", d.signed.Name, http.StatusUnauthorized, ""},
	} {
		status, text := post(t, r.client, "https://"+r.address+config.APIPath, c.token, apiQuery(c.image))
		if compact := strings.ReplaceAll(text, `": "`, `":"`); status != c.status || !strings.Contains(compact, c.want) {
			t.Errorf("%s: HTTP %d: %s", c.reason, status, text)
		}
	}
	if strings.Contains(r.log.String(), ciToken) {
		t.Error("the log has a token")
	}
}

func TestEnabledEndpointsRequireCertificates(t *testing.T) {
	d := newEnv(t)
	authority, pair := apiServer(t, "kube-apiserver")
	d.write(t, "callers.crt", string(authority))
	r := d.start(t, "endpoints: {imageReview: true}\nlisten: {clientCA: "+filepath.Join(d.folder, "callers.crt")+"}\n")
	own, err := os.ReadFile(filepath.Join(d.folder, "certificate", "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	for status, shown := range map[int][]tls.Certificate{http.StatusOK: {pair}, http.StatusForbidden: nil} {
		if got, text := post(t, clientOf(own, shown...), "https://"+r.address+config.ImageReviewPath, "", imageReview(d.signed.ByDigest())); got != status {
			t.Errorf("%d certificates: HTTP %d: %s", len(shown), got, text)
		}
	}
}

func TestSocket(t *testing.T) {
	d := newEnv(t)
	folder := t.TempDir()
	path := filepath.Join(folder, "node.sock")
	if err := os.WriteFile(path, nil, 0o600); err != nil { // left behind
		t.Fatal(err)
	}
	r := d.start(t, "listen: {socket: "+path+"}\n")
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Perm() != 0o600 || info.Mode().Type() != os.ModeSocket {
		t.Fatalf("the socket: %v, %v", info.Mode(), err)
	}
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}}
	defer client.CloseIdleConnections()
	for image, want := range map[string]string{d.signed.Name: `"result":"allow"`, d.unsigned.Name: `"result":"deny"`} {
		testkit.Eventually(t, func() error {
			status, text := post(t, client, "http://node"+config.APIPath, "", apiQuery(image))
			if status != http.StatusOK || !strings.Contains(strings.ReplaceAll(text, `": "`, `":"`), want) {
				return fmt.Errorf("%s: HTTP %d: %s", image, status, text)
			}
			return nil
		})
	}
	if status, _ := post(t, client, "http://node/mutate", "", map[string]any{}); status != http.StatusNotFound {
		t.Errorf("another endpoint answers at the socket: HTTP %d", status)
	}
	if status, _ := post(t, r.client, "https://"+r.address+config.APIPath, "unix-socket", apiQuery(d.signed.Name)); status != http.StatusNotFound {
		t.Errorf("the socket opens the API to the network: HTTP %d", status)
	}
	client.CloseIdleConnections()
	if err := r.end(t); err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(folder)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestSharedMemoryCostsTimeAlone: its address refuses connections.
func TestSharedMemoryCostsTimeAlone(t *testing.T) {
	d := newEnv(t)
	r := d.start(t, "sharedMemory: {address: '"+freeAddress(t)+"'}\n")
	if got := r.mustAsk(t, "/mutate", "Pod", "shop", d.signed.Name); !got.Allowed {
		t.Error(got.Status.Message)
	}
	if got := r.mustAsk(t, "/mutate", "Pod", "shop", d.unsigned.Name); got.Allowed {
		t.Error("an unsigned image is admitted")
	}
	testkit.Eventually(t, func() error {
		if _, page := get(t, "http://"+r.plain+"/metrics"); !strings.Contains(page, `quaymaster_shared_cache_total{result="failed"}`) {
			return errors.New("the failure is not counted")
		}
		return nil
	})
}

// TestAFolderThatIsALink: policies that are not read deny nothing.
func TestAFolderThatIsALink(t *testing.T) {
	d := newEnv(t)
	folder := filepath.Join(d.folder, "policies")
	if err := os.Rename(folder, folder+"-1"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("policies-1", folder); err != nil {
		t.Fatal(err)
	}
	r := d.start(t, "")
	if got := r.mustAsk(t, "/mutate", "Pod", "shop", d.unsigned.Name); got.Allowed {
		t.Error("an unsigned image is admitted")
	}
	if got := r.mustAsk(t, "/mutate", "Pod", "shop", d.signed.Name); !got.Allowed {
		t.Error(got.Status.Message)
	}
}

// TestSecretNamesAreNotDisclosed: a namespace with the mirror's pull secret and
// one without it are the same to a caller of the API.
func TestSecretNamesAreNotDisclosed(t *testing.T) {
	d := newEnv(t)
	server := registrytest.Start(registrytest.Options{})
	t.Cleanup(server.Close)
	copied := gatetest.New(server, d.Sigstore).Build("signed", "v1", "1")
	d.write(t, "policies/secret.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: near-pull, namespace: victim}\ntype: kubernetes.io/dockerconfigjson\ndata: {.dockerconfigjson: e30=}\n")
	d.write(t, "mirrors/near.yaml", mirrorText("near", d.Registry.Host(), server.Host(), ", when: Present, pullSecrets: [near-pull]"))
	d.write(t, "tokens", ciToken+",ci\n")
	r := d.start(t, "endpoints: {api: {tokens: "+filepath.Join(d.folder, "tokens")+"}}\nmirrors: {files: ["+filepath.Join(d.folder, "mirrors")+"]}\n")
	for _, namespace := range []string{"victim", "shop"} {
		status, text := post(t, r.client, "https://"+r.address+config.APIPath, ciToken, map[string]any{"images": []string{d.signed.Name}, "namespace": namespace})
		if status != http.StatusOK || !strings.Contains(text, copied.Name+"@") || strings.Contains(text, "pull-secret") || strings.Contains(text, "near-pull") {
			t.Errorf("%s: HTTP %d: %s", namespace, status, text)
		}
	}
}
