package metrics_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/webhook/metrics"
)

func Example() {
	m := metrics.New(metrics.Build{Version: "v1.0.0"})
	m.RegistryAnswered("registry.example", http.StatusNotFound, 20*time.Millisecond)
	scraped := httptest.NewRecorder()
	m.Handler().ServeHTTP(scraped, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(scraped.Body.String()) {
		if strings.HasPrefix(line, "quaymaster_registry_requests_total") {
			fmt.Print(line)
		}
	}
	// Output: quaymaster_registry_requests_total{host="registry.example",status="4xx"} 1
}
