package keychain_test

import (
	"context"
	"fmt"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/keychain"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

// An image is looked at with the credential of the pod that wants to run it.
func Example() {
	server := registrytest.Start(registrytest.Options{
		Auth: registrytest.Auth{Scheme: registrytest.Basic, Username: "user", Password: password},
	})
	defer server.Close()
	server.PutImage("team/app", "v1", "content")
	client, err := registry.New(registry.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	secrets := &cluster{secrets: map[string]secret{"team/pull": login(server.Host() + " user:" + password)}}
	keys, err := keychain.New(keychain.Config{Registry: client, Secrets: secrets})
	if err != nil {
		fmt.Println(err)
		return
	}
	ref := image.MustParse(server.Host() + "/team/app:v1")
	for _, request := range []keychain.Request{
		{Namespace: "team", PullSecrets: []string{"pull"}},
		{Namespace: "team"},
	} {
		session, scope, err := keys.Open(context.Background(), request, ref.Repository())
		if err != nil {
			fmt.Println(err)
			return
		}
		_, err = session.Resolve(context.Background(), ref)
		fmt.Printf("anonymous: %t, %q\n", scope == "anonymous", image.KindOf(err))
	}
	// Output:
	// anonymous: false, ""
	// anonymous: true, "refused"
}
