package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/quaymaster/quaymaster/test/e2e/balancer"
	"github.com/quaymaster/quaymaster/test/e2e/chaos/checker"
	"github.com/quaymaster/quaymaster/test/e2e/chaos/line"
	"github.com/quaymaster/quaymaster/test/e2e/chaos/machine"
	"github.com/quaymaster/quaymaster/test/e2e/chaos/port"
	"github.com/quaymaster/quaymaster/test/e2e/controlplane"
	"github.com/quaymaster/quaymaster/test/e2e/nodes"
	"github.com/quaymaster/quaymaster/test/e2e/process"
	"github.com/quaymaster/quaymaster/test/peers"
)

// replicas of the gateway, registries, and simulated nodes.
const replicas, registries, simulated = 2, 2, 3

// openTimeout bounds how long something may take until it serves.
const openTimeout = time.Minute

// soakRing is how many images take turns as new ones in each registry in a soak, and soakFact
// how long facts are cached: shorter than the ring takes to come round, so that each image is
// verified again and memory has a size to stay at.
const soakRing, soakFact = 40, "20s"

// stand is all that runs.
type stand struct {
	settings settings
	folder   string
	program  string
	clock    *machine.Clock // nil: that of the machine
	plane    *controlplane.ControlPlane
	toPlane  *line.Line // what gateways have for the API server
	redis    *process.Process
	toRedis  *line.Line
	ports    [registries]*port.Port
	front    *balancer.Balancer
	toFront  *line.Line // the gateways' address for the API server
	replicas [replicas]*replica
	client   *kubernetes.Clientset
	dynamic  dynamic.Interface
	http     *http.Client                   // for pods
	owners   map[string]meta.OwnerReference // of the load's pods, by namespace and digest
	record   checker.Record
	wanted   atomic.Int64
	windows  []checker.Window
	lines    []outcome
	closers  []func()
}

func (s *stand) close() {
	for i := len(s.closers) - 1; i >= 0; i-- {
		s.closers[i]()
	}
}

// build starts everything, and returns when the gateways decide. With an error, too, it
// returns the started parts.
func build(ctx context.Context, folder string, settings settings) (*stand, error) {
	s := &stand{settings: settings, folder: folder}
	for _, step := range []func(context.Context) error{
		s.openProgram, s.openPlane, s.openRedis, s.openPorts, s.openCluster, s.openReplicas, s.decides,
	} {
		if err := step(ctx); err != nil {
			return s, err
		}
	}
	return s, nil
}

// openProgram builds the gateway, where a fault asks for it with a clock that can be set.
func (s *stand) openProgram(ctx context.Context) (err error) {
	s.program = filepath.Join(s.folder, "quaymaster")
	faults, err := chosen(s.settings.faults)
	if err != nil {
		return err
	}
	for _, f := range faults {
		if f.clock && s.settings.soak == 0 {
			progress("building the gateway with a clock that can be set, which compiles everything it is made of")
			s.clock, err = machine.BuildWithClock(ctx, s.folder, s.program)
			return err
		}
	}
	if s.settings.program != "" {
		s.program = s.settings.program
		return nil
	}
	return peers.BuildQuaymaster(ctx, s.program)
}

func (s *stand) openPlane(ctx context.Context) (err error) {
	s.plane, err = controlplane.Start(ctx, controlplane.Options{Folder: s.folder, Controllers: true})
	if err != nil {
		return err
	}
	s.closers = append(s.closers, s.plane.Close)
	s.toPlane, err = line.Listen(ctx, s.plane.Address())
	if err != nil {
		return err
	}
	s.closers = append(s.closers, s.toPlane.Close)
	s.http, err = rest.HTTPClientFor(s.plane.Admin())
	if err != nil {
		return err
	}
	s.client, err = kubernetes.NewForConfig(s.plane.Admin())
	if err != nil {
		return err
	}
	s.dynamic, err = dynamic.NewForConfig(s.plane.Admin())
	return err
}

func (s *stand) openRedis(ctx context.Context) (err error) {
	var address string
	s.redis, address, err = process.StartRedis(ctx, s.folder)
	if err != nil {
		return fmt.Errorf("start Redis (apt-get install %s): %w", process.RedisServer, err)
	}
	s.closers = append(s.closers, s.redis.Kill)
	s.toRedis, err = line.Listen(ctx, address)
	if err != nil {
		return err
	}
	s.closers = append(s.closers, s.toRedis.Close)
	return nil
}

func (s *stand) openPorts(ctx context.Context) error {
	ring := 0
	if s.settings.soak > 0 {
		ring = soakRing
	}
	for i := range s.ports {
		p, err := port.Open(ctx, ring)
		if err != nil {
			return err
		}
		s.ports[i] = p
		s.closers = append(s.closers, p.Close)
	}
	return nil
}

// openCluster fills the cluster: namespaces, nodes, definitions, policies.
func (s *stand) openCluster(ctx context.Context) error {
	for i := range namespaces {
		if err := s.plane.Namespace(ctx, fmt.Sprint(prefix, i)); err != nil {
			return err
		}
	}
	if err := s.openOwners(ctx); err != nil {
		return err
	}
	running, err := nodes.Start(ctx, s.plane.Admin(), simulated)
	if err != nil {
		return err
	}
	s.closers = append(s.closers, running.Close)
	checkout, err := peers.Checkout()
	if err != nil {
		return err
	}
	definitions, err := os.ReadFile(filepath.Join(checkout, "test", "e2e", "testdata", "reports.yaml"))
	if err != nil {
		return err
	}
	return s.plane.ApplyYAML(ctx, string(definitions))
}

// openOwners makes a controller for each image in each namespace as the owner of a soak's
// pods: the cache of workloads has a size to stay at then, as in a cluster. No controller
// here manages its kind.
func (s *stand) openOwners(ctx context.Context) error {
	s.owners = map[string]meta.OwnerReference{}
	if s.settings.soak == 0 {
		return nil
	}
	none, labels := new(int32), map[string]string{"app": "web"}
	for i := range namespaces {
		namespace := fmt.Sprint(prefix, i)
		for n, image := range slices.Concat(s.ports[0].Images(), s.ports[1].Images()) {
			made, err := s.client.CoreV1().ReplicationControllers(namespace).Create(ctx, &core.ReplicationController{
				ObjectMeta: meta.ObjectMeta{Name: fmt.Sprint("of-web-", n)},
				Spec: core.ReplicationControllerSpec{Replicas: none, Selector: labels, Template: &core.PodTemplateSpec{
					ObjectMeta: meta.ObjectMeta{Labels: labels},
					Spec:       core.PodSpec{Containers: []core.Container{{Name: "web", Image: image.ByDigest}}},
				}},
			}, meta.CreateOptions{})
			if err != nil {
				return err
			}
			s.owners[namespace+image.Digest] = *meta.NewControllerRef(made, core.SchemeGroupVersion.WithKind("ReplicationController"))
		}
	}
	return nil
}

// policyName is that of a registry's policy.
func policyName(i int) string { return fmt.Sprint(prefix, "registry-", i) }

// applyPolicies applies the policies of both registries.
func (s *stand) applyPolicies(ctx context.Context) error {
	for i, p := range s.ports {
		text, err := p.Policy(policyName(i), prefix+"*", webhookSeconds)
		if err != nil {
			return err
		}
		if err := s.plane.ApplyYAML(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// openReplicas installs the release and runs the gateways behind one address.
func (s *stand) openReplicas(ctx context.Context) error {
	identity, err := s.plane.Install(ctx)
	if err != nil {
		return err
	}
	if err := s.applyPolicies(ctx); err != nil {
		return err
	}
	identity = rest.CopyConfig(identity)
	identity.Host = "https://" + s.toPlane.Address()
	var backends []balancer.Backend
	for i := range s.replicas {
		r, err := s.newReplica(ctx, i, identity)
		if err != nil {
			return err
		}
		s.replicas[i] = r
		if s.settings.soak == 0 {
			r.disk = machine.OpenDisk(r.options.Configuration.DecisionLog.Folder)
			s.closers = append(s.closers, r.disk.Close)
		}
		listen := r.options.Configuration.Listen
		backends = append(backends, balancer.Backend{Address: listen.Address, Ready: "http://" + listen.Plain + "/readyz"})
	}
	s.front, err = balancer.Listen(ctx, backends...)
	if err != nil {
		return err
	}
	s.closers = append(s.closers, s.front.Close)
	s.toFront, err = line.Listen(ctx, s.front.Address())
	if err != nil {
		return err
	}
	s.closers = append(s.closers, s.toFront.Close)
	for _, r := range s.replicas {
		r.options.Configuration.Webhooks.URL = "https://" + s.toFront.Address()
		if err := r.start(ctx); err != nil {
			return err
		}
		s.closers = append(s.closers, func() { r.now().Kill() })
	}
	for _, r := range s.replicas {
		if err := r.now().Ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

// decides waits until a gateway refuses each known image that is unsigned and pins each that
// is signed, in both registries.
func (s *stand) decides(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	defer s.record.Forget() // admissions before the policies are no findings
	for _, p := range s.ports {
		if err := process.Eventually(ctx, func(ctx context.Context) error {
			for _, truth := range []checker.Truth{checker.Unsigned, checker.Signed} {
				for n := range port.Known { // so that known images are cached
					if a := s.want(ctx, prefix+"0", p.Image(truth, n), false); !a.IsGood() {
						return errors.New(a.String())
					}
				}
			}
			return nil
		}); err != nil {
			return fmt.Errorf("the gateways do not decide: %w", err)
		}
	}
	return s.clear(ctx)
}
