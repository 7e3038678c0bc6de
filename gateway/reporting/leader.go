package reporting

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/quaymaster/quaymaster/cluster/lease"
	"github.com/quaymaster/quaymaster/webhook/peers"
	"github.com/quaymaster/quaymaster/webhook/ui"
)

// LeaderView implements ui.Leader: it requests the leader's dashboard over the channel of the
// replicas.
type LeaderView struct {
	leader *lease.Leader
	own    string // this replica
	log    *slog.Logger
	others atomic.Pointer[otherViews] // nil until this replica has joined
}

type otherViews struct {
	members *lease.Members
	asks    *peers.Client
}

// NewLeaderView shows the dashboard of the leader; own is the name of this replica.
func NewLeaderView(leader *lease.Leader, own string, log *slog.Logger) *LeaderView {
	return &LeaderView{leader: leader, own: own, log: log}
}

// Meet sets the other replicas.
func (v *LeaderView) Meet(members *lease.Members, asks *peers.Client) {
	v.others.Store(&otherViews{members, asks})
}

// View implements ui.Leader. Viewers of the dashboard see its errors, which therefore name only
// the replica without a response.
func (v *LeaderView) View(ctx context.Context, target string) (status int, body []byte, err error) {
	holder := v.leader.Holder()
	others := v.others.Load()
	switch {
	case v.leader.Leads() || holder == v.own:
		return 0, nil, ui.ErrLeads
	case others == nil:
		return 0, nil, errors.New("it does not know the other replicas")
	case holder == "":
		return 0, nil, errors.New("no replica leads just now")
	}
	for _, member := range others.members.Others() {
		if member.ID != holder {
			continue
		}
		shown, err := others.asks.View(ctx, member.Address, target)
		if err != nil {
			v.log.Debug("the replica that leads does not answer for the dashboard", slog.String("replica", holder), slog.String("error", err.Error()))
			break
		}
		return shown.Status, shown.Body, nil
	}
	return 0, nil, fmt.Errorf("the replica that leads, %s, does not answer", holder)
}
