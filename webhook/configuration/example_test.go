package configuration_test

import (
	"encoding/pem"
	"fmt"
	"net/http/httptest"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/configuration"
)

func ExampleBuild() {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	configurations, err := configuration.Build(configuration.Input{
		Policies: []*policy.Policy{{
			Kind: "ClusterPolicy", Name: "signed",
			Targets: []policy.Target{{Group: "*", Version: "*", Kind: "Pod"}, {Group: "*", Version: "*", Kind: "Rollout"}},
		}},
		Resources: []configuration.Resource{{Version: "v1", Name: "pods", Kind: "Pod", Namespaced: true}},
		Endpoint:  configuration.Endpoint{Namespace: "quaymaster", Service: "quaymaster"},
		CABundle:  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		Namespace: "quaymaster",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, webhook := range configurations.Validating.Webhooks {
		fmt.Println(webhook.Name, webhook.Rules[0].Operations, webhook.Rules[0].Resources)
	}
	fmt.Println(configurations.Warnings[0].Policy)
	// Output:
	// images.validate.quaymaster.dev [CREATE] [pods]
	// images-updates.validate.quaymaster.dev [UPDATE] [pods]
	// ClusterPolicy/signed
}
