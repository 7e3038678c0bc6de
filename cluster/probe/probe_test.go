package probe_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	networking "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quaymaster/quaymaster/cluster/probe"
)

const (
	mutating   = "0123456789abcdef0123456789abcdef-0123456789abcdef"
	validating = "fedcba9876543210fedcba9876543210-0123456789abcdef"
)

// apiServer answers dry-run creates of labelled ConfigMaps, and refuses all else.
type apiServer struct {
	*httptest.Server
	mu      sync.Mutex
	marks   []string // of the configurations that it has loaded
	refused *metav1.Status
	creates int
	callers map[string]bool // remote addresses
}

func start(t *testing.T, marks ...string) *apiServer {
	t.Helper()
	s := &apiServer{marks: marks, callers: map[string]bool{}}
	s.Server = httptest.NewTLSServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.creates++
	s.callers[r.RemoteAddr] = true
	var sent core.ConfigMap
	if err := json.NewDecoder(r.Body).Decode(&sent); err != nil || r.Method != http.MethodPost || r.URL.Path != "/api/v1/namespaces/quaymaster/configmaps" ||
		r.URL.Query().Get("dryRun") != "All" || r.Header.Get("Authorization") != "Bearer token" || len(sent.Labels) != 1 {
		http.Error(w, "not a probe", http.StatusBadRequest)
		return
	}
	w.Header().Add("Warning", `299 - "another webhook's warning"`)
	for _, mark := range s.marks {
		w.Header().Add("Warning", fmt.Sprintf("299 - %q", probe.Warning(mark)))
	}
	w.Header().Set("Content-Type", "application/json")
	if s.refused != nil {
		w.WriteHeader(int(s.refused.Code))
		_ = json.NewEncoder(w).Encode(s.refused)
		return
	}
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(sent)
}

func (s *apiServer) load(marks ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.marks = marks
}

func (s *apiServer) asked() (creates, connections int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.creates, len(s.callers)
}

// config reaches a server by its certificate's name.
func (s *apiServer) config() *rest.Config {
	return &rest.Config{Host: s.URL, BearerToken: "token", TLSClientConfig: rest.TLSClientConfig{
		ServerName: "example.com", CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}),
	}}
}

// slicesOf lists servers, each at its own port, in the EndpointSlice of API servers.
func slicesOf(servers ...*apiServer) *networking.EndpointSlice {
	slice := &networking.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"}}
	slice.Endpoints = []networking.Endpoint{{Addresses: []string{"127.0.0.1"}}}
	for _, s := range servers {
		_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
		number, _ := strconv.ParseInt(port, 10, 32)
		n, name := int32(number), "https"
		slice.Ports = append(slice.Ports, networking.EndpointPort{Name: &name, Port: &n})
	}
	return slice
}

func prober(t *testing.T, config *rest.Config, objects ...runtime.Object) (*probe.Prober, *fake.Clientset, func() int) {
	t.Helper()
	client := fake.NewClientset(objects...)
	var mu sync.Mutex
	requests := 0
	p, err := probe.New(probe.Options{Config: config, Slices: client.DiscoveryV1(), Namespace: "quaymaster", Requested: func() {
		mu.Lock()
		defer mu.Unlock()
		requests++
	}})
	if err != nil {
		t.Fatal(err)
	}
	return p, client, func() int {
		mu.Lock()
		defer mu.Unlock()
		return requests
	}
}

// TestEachServer: every API server must have called the webhooks of both marks, and each is
// asked once for a mark that it has reported.
func TestEachServer(t *testing.T) {
	fast, slow := start(t, mutating, validating), start(t)
	p, _, requests := prober(t, fast.config(), slicesOf(fast, slow))
	for _, row := range []struct {
		reason string
		loaded []string
		err    string
	}{
		{"one has loaded nothing", nil, mutating + " and " + validating},
		{"one has loaded the mutating configuration alone", []string{mutating}, "at " + validating},
		{"one has another version of a configuration", []string{mutating, validating[:33] + "ffffffffffffffff"}, "at " + validating},
		{"both have loaded both", []string{validating, mutating}, ""},
	} {
		slow.load(row.loaded...)
		err := p.Probe(t.Context(), mutating, validating)
		if (err == nil) != (row.err == "") || err != nil && (!strings.Contains(err.Error(), row.err) || !strings.Contains(err.Error(), slow.URL) || strings.Contains(err.Error(), fast.URL)) {
			t.Errorf("%s: %v", row.reason, err)
		}
	}
	if n, _ := fast.asked(); n != 1 {
		t.Errorf("the one that had both at once was asked %d times", n)
	}
	if n, connections := slow.asked(); n != 4 || connections != 4 || requests() != 5 {
		t.Errorf("the other one was asked %d times over %d connections, of %d requests", n, connections, requests())
	}
	if err := p.Probe(t.Context(), mutating, validating); err != nil || requests() != 5 {
		t.Errorf("a reported mark was asked again: %v, %d requests", err, requests())
	}
	other := strings.Repeat("0", 32) + "-0123456789abcdef"
	if err := p.Probe(t.Context(), other, validating); err == nil || requests() != 7 {
		t.Errorf("of another mark: %v, %d requests", err, requests())
	}
}

// otherCertificate starts a server with a certificate that the client's authority has not signed.
func otherCertificate(t *testing.T, marks ...string) *apiServer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"example.com"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	s := &apiServer{marks: marks, callers: map[string]bool{}}
	s.Server = httptest.NewUnstartedServer(s)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// TestThroughService: where API servers are not known or cannot be reached one by one, each
// of ServiceRequests creates must show both marks, over a connection of its own.
func TestThroughService(t *testing.T) {
	gone := start(t)
	gone.Close()
	stranger := otherCertificate(t, mutating, validating)
	for _, row := range []struct {
		reason  string
		objects func(*apiServer) []runtime.Object
		refuse  error // of the EndpointSlice
		extra   int   // requests beside those through the Service
	}{
		{"no EndpointSlice", func(*apiServer) []runtime.Object { return nil }, nil, 0},
		{"the EndpointSlice may not be read", func(s *apiServer) []runtime.Object { return []runtime.Object{slicesOf(s)} }, apierrors.NewForbidden(schema.GroupResource{}, "kubernetes", errors.New("no")), 0},
		{"an empty one", func(*apiServer) []runtime.Object { return []runtime.Object{slicesOf()} }, nil, 0},
		{"one that nothing listens at", func(*apiServer) []runtime.Object { return []runtime.Object{slicesOf(gone)} }, nil, 1},
		{"one with another certificate", func(*apiServer) []runtime.Object { return []runtime.Object{slicesOf(stranger)} }, nil, 1},
		{"one of two cannot be reached", func(s *apiServer) []runtime.Object { return []runtime.Object{slicesOf(gone, s)} }, nil, 2},
	} {
		t.Run(row.reason, func(t *testing.T) {
			s := start(t, mutating, validating)
			p, client, requests := prober(t, s.config(), row.objects(s)...)
			if row.refuse != nil {
				client.PrependReactor("get", "endpointslices", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, row.refuse })
			}
			if err := p.Probe(t.Context(), mutating, validating); err != nil {
				t.Fatal(err)
			}
			creates, connections := s.asked()
			if requests() != probe.ServiceRequests+row.extra || creates < probe.ServiceRequests || connections != creates {
				t.Errorf("%d requests, %d creates over %d connections", requests(), creates, connections)
			}
			before := requests()
			if err := p.Probe(t.Context(), validating, mutating); err != nil {
				t.Fatal(err)
			}
			if n := requests() - before; n > probe.ServiceRequests+1 {
				t.Errorf("%d requests for the next marks: an address that cannot be reached is tried each time", n)
			}
			s.load(mutating)
			before = requests()
			if err := p.Probe(t.Context(), mutating, validating); err == nil || requests()-before > 2 {
				t.Errorf("without the validating configuration: %v after %d requests", err, requests()-before)
			}
		})
	}
	if n, _ := stranger.asked(); n != 0 {
		t.Error("the token was sent to a server with another certificate")
	}
}

// TestRefused: a refusal counts as seen if the webhooks were called before. Otherwise the error
// names a missing right.
func TestRefused(t *testing.T) {
	status := func(code int32, reason metav1.StatusReason) *metav1.Status {
		return &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: code, Reason: reason, Message: "no"}
	}
	for _, row := range []struct {
		reason    string
		marks     []string
		refused   *metav1.Status
		err       bool
		forbidden bool
	}{
		{"forbidden by role", nil, status(403, metav1.StatusReasonForbidden), true, true},
		{"a quota, after the webhooks", []string{mutating, validating}, status(403, metav1.StatusReasonForbidden), false, false},
		{"another webhook denies, between the two", []string{mutating}, status(400, metav1.StatusReasonBadRequest), true, false},
		{"an internal error", nil, status(500, metav1.StatusReasonInternalError), true, false},
	} {
		for form, objects := range map[string]func(*apiServer) []runtime.Object{
			"one by one":          func(s *apiServer) []runtime.Object { return []runtime.Object{slicesOf(s)} },
			"through the Service": func(*apiServer) []runtime.Object { return nil },
		} {
			t.Run(row.reason+", "+form, func(t *testing.T) {
				s := start(t, row.marks...)
				s.refused = row.refused
				p, _, _ := prober(t, s.config(), objects(s)...)
				err := p.Probe(t.Context(), mutating, validating)
				_, forbidden := errors.AsType[*probe.ForbiddenError](err)
				if (err != nil) != row.err || forbidden != row.forbidden {
					t.Errorf("got %v", err)
				}
			})
		}
	}
}

// TestUnauthorized: what refuses the client's credentials is no API server of the cluster,
// and the Service is asked.
func TestUnauthorized(t *testing.T) {
	proxy, s := start(t), start(t, mutating, validating)
	proxy.refused = &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Code: 401, Reason: metav1.StatusReasonUnauthorized}
	p, _, requests := prober(t, s.config(), slicesOf(proxy))
	if err := p.Probe(t.Context(), mutating, validating); err != nil || requests() != 1+probe.ServiceRequests {
		t.Errorf("%v after %d requests", err, requests())
	}
}

func TestEnds(t *testing.T) {
	s := start(t, mutating, validating)
	p, _, _ := prober(t, s.config(), slicesOf(s))
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := p.Probe(ctx, mutating, validating); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := p.Probe(t.Context(), mutating, validating); err != nil {
		t.Errorf("the address counts as unreachable: %v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, o := range []probe.Options{
		{Slices: fake.NewClientset().DiscoveryV1(), Namespace: "x"}, {Config: &rest.Config{}, Namespace: "x"}, {Config: &rest.Config{}, Slices: fake.NewClientset().DiscoveryV1()},
	} {
		if _, err := probe.New(o); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
	if slices.Contains(strings.Split(probe.Warning("a"), " "), "") {
		t.Error("the warning has an empty word")
	}
}
