package kms

import (
	"net/url"
	"strings"
	"testing"
)

// FuzzEndpoint: for any URI of a policy, the host that the provider reads
// in it is Azure's, and AWS requests go to the configured host.
func FuzzEndpoint(f *testing.F) {
	for _, uri := range []string{
		"awskms:///alias/signing", "awskms://kms.example/alias/signing",
		"azurekms://quay.vault.azure.net/signing", "azurekms://quay.managedhsm.usgovcloudapi.net/signing/1",
		"azurekms://evil.example?.vault.azure.net/signing", "azurekms://evil.example#.vault.azure.net/signing",
		"azurekms://evil.example:1@quay.vault.azure.net/signing", `azurekms://evil.example\.vault.azure.net/signing`,
		"hashivault://signing", "gcpkms://projects/p", "",
	} {
		f.Add(uri)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		if (Providers{}).checkEndpoint(uri) != nil {
			return
		}
		if rest, is := strings.CutPrefix(uri, "awskms://"); is && rest != "" && rest[0] != '/' {
			t.Fatalf("%q names an endpoint", uri)
		}
		rest, is := strings.CutPrefix(uri, "azurekms://")
		if !is {
			return
		}
		host, _, _ := strings.Cut(rest, "/") // as sigstore's provider does
		read, err := url.Parse("https://" + host + "/")
		if err != nil {
			return
		}
		for _, end := range []string{".azure.net", ".azure.cn", ".usgovcloudapi.net"} {
			if strings.HasSuffix(strings.ToLower(read.Host), end) {
				return
			}
		}
		t.Fatalf("%q leads to %s", uri, read.Host)
	})
}
