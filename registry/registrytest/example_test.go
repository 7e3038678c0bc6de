package registrytest_test

import (
	"fmt"
	"net/http"

	"github.com/quaymaster/quaymaster/registry/registrytest"
)

// A registry that answers honestly once and then goes down.
func Example() {
	server := registrytest.Start(registrytest.Options{Faults: []registrytest.Fault{
		{Method: http.MethodHead, Kind: registrytest.Manifest, Nth: 2, Do: registrytest.Status(http.StatusServiceUnavailable)},
	}})
	defer server.Close()
	server.PutImage("app", "v1", "content")
	for range 2 {
		answer, err := http.Head(server.URL() + "/v2/app/manifests/v1")
		if err != nil {
			fmt.Println(err)
			return
		}
		_ = answer.Body.Close()
		fmt.Println(answer.StatusCode)
	}
	fmt.Println(server.Count(http.MethodHead, registrytest.Manifest), "requests in", server.Rounds(), "rounds")
	// Output:
	// 200
	// 503
	// 2 requests in 2 rounds
}
