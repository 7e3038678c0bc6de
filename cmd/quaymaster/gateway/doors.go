package gateway

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"slices"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook"
	"github.com/quaymaster/quaymaster/webhook/admission"
	"github.com/quaymaster/quaymaster/webhook/configuration"
	"github.com/quaymaster/quaymaster/webhook/peers"
)

// failure lets the current policies say what becomes of what was not decided.
type failure struct{ state *gate.Current }

// FailOpen implements admission.Failure.
func (f failure) FailOpen(subject *policy.Subject) bool {
	now, err := f.state.Snapshot(context.Background())
	return err == nil && now.FailOpen(subject)
}

// newDoors makes the doors by their paths.
func newDoors(c Configuration, config admission.Config, checker admission.Checker, with ...admission.Option) (map[string]webhook.Door, error) {
	objects := append(slices.Clone(with), admission.WithMutateControllers(mutated(c.Webhooks.MutateControllers)...))
	doors := map[string]webhook.Door{}
	for path, door := range map[string]admission.Door{configuration.MutatePath: admission.Mutate, configuration.ValidatePath: admission.Validate} {
		config.Door = door
		handler, err := admission.New(config, objects...)
		if err != nil {
			return nil, err
		}
		doors[path] = webhook.Door{Handler: handler}
	}
	compile, err := admission.NewPolicies(checker, with...)
	if err != nil {
		return nil, err
	}
	doors[configuration.DocumentsPath] = webhook.Door{Handler: compile}
	return doors, c.Listen.guard(doors)
}

// guard has the doors ask for client certificates, where the settings want it.
func (l Listen) guard(doors map[string]webhook.Door) error {
	if l.ClientCA == "" {
		return nil
	}
	authorities, err := os.ReadFile(l.ClientCA)
	if err != nil {
		return fmt.Errorf("listen.clientCA: %w", err)
	}
	callers, err := webhook.NewCallers(authorities, l.ClientNames...)
	if err != nil {
		return fmt.Errorf("listen.clientCA %s: %w", l.ClientCA, err)
	}
	for _, path := range l.ClientDoors {
		if _, ok := doors[path]; !ok {
			return fmt.Errorf("listen.clientDoors: there is no door %s", path)
		}
	}
	for path, door := range doors {
		if len(l.ClientDoors) == 0 || slices.Contains(l.ClientDoors, path) {
			door.Callers = callers
			doors[path] = door
		}
	}
	return nil
}

// mutated gives the kinds of the settings their groups.
func mutated(kinds []string) []admission.Kind {
	groups := map[string]string{"Job": "batch", "CronJob": "batch", "ReplicationController": "", "PodTemplate": ""}
	var list []admission.Kind
	for _, kind := range kinds {
		group, known := groups[kind]
		if !known {
			group = "apps"
		}
		list = append(list, admission.Kind{Group: group, Kind: kind})
	}
	return list
}

// peerDoor lets other replicas ask; who may is a matter of the key.
func peerDoor(doors map[string]webhook.Door, key []byte, memory peers.Memory) error {
	door, err := peers.NewDoor(peers.DoorConfig{Key: key, Memory: memory})
	if err != nil {
		return err
	}
	doors[peers.Path] = webhook.Door{Handler: door}
	return nil
}

func hostOf(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return parsed.Hostname()
}
