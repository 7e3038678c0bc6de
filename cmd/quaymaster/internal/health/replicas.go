package health

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/internal/limit"
)

const (
	// Selector is that of the chart for the objects of a release.
	Selector = "app.kubernetes.io/name=quaymaster"
	// container and plainPort are the names that the chart gives; defaultPlain is the default of
	// listen.plain.
	container, plainPort = "gateway", "plain"
	defaultPlain         = 8000
	// maxReplicas bounds the pods whose metrics are read, parallel those at a time.
	maxReplicas, parallel = 100, 8
	// proxyTimeout bounds one request to a replica.
	proxyTimeout = 10 * time.Second
	// maxReadiness bounds the text of /readyz in bytes.
	maxReadiness = 64 << 10
)

// replicas reads the Deployments, their pods, and the metrics of these.
func (r Reader) replicas(ctx context.Context) Replicas {
	none := Replicas{Deployments: []Deployment{}, Items: []Replica{}}
	deployments, err := r.Client.Typed.AppsV1().Deployments(r.Namespace).List(ctx, metav1.ListOptions{LabelSelector: Selector})
	if err != nil {
		none.Unread = unreadOf(err, "list", "deployments.apps", r.Namespace)
		return none
	}
	pods, err := r.Client.Typed.CoreV1().Pods(r.Namespace).List(ctx, metav1.ListOptions{LabelSelector: Selector, Limit: maxReplicas})
	if err != nil {
		none.Unread = unreadOf(err, "list", "pods", r.Namespace)
		return none
	}
	found := none
	for _, d := range deployments.Items {
		found.Deployments = append(found.Deployments, deploymentOf(&d))
	}
	if pods.Continue != "" {
		none.Unread = Unread{Unknown: fmt.Sprintf("there are more than %d pods of the gateway", maxReplicas),
			Fix: "kubectl -n " + r.Namespace + " get pods -l " + Selector}
		return none
	}
	// A pod that ended, as an evicted one, is kept for its log; others replace it.
	running := slices.DeleteFunc(pods.Items, func(p core.Pod) bool { return p.Status.Phase == core.PodSucceeded || p.Status.Phase == core.PodFailed })
	found.Items = make([]Replica, len(running))
	var all sync.WaitGroup
	seats := make(chan struct{}, parallel)
	for i := range running {
		all.Go(func() {
			seats <- struct{}{}
			defer func() { <-seats }()
			found.Items[i] = r.replica(ctx, &running[i])
		})
	}
	all.Wait()
	slices.SortFunc(found.Items, func(a, b Replica) int { return cmp.Compare(a.Name, b.Name) })
	return found
}

// deploymentOf reads a Deployment. Without spec.replicas the API server wants one.
func deploymentOf(d *apps.Deployment) Deployment {
	found := Deployment{Name: d.Name, Ready: int(d.Status.ReadyReplicas), Wanted: 1, account: d.Spec.Template.Spec.ServiceAccountName}
	if d.Spec.Replicas != nil {
		found.Wanted = int(*d.Spec.Replicas)
	}
	for _, c := range d.Spec.Template.Spec.Containers {
		for _, arg := range slices.Concat(c.Command, c.Args) {
			if roles, ok := strings.CutPrefix(arg, "--roles="); ok && c.Name == container {
				found.roles = strings.Split(roles, ",")
			}
		}
	}
	return found
}

// replica reads a pod and its metrics; of one that is not ready also the reasons.
func (r Reader) replica(ctx context.Context, pod *core.Pod) Replica {
	found := Replica{Name: pod.Name, State: NotReady, Reasons: reasons(pod)}
	ready := func(c core.PodCondition) bool { return c.Type == core.PodReady && c.Status == core.ConditionTrue }
	if slices.ContainsFunc(pod.Status.Conditions, ready) {
		found.State = Ready
	}
	if pod.Status.PodIP == "" || pod.Status.Phase != core.PodRunning {
		found.Metrics = Unread{Unknown: "the pod does not run", Fix: "kubectl -n " + r.Namespace + " describe pod " + pod.Name}
		return found
	}
	text, err := r.get(ctx, pod, "metrics", maxMetrics)
	if err == nil {
		found.metrics, err = parseSamples(text)
	}
	if err != nil {
		found.Metrics = r.unreadMetrics(err, pod.Name)
	}
	found.Version = found.metrics.label("build_info", "version")
	if found.State == NotReady {
		found.Reasons = append(found.Reasons, r.notReady(ctx, pod)...)
	}
	return found
}

// get requests a path of the plain address of a pod, through the API server.
func (r Reader) get(ctx context.Context, pod *core.Pod, path string, most int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, proxyTimeout)
	defer cancel()
	stream, err := r.Client.Typed.CoreV1().Pods(pod.Namespace).ProxyGet("http", pod.Name, strconv.Itoa(plainPortOf(pod)), path, nil).Stream(ctx)
	if err != nil {
		return nil, err
	}
	text, err := limit.ReadAll(stream, most, path+" of "+pod.Name)
	return text, errors.Join(err, stream.Close())
}

// notReady are the reasons in /readyz, which has the status 503 then.
func (r Reader) notReady(ctx context.Context, pod *core.Pod) []string {
	_, err := r.get(ctx, pod, "readyz", maxReadiness)
	var failed apierrors.APIStatus
	if !errors.As(err, &failed) || failed.Status().Details == nil {
		return nil
	}
	var found []string
	for _, cause := range failed.Status().Details.Causes {
		for line := range strings.Lines(cause.Message) {
			if why, ok := strings.CutPrefix(strings.TrimSpace(line), "not ready: "); ok {
				found = append(found, why)
			}
		}
	}
	return found
}

func (r Reader) unreadMetrics(err error, pod string) Unread {
	if apierrors.IsForbidden(err) {
		return unreadOf(err, "get", "pods/proxy", r.Namespace)
	}
	why := err.Error()
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.DeadlineExceeded) {
		why = "it did not respond in time"
	}
	return Unread{
		Unknown: fmt.Sprintf("the metrics of %s could not be read through the API server: %s", pod, why),
		Fix: fmt.Sprintf("allow the API server to connect to the port %s of the pods (NetworkPolicy, firewall), or read them with kubectl -n %s port-forward %s %d",
			plainPort, r.Namespace, pod, defaultPlain),
	}
}

func plainPortOf(pod *core.Pod) int {
	for _, c := range pod.Spec.Containers {
		for _, port := range c.Ports {
			if port.Name == plainPort {
				return int(port.ContainerPort)
			}
		}
	}
	return defaultPlain
}

// reasons are those in the status of a pod for which its containers do not run.
func reasons(pod *core.Pod) []string {
	var found []string
	add := func(reason, message string) {
		if reason != "" {
			found = append(found, strings.TrimSuffix(reason+": "+message, ": "))
		}
	}
	if pod.DeletionTimestamp != nil {
		add("Terminating", "")
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == core.PodScheduled && c.Status == core.ConditionFalse {
			add(c.Reason, c.Message)
		}
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if w := c.State.Waiting; w != nil {
			add(w.Reason, w.Message)
		}
		if e := c.LastTerminationState.Terminated; e != nil && !c.Ready {
			add(e.Reason, fmt.Sprintf("ended with status %d", e.ExitCode))
		}
	}
	return found
}
