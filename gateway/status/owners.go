package status

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/gateway/kinds"
)

// enginesInterval is the time between two checks for other engines.
const enginesInterval = time.Minute

// otherEngine is an engine that writes the status of its kinds.
type otherEngine struct {
	name   string
	groups []string
	// configurations are prefixes of the names of its webhook configurations.
	configurations []string
	// deployments selects Deployments by labels; those with the word in the value of a label are
	// its own.
	deployments, labelPart string
}

func otherEngines() []otherEngine {
	return []otherEngine{
		{
			name: "Kyverno", groups: []string{kinds.KyvernoGroup, kinds.CELGroup}, configurations: []string{"kyverno-"},
			deployments: "app.kubernetes.io/component=admission-controller", labelPart: "kyverno",
		},
		{
			name: "policy-controller", groups: []string{kinds.SigstoreGroup},
			configurations: []string{"policy.sigstore.dev", "validating.clusterimagepolicy.sigstore.dev", "defaulting.clusterimagepolicy.sigstore.dev"},
			deployments:    "app.kubernetes.io/name=policy-controller", labelPart: "policy-controller",
		},
	}
}

// Owners determines which engines of a cluster write the status of policies. In doubt it is
// theirs: two engines would overwrite one another. It is safe for concurrent use.
type Owners struct {
	// Always and never decide without a look at the engines.
	Always, Never bool
	Client        metadata.Interface
	Log           *slog.Logger

	mu    sync.Mutex
	ours  map[string]bool   // groups with a status that the gateway writes
	noted map[string]string // last log entry for each engine
}

// Writes reports whether the status of a group's kinds is written.
func (o *Owners) Writes(group string) bool {
	switch {
	case group == kinds.OwnGroup || o.Always:
		return true
	case o.Never:
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ours[group]
}

// Follow checks until ctx ends, and calls changed when the result changes.
func (o *Owners) Follow(ctx context.Context, changed func()) {
	if o.Always || o.Never {
		return
	}
	for ctx.Err() == nil {
		if o.look(ctx) {
			changed()
		}
		gateway.Idle(ctx, enginesInterval)
	}
}

// look reports whether the engines have changed.
func (o *Owners) look(ctx context.Context) (changed bool) {
	names, unknown := o.configurations(ctx)
	for _, engine := range otherEngines() {
		there, why := false, unknown
		if slices.ContainsFunc(names, func(name string) bool {
			return slices.ContainsFunc(engine.configurations, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		}) {
			there, why = true, nil
		} else if why == nil {
			there, why = o.deployed(ctx, engine)
		}
		if ctx.Err() != nil {
			return changed
		}
		changed = o.note(engine, there, why) || changed
	}
	return changed
}

// note records a result. After an error, the previous result stays.
func (o *Owners) note(engine otherEngine, there bool, why error) (changed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ours == nil {
		o.ours, o.noted = map[string]bool{}, map[string]string{}
	}
	found := "absent"
	switch {
	case why != nil:
		found = why.Error()
	case there:
		found = "present"
	}
	if o.noted[engine.name] != found {
		o.noted[engine.name] = found
		o.Log.Info("status of policies (policies.writeStatus: auto)", slog.String("engine", engine.name), slog.String("found", found),
			slog.Bool("written", why == nil && !there || why != nil && o.ours[engine.groups[0]]))
	}
	for _, group := range engine.groups {
		if why == nil && o.ours[group] == there {
			o.ours[group], changed = !there, true
		}
	}
	return changed
}

// configurations returns the names of all webhook configurations.
func (o *Owners) configurations(ctx context.Context) (names []string, err error) {
	for _, resource := range []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations"} {
		list, err := o.Client.Resource(schema.GroupVersionResource{Group: "admissionregistration.k8s.io",
			Version: "v1", Resource: resource}).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", resource, err)
		}
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
	}
	return names, nil
}

// deployed reports whether an engine has a Deployment.
func (o *Owners) deployed(ctx context.Context, engine otherEngine) (bool, error) {
	list, err := o.Client.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).List(ctx,
		metav1.ListOptions{LabelSelector: engine.deployments})
	if err != nil {
		return false, fmt.Errorf("list deployments: %w", err)
	}
	return slices.ContainsFunc(list.Items, func(d metav1.PartialObjectMetadata) bool {
		for _, value := range d.Labels {
			if strings.Contains(value, engine.labelPart) {
				return true
			}
		}
		return false
	}), nil
}
