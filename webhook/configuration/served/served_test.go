package served_test

import (
	"fmt"
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/webhook/configuration"
	"github.com/quaymaster/quaymaster/webhook/configuration/served"
)

func TestResources(t *testing.T) {
	write, read := metav1.Verbs{"create", "get", "update"}, metav1.Verbs{"get", "list"}
	lists := []*metav1.APIResourceList{
		{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{{Name: "deployments", Kind: "Deployment", Namespaced: true, Verbs: write}}},
		{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "pods/status", Kind: "Pod", Namespaced: true, Verbs: write},
			{Name: "pods", Kind: "Pod", Namespaced: true, Verbs: write},
			{Name: "pods/ephemeralcontainers", Kind: "Pod", Namespaced: true, Verbs: write},
			{Name: "componentstatuses", Kind: "ComponentStatus", Verbs: read},
			{Name: "tickets", Kind: "Ticket", Verbs: metav1.Verbs{"get", "delete"}},
			{Name: "queues", Kind: "Queue", Verbs: metav1.Verbs{"deletecollection"}},
			{Name: "machines", Kind: "Machine", Verbs: read},
			{Name: "machines/console", Kind: "Console", Verbs: metav1.Verbs{"get"}},
		}},
		{GroupVersion: "a/b/c", APIResources: []metav1.APIResource{{Name: "odd", Kind: "Odd", Verbs: write}}},
	}
	deployments := configuration.Resource{Group: "apps", Version: "v1", Name: "deployments", Kind: "Deployment", Namespaced: true}
	pods := configuration.Resource{Group: "", Version: "v1", Name: "pods", Kind: "Pod", Namespaced: true, Subresources: []string{"ephemeralcontainers", "status"}}
	tasks := configuration.Resource{Group: "tekton.dev", Version: "v1", Name: "tasks", Kind: "Task", Namespaced: true}
	machines, queues, tickets := configuration.Resource{Group: "", Version: "v1", Name: "machines", Kind: "Machine", Namespaced: false, Subresources: []string{"console"}}, configuration.Resource{Group: "", Version: "v1", Name: "queues", Kind: "Queue", Namespaced: false}, configuration.Resource{Group: "", Version: "v1", Name: "tickets", Kind: "Ticket", Namespaced: false}
	tests := []struct {
		reason string
		failed []schema.GroupVersion
		before []configuration.Resource
		want   []configuration.Resource
	}{
		{"resources with writes, deletions or connections, with their subresources, in order", nil, nil, []configuration.Resource{machines, pods, queues, tickets, deployments}},
		{"a resource that is no longer served is removed", nil, []configuration.Resource{tasks, pods}, []configuration.Resource{machines, pods, queues, tickets, deployments}},
		{"a resource of a failed group version is kept", []schema.GroupVersion{{Group: "tekton.dev", Version: "v1"}}, []configuration.Resource{tasks, pods}, []configuration.Resource{machines, pods, queues, tickets, deployments, tasks}},
		{"a failed group version without an earlier state adds nothing", []schema.GroupVersion{{Group: "tekton.dev", Version: "v1"}}, nil, []configuration.Resource{machines, pods, queues, tickets, deployments}},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			if got := served.Resources(lists, test.failed, test.before); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func ExampleResources() {
	lists := []*metav1.APIResourceList{{GroupVersion: "v1", APIResources: []metav1.APIResource{
		{Name: "pods", Kind: "Pod", Namespaced: true, Verbs: metav1.Verbs{"create"}},
		{Name: "pods/exec", Kind: "PodExecOptions", Verbs: metav1.Verbs{"create"}},
	}}}
	for _, r := range served.Resources(lists, nil, nil) {
		fmt.Println(r.Name, r.Subresources)
	}
	// Output: pods [exec]
}
