package health

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	authorization "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
)

// Permission is one that a service account of the gateway needs.
type Permission struct {
	Account  string `json:"account"`
	Verb     string `json:"verb"`
	Resource string `json:"resource"` // with its group, as in pods.metrics.k8s.io
	// Namespace is empty for the cluster, and Name for every object.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Optional: the chart has a value that leaves it out. Lost is the consequence.
	Optional bool   `json:"optional,omitempty"`
	Lost     string `json:"consequence"`
	group    string
	plural   string
}

// permissions reviews the permissions of the service accounts of the Deployments.
func (r Reader) permissions(ctx context.Context, settings config.Configuration, replicas Replicas) Permissions {
	found := Permissions{Accounts: []string{}, Missing: []Permission{}}
	if replicas.Unknown != "" {
		found.Unread = replicas.Unread
		return found
	}
	var needed []Permission
	for _, d := range replicas.Deployments {
		account := "system:serviceaccount:" + r.Namespace + ":" + d.account
		found.Accounts = append(found.Accounts, account)
		one := settings
		if d.roles != nil {
			one.Roles = d.roles
		}
		needed = append(needed, neededBy(account, r.Namespace, &one)...)
	}
	if len(needed) == 0 {
		found.Unread = Unread{Unknown: "no Deployment of the gateway was found, so its service account is unknown", Fix: "name the gateway's namespace with -n"}
		return found
	}
	results, errs := make([]bool, len(needed)), make([]error, len(needed))
	var all sync.WaitGroup
	seats := make(chan struct{}, parallel)
	for i, one := range needed {
		all.Go(func() {
			seats <- struct{}{}
			defer func() { <-seats }()
			if ctx.Err() == nil && (i == 0 || errs[0] == nil) {
				results[i], errs[i] = r.review(ctx, one)
			}
		})
		if i == 0 {
			all.Wait() // without the permission to create reviews one request is enough
		}
	}
	all.Wait()
	for i, one := range needed {
		if err := errs[i]; err != nil {
			found.Unread = unreadOf(err, "create", "subjectaccessreviews.authorization.k8s.io", "")
			return found
		}
		if !results[i] {
			found.Missing = append(found.Missing, one)
		}
	}
	if ctx.Err() != nil {
		found.Unread = Unread{Unknown: "the permissions could not be reviewed in time", Fix: "run the command again with a longer --timeout"}
		return found
	}
	found.Checked = len(needed)
	return found
}

// neededBy are the permissions that a service account needs for the roles in the settings, each once.
func neededBy(account, own string, c *config.Configuration) []Permission {
	var list []Permission
	for _, of := range rulesOf(c) {
		if of.roles != nil && !c.Has(of.roles...) {
			continue
		}
		namespace := of.namespace
		if of.own {
			namespace = own
		}
		names := of.names
		if len(names) == 0 {
			names = []string{""}
		}
		for _, resource := range of.resources {
			for _, name := range names {
				for _, verb := range of.verbs {
					list = append(list, Permission{
						Account: account, Verb: verb, Resource: resourceName(of.group, resource), Namespace: namespace, Name: name,
						Optional: of.optional, Lost: of.lost, group: of.group, plural: resource,
					})
				}
			}
		}
	}
	// A stricter rule for the same objects covers another one.
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(p Permission) bool {
		key := strings.Join([]string{p.Verb, p.Resource, p.Namespace, p.Name}, " ")
		was := seen[key]
		seen[key] = true
		return was
	})
}

// resourceName is the name of a resource as kubectl has it, as in clusterpolicies.kyverno.io/status.
func resourceName(group, resource string) string {
	resource, sub, isSub := strings.Cut(resource, "/")
	name := schema.GroupResource{Group: group, Resource: resource}.String()
	if isSub {
		name += "/" + sub
	}
	return name
}

// review asks the API server whether an account has a permission.
func (r Reader) review(ctx context.Context, p Permission) (bool, error) {
	resource, sub, _ := strings.Cut(p.plural, "/")
	parts := strings.Split(p.Account, ":")
	namespace := parts[2]
	made, err := r.Client.Typed.AuthorizationV1().SubjectAccessReviews().Create(ctx,
		&authorization.SubjectAccessReview{Spec: authorization.SubjectAccessReviewSpec{
			User: p.Account, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
			ResourceAttributes: &authorization.ResourceAttributes{
				Group: p.group, Resource: resource, Subresource: sub, Verb: p.Verb, Namespace: p.Namespace, Name: p.Name,
			},
		}}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	if !made.Status.Allowed && made.Status.EvaluationError != "" {
		return false, fmt.Errorf("the API server could not evaluate %s on %s: %s", p.Verb, p.Resource, made.Status.EvaluationError)
	}
	return made.Status.Allowed && !made.Status.Denied, nil
}
