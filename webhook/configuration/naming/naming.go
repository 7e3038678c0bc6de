// Package naming names the webhooks of a configuration. The names are a contract, which
// docs/gateway.md lists under "Webhooks": they begin denials of the API server, as in
// images.validate.quaymaster.dev.
package naming

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Class is what everything that a webhook evaluates has in common besides its namespaces. It
// determines the name, so that a policy that is added or removed does not rename a webhook.
type Class struct {
	// Closed: the failure policy is Fail.
	Closed bool
	// Seconds is the timeout.
	Seconds int32
	// Spec: workloads with all images in spec. Itself: Namespaces. Others: kinds of policies and
	// the like. Record: Leases and Events.
	Spec, Itself, Others, Record bool
	// Labelled: only namespaces with a label.
	Labelled bool
	// Except: all namespaces but some, in place of some.
	Except bool
}

// Usual timeouts in seconds, which names do not mention.
type Usual struct{ Objects, Records, Shadow int32 }

// Name returns the first label of the names of a class's webhooks for all namespaces.
func (c Class) Name(shadow bool, usual Usual) string {
	name := "ignore"
	switch {
	case c.Record:
		return "records" + c.suffix(usual.Records)
	case c.Others && shadow:
		return "documents" + c.suffix(usual.Shadow)
	case c.Others:
		return "documents" + c.suffix(usual.Objects)
	case c.Spec:
		name = "images"
	case c.Itself:
		name = "namespaces"
	case c.Closed:
		name = "fail"
	case shadow:
		name = "objects"
	}
	if shadow {
		return name + c.suffix(usual.Shadow)
	}
	if !c.Closed && (c.Spec || c.Itself) {
		name += "-ignore"
	}
	return name + c.suffix(usual.Objects)
}

// suffix tells a class from that with the usual timeout for all namespaces.
func (c Class) suffix(usual int32) string {
	suffix := ""
	if c.Seconds != usual {
		suffix = fmt.Sprintf("-%ds", c.Seconds)
	}
	if c.Labelled {
		suffix += "-labelled"
	}
	return suffix
}

// short is the length of a sum in a name.
const short = 8

// Apart returns a name for one of several webhooks of a class, with the beginning of the sum of its
// identity. Users of namespaces choose that identity, so the name has a longer sum where another
// webhook has the short one.
func Apart(name, identity string, taken map[string]bool) string {
	sum := sha256.Sum256([]byte(identity))
	long := hex.EncodeToString(sum[:16])
	if brief := name + "-" + long[:short]; !taken[brief] {
		return brief
	}
	return name + "-" + long
}
