package gateway

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/engine"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook"
	"github.com/quaymaster/quaymaster/webhook/admission"
	"github.com/quaymaster/quaymaster/webhook/configuration"
)

// The paths of the optional endpoints.
const (
	imageReviewPath = "/imagereview"
	dataVerifyPath  = "/externaldata/verify"
	dataMutatePath  = "/externaldata/mutate"
	apiPath         = "/api/v1/verify"
)

// paths are the active endpoints: those of the API server's webhooks, and the enabled optional
// ones.
func (d Doors) paths() []string {
	list := []string{configuration.MutatePath, configuration.ValidatePath, configuration.DocumentsPath, configuration.ShadowPath, configuration.ShadowDocumentsPath, configuration.ProbePath}
	if d.ImageReview {
		list = append(list, imageReviewPath)
	}
	if d.ExternalData {
		list = append(list, dataVerifyPath, dataMutatePath)
	}
	if d.API.isOpen() {
		list = append(list, apiPath)
	}
	return list
}

// failure applies the current policies to requests without a decision.
type failure struct{ state *gate.Current }

// FailOpen implements admission.Failure.
func (f failure) FailOpen(subject *policy.Subject) bool {
	now, err := f.state.Snapshot(context.Background())
	return err == nil && now.FailOpen(subject)
}

// MayMutate implements admission.ObjectRules. It is true while the policies are not available.
func (f failure) MayMutate(subject *policy.Subject) bool {
	now, err := f.state.Snapshot(context.Background())
	return err != nil || now.Policies == nil || now.Policies.MayMutate(subject) || now.Policies.NeedsRequester(subject)
}

// MayValidate implements admission.ObjectRules.
func (f failure) MayValidate(subject *policy.Subject) bool {
	now, err := f.state.Snapshot(context.Background())
	return err != nil || now.Policies == nil || now.Policies.MayValidate(subject)
}

// MayPin implements admission.ObjectRules.
func (f failure) MayPin(subject *policy.Subject) bool {
	now, err := f.state.Snapshot(context.Background())
	return err != nil || now.Policies == nil || now.Policies.MayPin(subject)
}

// newDoors makes the endpoints of the API server's webhooks by their paths.
func newDoors(c Configuration, objects admission.Config, documents admission.PolicyConfig) (doors map[string]http.Handler, err error) {
	objects.Controllers, objects.OnlyPods = mutated(c.Webhooks.MutateControllers), c.Webhooks.OnlyPods
	var made modeDoors
	for endpoint, handler := range map[admission.Endpoint]**admission.Handler{admission.Mutate: &made.mutate, admission.Validate: &made.validate} {
		objects.Endpoint = endpoint
		*handler, err = admission.New(objects)
		if err != nil {
			return nil, err
		}
	}
	made.policies, err = admission.NewPolicies(documents)
	if err != nil {
		return nil, err
	}
	return made.byPath(c)
}

// reproduce returns the command that explains a denial to a user.
func (g *gateway) reproduce() admission.Reproduce {
	if g.configuration.Standalone {
		return engine.ExplainFromFolders(g.configuration.Policies.Folders)
	}
	return engine.ExplainFromCluster(g.policies.resources)
}

// requireCertificates requires client certificates at the endpoints that the settings select.
func requireCertificates(l Listen, open []string, doors map[string]webhook.Endpoint) error {
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
	asking := l.ClientDoors
	if len(asking) == 0 {
		asking = open
	}
	for _, path := range asking {
		door, ok := doors[path]
		if !ok {
			return fmt.Errorf("listen.clientDoors: there is no door %s: want one of %s", path, strings.Join(open, ", "))
		}
		door.Callers = callers
		doors[path] = door
	}
	return nil
}

// controllers are the kinds that can be pinned, with their groups.
func controllers() map[string]string {
	return map[string]string{
		"DaemonSet": "apps", "Deployment": "apps", "ReplicaSet": "apps", "StatefulSet": "apps",
		"CronJob": "batch", "Job": "batch", "PodTemplate": "", "ReplicationController": "",
	}
}

// controllerKinds are their names, for messages.
func controllerKinds() string {
	return strings.Join(slices.Sorted(maps.Keys(controllers())), ", ")
}

// mutated gives the kinds of the settings their groups.
func mutated(kinds []string) []admission.Kind {
	groups := controllers()
	var list []admission.Kind
	for _, kind := range kinds {
		list = append(list, admission.Kind{Group: groups[kind], Kind: kind})
	}
	return list
}

// hostOf returns the host of a URL; empty where there is none.
func hostOf(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return parsed.Hostname()
}
