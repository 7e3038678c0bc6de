package typed_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/quaymaster/quaymaster/cluster/typed"
)

func ExampleNew() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop","labels":{"team":"web"}}}`)
	}))
	defer server.Close()
	clients, err := typed.New(&rest.Config{Host: server.URL}, server.Client())
	if err != nil {
		fmt.Println(err)
		return
	}
	namespace, err := clients.CoreV1().Namespaces().Get(context.Background(), "shop", metav1.GetOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(namespace.Labels["team"])
	// Output: web
}
