package kms_test

import (
	"strings"
	"testing"

	"github.com/sigstore/sigstore/pkg/signature/kms/aws"
	"github.com/sigstore/sigstore/pkg/signature/kms/azure"
	"github.com/sigstore/sigstore/pkg/signature/kms/gcp"
	"github.com/sigstore/sigstore/pkg/signature/kms/hashivault"

	"github.com/quaymaster/quaymaster/verify/trust"
)

// TestReferences: a reference that is accepted on load is accepted by the provider, too.
func TestReferences(t *testing.T) {
	const uuid = "1234abcd-12ab-34cd-56ef-1234567890ab"
	const arn = "arn:aws:kms:us-east-2:111122223333:"
	const google = "gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/k"
	valid := func(ref string) (err error) {
		switch scheme, _, _ := strings.Cut(ref, "://"); scheme {
		case "awskms":
			return aws.ValidReference(ref)
		case "azurekms":
			return azure.ValidReference(ref)
		case "gcpkms":
			return gcp.ValidReference(ref)
		case "hashivault":
			return hashivault.ValidReference(ref)
		}
		return nil
	}
	for ref, good := range map[string]bool{
		"awskms:///" + uuid: true, "awskms:///mrk-" + strings.ReplaceAll(uuid, "-", ""): true, "awskms:///" + arn + "key/" + uuid: true,
		"awskms:///alias/a": true, "awskms:///alias/team/a_b-c": true, "awskms:///" + arn + "alias/a": true,
		"awskms://localhost:4566/" + uuid: true, "awskms://kms.example/alias/a": true, "awskms://[::1]:4566/alias/a": true,
		"awskms:///arn:aws-cn:kms:cn-north-1:111122223333:key/" + uuid: true,

		"awskms://": false, "awskms:///": false, "awskms:///a": false, "awskms://" + uuid: false, "awskms://alias/a": false, "awskms:///alias/": false,
		"awskms:///alias": false, "awskms:///key/" + uuid: false, "awskms:///" + uuid + "/": false, "awskms:///" + uuid[1:]: false, "awskms:///alias/a b": false,
		"awskms://" + arn + "key/" + uuid:    false, // a provider takes it for a host and a key
		"awskms://" + arn + "alias/a":        false,
		"awskms://host/alias":                false,
		"awskms://host:port/alias/a":         false,
		"awskms://user@host/alias/a":         false,
		"awskms://host/path/alias/a":         false,
		"awskms://ho st/alias/a":             false,
		"awskms:///arn:aws:s3:::key/" + uuid: false, "awskms:///arn:aws:kms:us-east-2:1:key/" + uuid: false, "awskms:///" + arn + uuid: false,

		"azurekms://vault.vault.azure.net/key": true, "azurekms://vault.vault.azure.net/key/0123abc": true, "azurekms://vault.vault.azure.net/key/": true,
		"azurekms://": false, "azurekms://vault": false, "azurekms:///key": false, "azurekms://vault/": false, "azurekms://vault/key/V1": false,
		"azurekms://vault/key/1/2": false, "azurekms://host?.vault.azure.net/key": false, "azurekms://vault/k_y": false,

		google: true, google + "/versions/1": true, google + "/cryptoKeyVersions/1": true,
		"gcpkms://": false, "gcpkms://projects/p": false, google + "/": false, google + "/versions/": false, google + "/version/1": false,
		strings.Replace(google, "/r/", "//", 1): false, google + " ": false,

		"hashivault://release": true, "hashivault://a": true, "hashivault://a.b-c_d": true,
		"hashivault://": false, "hashivault://a/b": false, "hashivault://-a": false, "hashivault://a.": false, "hashivault://a b": false,

		"k8s://team/key": true, "k8s://team/key.pub": true,
		"k8s://": false, "k8s://team": false, "k8s:///key": false, "k8s://team/": false, "k8s://team/a/b": false, "k8s://Team/key": false, "k8s://team/-a": false,

		"": false, "key": false, "openbao://a": false, "file:///a": false, "pkcs11:token=a": false, "AWSKMS:///alias/a": false, " awskms:///alias/a": false,
	} {
		err := trust.CheckReference(ref)
		if (err == nil) != good {
			t.Errorf("%q: %v, want %t", ref, err, good)
		}
		if refused := valid(ref); err == nil && refused != nil {
			t.Errorf("%q passes, and its provider refuses it: %v", ref, refused)
		}
	}
}
