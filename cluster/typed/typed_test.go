package typed_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/quaymaster/quaymaster/cluster/typed"
)

var (
	_ typed.Interface = (*typed.Clients)(nil)
	_ typed.Interface = (*kubernetes.Clientset)(nil)
	_ typed.Interface = (*fake.Clientset)(nil)
)

// Each method returns the client of its own group, over the connections that were given.
func TestGroups(t *testing.T) {
	paths := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { paths <- r.URL.Path }))
	defer server.Close()
	c, err := typed.New(&rest.Config{Host: server.URL}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	for want, client := range map[string]rest.Interface{
		"/":                                     c.Discovery().RESTClient(),
		"/apis/admissionregistration.k8s.io/v1": c.AdmissionregistrationV1().RESTClient(),
		"/apis/apps/v1":                         c.AppsV1().RESTClient(),
		"/apis/authentication.k8s.io/v1":        c.AuthenticationV1().RESTClient(),
		"/apis/authorization.k8s.io/v1":         c.AuthorizationV1().RESTClient(),
		"/api/v1":                               c.CoreV1().RESTClient(),
		"/apis/discovery.k8s.io/v1":             c.DiscoveryV1().RESTClient(),
		"/apis/events.k8s.io/v1":                c.EventsV1().RESTClient(),
		"/apis/rbac.authorization.k8s.io/v1":    c.RbacV1().RESTClient(),
	} {
		if err := client.Get().Do(t.Context()).Error(); err != nil {
			t.Fatal(err)
		}
		if got := <-paths; got != want {
			t.Errorf("a request for %s went to %s", want, got)
		}
	}
}

func TestNoHost(t *testing.T) {
	if _, err := typed.New(&rest.Config{Host: "http://%"}, http.DefaultClient); err == nil {
		t.Error("clients for a host that is none")
	}
}
