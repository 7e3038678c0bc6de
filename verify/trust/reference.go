package trust

import (
	"fmt"
	"regexp"
	"strings"
)

// scheme is a kind of reference to a key that is looked up.
type scheme struct {
	prefix string
	form   *regexp.Regexp // of the part after the scheme
	want   string
}

const (
	uuidForm = `m?r?k?-?[A-Fa-f0-9]{8}-?[A-Fa-f0-9]{4}-?[A-Fa-f0-9]{4}-?[A-Fa-f0-9]{4}-?[A-Fa-f0-9]{12}`
	arnForm  = `arn:(?:aws|aws-us-gov|aws-cn):kms:[a-z0-9-]+:\d{12}:`
	hostForm = `[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]{1,5})?|\[[0-9A-Fa-f:.]+\](?::[0-9]{1,5})?`
	nameForm = `[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?` // of a Kubernetes object
)

// The forms after each scheme. A form accepts only references that sigstore's provider accepts
// and that can exist in the service: awskms://arn:aws:kms:.../UUID would be a key at the host
// "arn:aws:kms:...".
var (
	awsForm    = regexp.MustCompile(`^(?:` + hostForm + `)?/(?:` + uuidForm + `|` + arnForm + `key/` + uuidForm + `|(?:` + arnForm + `)?alias/[A-Za-z0-9:/_-]+)$`)
	azureForm  = regexp.MustCompile(`^(?:` + hostForm + `)/[A-Za-z0-9-]{1,127}(?:/[a-z0-9]*)?$`)
	gcpForm    = regexp.MustCompile(`^projects/[^/\s]+/locations/[^/\s]+/keyRings/[^/\s]+/cryptoKeys/[^/\s]+(?:/(?:cryptoKeyVersions|versions)/[^/\s]+)?$`)
	vaultForm  = regexp.MustCompile(`^\w(?:[\w.-]*\w)?$`)
	secretForm = regexp.MustCompile(`^` + nameForm + `/` + nameForm + `$`)
)

// schemes are the supported kinds of reference. Others are refused, because sigstore's kms
// package would run a program for them.
func schemes() [5]scheme {
	return [...]scheme{
		{"awskms://", awsForm, "awskms://[HOST[:PORT]]/KEY, where KEY is the identifier, the ARN or alias/NAME of a key, or the ARN of an alias"},
		{"azurekms://", azureForm, "azurekms://VAULT-HOST/KEY[/VERSION]"},
		{"gcpkms://", gcpForm, "gcpkms://projects/PROJECT/locations/LOCATION/keyRings/RING/cryptoKeys/KEY[/versions/VERSION]"},
		{"hashivault://", vaultForm, "hashivault://KEY"},
		{secretScheme, secretForm, "k8s://namespace/name"},
	}
}

// IsLookup reports whether a key reference is looked up (a KMS URI or a Secret)
// rather than being the key itself.
func IsLookup(ref string) bool {
	for _, s := range schemes() {
		if strings.HasPrefix(ref, s.prefix) {
			return true
		}
	}
	return false
}

// IsKMS reports whether a key reference is a KMS URI.
func IsKMS(ref string) bool { return IsLookup(ref) && !strings.HasPrefix(ref, secretScheme) }

// CheckReference refuses a reference that cannot lead to a key: of an unknown scheme, or
// malformed. It sends no request.
func CheckReference(ref string) error {
	for _, s := range schemes() {
		rest, is := strings.CutPrefix(ref, s.prefix)
		switch {
		case !is:
		case !s.form.MatchString(rest):
			return fmt.Errorf("%q is malformed: want %s", shorten(ref), s.want)
		default:
			return nil
		}
	}
	return fmt.Errorf("%q: want awskms://, azurekms://, gcpkms://, hashivault:// or k8s://", shorten(ref))
}
