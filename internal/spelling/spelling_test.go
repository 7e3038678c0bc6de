package spelling_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/internal/spelling"
)

func TestNearest(t *testing.T) {
	names := []string{"verifyImages", "validate", "mutate"}
	for name, want := range map[string]string{"verifyImage": "verifyImages", "verifyimages": "verifyImages", "validat": "validate", "mutation": "", "x": "", strings.Repeat("a", 100): ""} {
		if got := spelling.Nearest(name, names); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestNearestBounds: how far away a name may be, and how long.
func TestNearestBounds(t *testing.T) {
	long := strings.Repeat("a", 63)
	for _, c := range []struct{ name, candidate, want, reason string }{
		{"spce", "spec", "spec", "two letters swapped are one mistake"},
		{"psec", "spec", "spec", "at the beginning as well"},
		{"spcx", "spec", "", "a letter in the wrong place, and another one"},
		{"spxe", "spec", "", "another one, and a letter in the wrong place"},
		{"spe", "spec", "spec", "one letter is missing of three"},
		{"sp", "spec", "", "two of two are"},
		{"muta", "mutate", "", "two letters are missing of four"},
		{"mutatexy", "mutate", "mutate", "two letters too many of eight"},
		{"mutatexyz", "mutate", "", "three too many"},
		{long + "b", long + "c", long + "c", "as long as may be"},
		{long + "bb", long + "b", "", "a letter longer"},
		{long + "b", long + "bb", "", "a candidate that is a letter longer"},
	} {
		if got := spelling.Nearest(c.name, []string{c.candidate}); got != c.want {
			t.Errorf("%s: %q", c.reason, got)
		}
	}
	if got := spelling.Nearest("validat", []string{"validate", "validata"}); got != "validate" {
		t.Errorf("of two that are as near it is %q", got)
	}
}

func TestSimilar(t *testing.T) {
	names := []string{"verify", "version", "certificate-identity", "certificate-chain"}
	for _, c := range []struct{ reason, name, want string }{
		{"a misspelt name", "verfiy", "verify"},
		{"the beginning of one name", "veri", "verify"},
		{"of one, in another case", "VERS", "version"},
		{"of two", "certificate", ""},
		{"too short", "ve", ""},
		{"another name", "apply", ""},
	} {
		if got := spelling.Similar(c.name, names); got != c.want {
			t.Errorf("%s: %q", c.reason, got)
		}
	}
}

func ExampleDidYouMean() {
	fmt.Println("unknown field" + spelling.DidYouMean(spelling.Nearest("validat", []string{"validate"})))
	fmt.Println("unknown field" + spelling.DidYouMean(spelling.Nearest("zone", []string{"validate"})))
	// Output:
	// unknown field: did you mean validate?
	// unknown field
}

func ExampleNearest() {
	fmt.Println(spelling.Nearest("imageReferenzes", []string{"imageReferences", "imageExtractors"}))
	// Output: imageReferences
}
