package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	rbac "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/quaymaster/quaymaster/cluster/internal/mirror"
	"github.com/quaymaster/quaymaster/cluster/typed"
	"github.com/quaymaster/quaymaster/policy"
)

// rolesTimeout bounds the wait for the first list of bindings.
const rolesTimeout = 5 * time.Second

// RoleOptions are the dependencies of Roles.
type RoleOptions struct {
	// Client is required.
	Client typed.Interface
	// Failed is called when a watch failed; it is retried. May be nil.
	Failed func(error)
}

// Roles looks up the roles that are bound to a user, by mirrors of the bindings that start on
// first use. It is safe for concurrent use. Create one with NewRoles.
type Roles struct {
	client  typed.Interface
	mirrors [2]*mirror.Mirror[binding] // of RoleBindings and of ClusterRoleBindings
	needed  chan struct{}
	once    sync.Once

	mu    sync.RWMutex
	bound map[string]map[types.NamespacedName]boundRole
}

// binding is the retained part of a RoleBinding or ClusterRoleBinding.
type binding struct {
	subjects []string // "User:name", "Group:name"
	role     boundRole
}

type boundRole struct {
	name    string // "namespace:name" of a Role, the name of a ClusterRole
	cluster bool
	only    string // the namespace in which a ClusterRole is bound; empty: all
}

// NewRoles creates Roles; the client is required.
func NewRoles(o RoleOptions) (*Roles, error) {
	if o.Client == nil {
		return nil, errors.New("roles: Client is required")
	}
	r := &Roles{client: o.Client, needed: make(chan struct{}), bound: make(map[string]map[types.NamespacedName]boundRole)}
	for i, what := range []string{"rolebindings", "clusterrolebindings"} {
		m, err := mirror.New(mirror.Options[binding]{What: what, Keep: keepBinding, Changed: r.index, Failed: o.Failed})
		if err != nil {
			return nil, err
		}
		r.mirrors[i] = m
	}
	return r, nil
}

// Run waits for the first use, and updates the mirrors from then until ctx ends.
func (r *Roles) Run(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-r.needed:
	}
	var wg sync.WaitGroup
	roles, clusterRoles := r.client.RbacV1().RoleBindings(metav1.NamespaceAll), r.client.RbacV1().ClusterRoleBindings()
	wg.Go(func() {
		r.mirrors[0].Run(ctx, mirror.Source{
			Client: r.client, Example: &rbac.RoleBinding{},
			List:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return roles.List(ctx, o) },
			Watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return roles.Watch(ctx, o) },
		})
	})
	wg.Go(func() {
		r.mirrors[1].Run(ctx, mirror.Source{
			Client: r.client, Example: &rbac.ClusterRoleBinding{},
			List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return clusterRoles.List(ctx, o)
			},
			Watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return clusterRoles.Watch(ctx, o)
			},
		})
	})
	wg.Wait()
}

// Roles returns the roles that are bound to the user or one of the groups and apply to a
// namespace: Roles as "namespace:name", and the names of ClusterRoles that are bound in the
// cluster or in that namespace. Bindings of other namespaces are ignored: they grant nothing
// here, and users with write access to them must not affect evaluations here. Each list is sorted
// without duplicates. The first call waits for the bindings to be listed, at most 5 s; if the
// list fails, the error is ErrUnavailable.
func (r *Roles) Roles(ctx context.Context, user policy.User, namespace string) (roles, clusterRoles []string, err error) {
	r.once.Do(func() { close(r.needed) })
	if err := r.wait(ctx); err != nil {
		return nil, nil, err
	}
	found := make(map[boundRole]bool)
	r.mu.RLock()
	for _, role := range r.bound[rbac.UserKind+":"+user.Name] {
		found[role] = true
	}
	for _, group := range user.Groups {
		for _, role := range r.bound[rbac.GroupKind+":"+group] {
			found[role] = true
		}
	}
	r.mu.RUnlock()
	for role := range found {
		switch {
		case !role.cluster:
			roles = append(roles, role.name)
		case role.only == "" || role.only == namespace:
			clusterRoles = append(clusterRoles, role.name)
		}
	}
	slices.Sort(roles)
	slices.Sort(clusterRoles)
	return roles, slices.Compact(clusterRoles), nil
}

func (r *Roles) wait(ctx context.Context) error {
	for _, m := range r.mirrors {
		select {
		case <-m.Synced():
			continue
		default:
		}
		ctx, cancel := context.WithTimeoutCause(ctx, rolesTimeout, errors.New("the role bindings could not be listed in time"))
		defer cancel()
		select {
		case <-m.Synced():
		case <-ctx.Done():
			return &Error{Kind: "roles of the user", Reason: ErrUnavailable, Cause: context.Cause(ctx)}
		}
	}
	return nil
}

// index applies changes of bindings to the index by subject.
func (r *Roles) index(changes []mirror.Change[binding]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range changes {
		for _, subject := range c.Old.subjects {
			delete(r.bound[subject], c.Key)
			if len(r.bound[subject]) == 0 {
				delete(r.bound, subject)
			}
		}
		for _, subject := range c.New.subjects {
			if r.bound[subject] == nil {
				r.bound[subject] = make(map[types.NamespacedName]boundRole)
			}
			r.bound[subject][c.Key] = c.New.role
		}
	}
}

func keepBinding(object runtime.Object) (binding, error) {
	switch b := object.(type) {
	case *rbac.RoleBinding:
		role := boundRole{name: b.RoleRef.Name, cluster: true, only: b.Namespace}
		if b.RoleRef.Kind == "Role" {
			role = boundRole{name: b.Namespace + ":" + b.RoleRef.Name}
		}
		return binding{subjects: subjectsOf(b.Subjects, b.Namespace), role: role}, nil
	case *rbac.ClusterRoleBinding:
		return binding{subjects: subjectsOf(b.Subjects, ""), role: boundRole{name: b.RoleRef.Name, cluster: true}}, nil
	}
	return binding{}, fmt.Errorf("a %T binds no role", object)
}

// subjectsOf normalises subjects as the API server's authorizer does: a service account becomes
// its user name.
func subjectsOf(subjects []rbac.Subject, namespace string) []string {
	var names []string
	for _, s := range subjects {
		switch s.Kind {
		case rbac.UserKind, rbac.GroupKind:
			names = append(names, s.Kind+":"+s.Name)
		case rbac.ServiceAccountKind:
			if s.Namespace == "" {
				s.Namespace = namespace
			}
			names = append(names, rbac.UserKind+":system:serviceaccount:"+s.Namespace+":"+s.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
