package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// nodeAPI serves the kubelet's endpoints for kubectl: the log of a pod, and a connection to
// its ports. Its pods are the process that runs for a release.
type nodeAPI struct {
	name    string
	running atomic.Pointer[replica]
	// ports are the process's addresses by the pod's ports.
	ports map[string]string
}

// startNode starts a node, and makes it known to the API server.
func (r *release) startNode(t *testing.T, ports map[string]string) *nodeAPI {
	t.Helper()
	n := &nodeAPI{name: "node", ports: ports}
	routes := http.NewServeMux()
	routes.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", n.log)
	routes.HandleFunc("POST /portForward/{namespace}/{pod}", n.forward)
	server := httptest.NewTLSServer(routes)
	t.Cleanup(server.Close)
	host, text, err := net.SplitHostPort(server.Listener.Addr().String())
	must(t, err)
	port, err := strconv.ParseInt(text, 10, 32)
	must(t, err)
	_, err = r.client.CoreV1().Nodes().Create(t.Context(), &core.Node{
		ObjectMeta: meta.ObjectMeta{Name: n.name},
		Status: core.NodeStatus{
			Addresses:       []core.NodeAddress{{Type: core.NodeInternalIP, Address: host}},
			DaemonEndpoints: core.NodeDaemonEndpoints{KubeletEndpoint: core.DaemonEndpoint{Port: int32(port)}},
		},
	}, meta.CreateOptions{})
	must(t, err)
	return n
}

// tend schedules the pods of the release, and removes those that were deleted, as a scheduler
// and a kubelet do.
func (r *release) tend(ctx context.Context, on string) error {
	pods := r.client.CoreV1().Pods(releaseNamespace)
	all, err := pods.List(ctx, meta.ListOptions{})
	if err != nil {
		return err
	}
	for _, p := range all.Items {
		switch {
		case p.DeletionTimestamp != nil:
			err = pods.Delete(ctx, p.Name, *meta.NewDeleteOptions(0))
		case p.Spec.NodeName == "":
			err = pods.Bind(ctx, &core.Binding{ObjectMeta: meta.ObjectMeta{Name: p.Name}, Target: core.ObjectReference{Kind: "Node", Name: on}}, meta.CreateOptions{})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (n *nodeAPI) log(w http.ResponseWriter, r *http.Request) {
	running := n.running.Load()
	if running == nil {
		http.Error(w, "the container does not run", http.StatusNotFound)
		return
	}
	lines := strings.SplitAfter(running.Log(), "\n")
	if tail, err := strconv.Atoi(r.URL.Query().Get("tailLines")); err == nil && tail >= 0 && tail < len(lines) {
		lines = lines[len(lines)-tail-1:] // the last one is empty, behind the end
	}
	_, _ = io.WriteString(w, strings.Join(lines, ""))
}

// forward is the kubelet's side of a port forward (portforward.k8s.io over SPDY/3.1): for
// each connection a stream for errors, then one for data, which share a request ID.
func (n *nodeAPI) forward(w http.ResponseWriter, r *http.Request) {
	if _, err := httpstream.Handshake(r, w, []string{"portforward.k8s.io"}); err != nil {
		return // the handshake has reported it
	}
	var failures sync.Map
	connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, replied <-chan struct{}) error {
		id := s.Headers().Get(core.PortForwardRequestIDHeader)
		if s.Headers().Get(core.StreamType) == core.StreamTypeError {
			failures.Store(id, s)
			return nil
		}
		found, ok := failures.LoadAndDelete(id)
		failure, isStream := found.(httpstream.Stream)
		if !ok || !isStream {
			return fmt.Errorf("request %s has no stream for errors", id)
		}
		go func() {
			<-replied
			if err := join(s, n.ports[s.Headers().Get(core.PortHeader)]); err != nil {
				_, _ = io.WriteString(failure, err.Error())
			}
			_ = failure.Close()
			_ = s.Close()
		}()
		return nil
	})
	if connection == nil {
		return // the upgrade has reported it
	}
	defer func() { _ = connection.Close() }()
	select {
	case <-connection.CloseChan():
	case <-r.Context().Done():
	}
}

// join copies between a stream and an address until both ends are closed.
func join(s httpstream.Stream, address string) error {
	connection, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	go func() {
		_, _ = io.Copy(connection, s)
		if c, ok := connection.(*net.TCPConn); ok {
			_ = c.CloseWrite()
		}
	}()
	_, err = io.Copy(s, connection)
	return err
}
