package inventory_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/inventory"
	"github.com/quaymaster/quaymaster/verify"
)

const (
	keyA = "aaaa1111bbbb2222cccc3333dddd4444eeee5555ffff6666aaaa7777bbbb8888"
	keyB = "bbbb1111bbbb2222cccc3333dddd4444eeee5555ffff6666aaaa7777bbbb8888"
)

var begin = time.Date(2026, 3, 14, 9, 26, 53, 0, time.UTC)

// clock is what time it is.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func newInventory(t testing.TB) (*inventory.Inventory, *clock) {
	t.Helper()
	c := &clock{begin}
	made, err := inventory.New(inventory.Options{Replica: "a", Now: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	return made, c
}

func digest(name string) image.Digest { return image.DigestOf([]byte(name)) }

// proved is an image that a key signed, as a record has it.
func proved(reference, key string) report.Image {
	return report.Image{
		Container: "c", Written: reference, Reference: reference, Digest: digest(reference), Result: gate.Allow, Matched: true,
		Decisions: []report.Decision{{
			Policy: report.Policy{Kind: "ClusterPolicy", Name: "signed", Hash: "h"}, Rule: "r", Action: policy.Enforce, Result: policy.Pass, Effect: report.EffectAllow,
			Proofs: []report.Proof{{Role: "signature", Format: "cosign", Signer: verify.Signer{KeyFingerprint: key}}},
		}},
	}
}

// unsigned is an image without a signature.
func unsigned(reference string) report.Image {
	reason := policy.Reason{Code: "unsigned", Message: "no signature was found"}
	return report.Image{
		Container: "c", Written: reference, Reference: reference, Digest: digest(reference), Result: gate.Deny, Matched: true, Reasons: []policy.Reason{reason},
		Decisions: []report.Decision{{
			Policy: report.Policy{Kind: "ClusterPolicy", Name: "signed", Hash: "h"}, Rule: "r", Action: policy.Enforce, Result: policy.Fail, Effect: report.EffectDeny, Reasons: []policy.Reason{reason},
		}},
	}
}

func record(answer gate.Result, images ...report.Image) report.Record {
	return report.Record{Result: answer, Images: images, PolicySetHash: "p", TrustGeneration: "t"}
}

// podOf is a pod of a controller.
func podOf(namespace, owner string, n int) report.Resource {
	return report.Resource{
		APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: fmt.Sprintf("%s-%d", owner, n), UID: fmt.Sprintf("%s-%s-%d", namespace, owner, n),
		Owner: &report.Owner{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: owner, UID: owner},
	}
}

func admitted(at time.Time) report.Occasion {
	return report.Occasion{Time: at, Process: report.ProcessAdmission, Endpoint: "validate", Operation: "CREATE", User: "u", Allowed: true}
}

func refused(at time.Time) report.Occasion {
	o := admitted(at)
	o.Allowed = false
	return o
}

func scanned(at time.Time) report.Occasion {
	return report.Occasion{Time: at, Process: report.ProcessScan}
}

// images returns all that a query asks for.
func images(t testing.TB, of *inventory.Inventory, q inventory.ImageQuery) []inventory.Image {
	t.Helper()
	page, err := of.Images(q)
	if err != nil {
		t.Fatal(err)
	}
	return page.Items
}
