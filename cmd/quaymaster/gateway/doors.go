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

// doorParts are the dependencies of the endpoints.
type doorParts struct {
	decider    admission.Decider
	namespaces admission.Namespaces
	roles      admission.Roles // may be nil
	failure    admission.Failure
	checker    admission.Checker
	recorder   admission.Recorder
	queue      *admission.Queue
	copies     admission.Copies
	rules      admission.ObjectRules
	requesters admission.Requesters
	reproduce  admission.Reproduce
	trial      admission.Trial // nil without the guard
	kinds      admission.Kinds // nil without a cluster
}

// newDoors makes the endpoints by their paths.
func newDoors(c Configuration, p doorParts) (doors map[string]http.Handler, err error) {
	shared := []admission.Option{admission.WithRecorder(p.recorder), admission.WithQueue(p.queue)}
	objects := append(slices.Clone(shared), admission.WithMutateControllers(mutated(c.Webhooks.MutateControllers)...),
		admission.WithCopies(p.copies), admission.WithReproduce(p.reproduce), admission.WithObjectRules(p.rules), admission.WithRequesters(p.requesters))
	if c.Webhooks.OnlyPods {
		objects = append(objects, admission.WithOnlyPods())
	}
	if p.kinds != nil {
		objects = append(objects, admission.WithKinds(p.kinds))
	}
	if p.roles != nil {
		objects = append(objects, admission.WithRoles(p.roles))
	}
	var made modeDoors
	for door, handler := range map[admission.Door]**admission.Handler{admission.Mutate: &made.mutate, admission.Validate: &made.validate} {
		*handler, err = admission.New(admission.Config{
			Door: door, Decider: p.decider, Namespaces: p.namespaces, Failure: p.failure,
		}, objects...)
		if err != nil {
			return nil, err
		}
	}
	if p.trial != nil {
		shared = append(shared, admission.WithTrial(p.trial))
	}
	made.policies, err = admission.NewPolicies(p.checker, shared...)
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

// guard requires client certificates at the endpoints that the settings select.
func (l Listen) guard(open []string, doors map[string]webhook.Door) error {
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
