// Package policystate reads the state of the policies of a cluster: the documents as a gateway compiles
// them, and the condition Ready that the gateway wrote (docs/gateway.md).
package policystate

import (
	"context"
	"fmt"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/setup"
	"github.com/quaymaster/quaymaster/policy/catalog"
)

// OfCluster reads the documents of the cluster that the flags name, with notes on settings of its gateway.
func OfCluster(ctx context.Context, t command.Terminal, flags *setup.Flags) ([]Entry, []string, error) {
	client, err := cluster.NewClient(cluster.ClientOptions{
		Kubeconfig: t.Kubeconfig(flags.Cluster.Kubeconfig), Context: flags.Cluster.Context, Version: t.Version(),
	})
	if err != nil {
		return nil, nil, fmt.Errorf("--context: %w", err)
	}
	reader, notes, err := flags.OpenCluster(ctx, t, nil)
	if err != nil {
		return nil, nil, err
	}
	defer reader.Close()
	if settings := reader.Configuration(); settings.Shadow() {
		notes = append(notes, "the gateway is in shadow mode: policies deny only in namespaces with the label quaymaster.dev/mode: enforce")
	}
	entries := Describe(reader.Entries(), reader.Policies().Policies())
	texts := reader.Texts()
	for i, from := range reader.Entries() {
		if from.State != catalog.Ours || from.Exception != nil { // exceptions have no condition
			continue
		}
		if err := entries[i].readStatus(ctx, client, from.Key, texts[from.Key]); err != nil {
			return nil, nil, err
		}
	}
	return entries, notes, nil
}
