package status

import (
	"github.com/quaymaster/quaymaster/gateway/native/record"
	"github.com/quaymaster/quaymaster/policy"
)

// Native is the record of the policies that API servers evaluate themselves.
type Native struct {
	States record.States
	// Version is the resourceVersion of the states; empty for none.
	Version string
	// LeftOut reports whether the configurations leave a policy out; nil means that they hold all.
	LeftOut func(*policy.Policy) bool
}

// coverage are the policies that the configurations hold.
func (n Native) coverage(policies []*policy.Policy) record.Coverage {
	holds := record.Coverage{States: n.Version, Policies: map[string]string{}}
	for _, p := range policies {
		if n.LeftOut == nil || !n.LeftOut(p) {
			holds.Policies[p.ID()] = p.Hash
		}
	}
	return holds
}

// of says where a policy is evaluated; empty if nothing is recorded about this version.
func (n Native) of(p *policy.Policy) string {
	state, ok := n.States[p.ID()]
	switch {
	case !ok || state.Hash != p.Hash:
		return ""
	case n.LeftOut != nil && n.LeftOut(p):
		return record.InServer.Text("")
	case state.Native:
		return record.InBoth.Text("")
	}
	return record.InWebhook.Text(state.Reason)
}
