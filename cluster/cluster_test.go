package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	core "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	kubetesting "k8s.io/client-go/testing"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno"
	"github.com/quaymaster/quaymaster/registry/keychain"
	"github.com/quaymaster/quaymaster/verify/trust"
)

var (
	_ kyverno.Lookup    = (*cluster.Lookups)(nil)
	_ keychain.Secrets  = (*cluster.Lookups)(nil)
	_ keychain.Accounts = (*cluster.Lookups)(nil)
	_ keychain.Secrets  = cluster.Held{}
	_ keychain.Accounts = cluster.Held{}
	_ trust.Secrets     = cluster.Keys{}
)

type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func newLookups(t *testing.T, client *fake.Clientset, c *clock) *cluster.Lookups {
	t.Helper()
	l, err := cluster.NewLookups(cluster.LookupOptions{Client: client, Now: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func objects() []runtime.Object {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "shop", Name: name} }
	return []runtime.Object{
		&core.Secret{ObjectMeta: meta("pull"), Type: core.SecretTypeDockerConfigJson, Data: map[string][]byte{".dockerconfigjson": []byte("{}")}},
		&core.ConfigMap{ObjectMeta: meta("settings"), Data: map[string]string{"mode": "strict"}},
		&core.ServiceAccount{ObjectMeta: meta("web"), ImagePullSecrets: []core.LocalObjectReference{{Name: "pull"}, {Name: "other"}}},
	}
}

// ask asks for one object of each kind.
func ask(ctx context.Context, l *cluster.Lookups, namespace string) map[string]error {
	errs := make(map[string]error)
	_, _, errs["secret"] = l.Secret(ctx, namespace, "pull")
	_, errs["configmap"] = l.ConfigMap(ctx, namespace, "settings")
	_, errs["serviceaccount"] = l.PullSecrets(ctx, namespace, "web")
	_, errs["key"] = cluster.Keys{Lookups: l}.Secret(ctx, namespace, "pull", ".dockerconfigjson")
	return errs
}

func TestLookupsAnswer(t *testing.T) {
	l := newLookups(t, fake.NewClientset(objects()...), &clock{time.Now()})
	kind, data, err := l.Secret(t.Context(), "shop", "pull")
	if err != nil || kind != "kubernetes.io/dockerconfigjson" || string(data[".dockerconfigjson"]) != "{}" {
		t.Errorf("secret: %q, %q, %v", kind, data, err)
	}
	m, err := l.ConfigMap(t.Context(), "shop", "settings")
	if err != nil || m["kind"] != "ConfigMap" || m["data"].(map[string]any)["mode"] != "strict" {
		t.Fatalf("config map: %v, %v", m, err)
	}
	m["data"].(map[string]any)["mode"] = "lax"
	if again, _ := l.ConfigMap(t.Context(), "shop", "settings"); again["data"].(map[string]any)["mode"] != "strict" {
		t.Error("a caller's change to a config map is visible to the next caller")
	}
	names, err := l.PullSecrets(t.Context(), "shop", "web")
	if err != nil || !slices.Equal(names, []string{"pull", "other"}) {
		t.Errorf("pull secrets: %v, %v", names, err)
	}
	key, err := cluster.Keys{Lookups: l}.Secret(t.Context(), "shop", "pull", ".dockerconfigjson")
	if err != nil || string(key) != "{}" {
		t.Errorf("entry: %q, %v", key, err)
	}
	if _, err := (cluster.Keys{Lookups: l}).Secret(t.Context(), "shop", "pull", "cosign.pub"); !errors.Is(err, cluster.ErrNotFound) {
		t.Errorf("an entry that is not there: %v", err)
	}
}

func TestLookupsRefuse(t *testing.T) {
	resource := schema.GroupResource{Resource: "things"}
	for _, row := range []struct {
		reason    string
		namespace string
		err       error
		want      error
		kind      image.Kind
		kept      bool // the second question costs nothing
	}{
		{"there", "shop", nil, nil, "", true},
		{"not there", "street", nil, cluster.ErrNotFound, image.NotFound, true},
		{"forbidden", "shop", apierrors.NewForbidden(resource, "x", errors.New("no")), cluster.ErrForbidden, image.Refused, true},
		{"the API server is down", "shop", errors.New("connection refused"), cluster.ErrUnavailable, image.Unavailable, false},
		{"the API server is busy", "shop", apierrors.NewTooManyRequests("later", 1), cluster.ErrUnavailable, image.Unavailable, false},
		{"a name that nothing can have", "../../shop", nil, cluster.ErrNotFound, image.NotFound, true},
	} {
		t.Run(row.reason, func(t *testing.T) {
			client := fake.NewClientset(objects()...)
			if row.err != nil {
				client.PrependReactor("get", "*", func(kubetesting.Action) (bool, runtime.Object, error) { return true, nil, row.err })
			}
			l := newLookups(t, client, &clock{time.Now()})
			for what, err := range ask(t.Context(), l, row.namespace) {
				if !errors.Is(err, row.want) || image.KindOf(err) != row.kind {
					t.Errorf("%s: got %v (%q), want %v (%q)", what, err, image.KindOf(err), row.want, row.kind)
				}
			}
			before := len(client.Actions())
			for what, err := range ask(t.Context(), l, row.namespace) {
				if !errors.Is(err, row.want) {
					t.Errorf("%s, asked again: got %v, want %v", what, err, row.want)
				}
			}
			if asked := len(client.Actions()) > before; asked == row.kept {
				t.Errorf("asked again: the API server was asked %t, want %t", asked, !row.kept)
			}
			if before > 0 && strings.Contains(row.namespace, "..") {
				t.Error("the name reached the API server")
			}
		})
	}
}

func TestLookupsExpire(t *testing.T) {
	for _, row := range []struct {
		reason    string
		namespace string
		after     time.Duration
		asked     int // of 3 kinds
	}{
		{"a moment later", "shop", 9 * time.Second, 0},
		{"a config map is kept for 10 s", "shop", 10 * time.Second, 1},
		{"the others for 30 s", "shop", 30 * time.Second, 3},
		{"an absent object is kept for a short time", "street", 4 * time.Second, 0},
		{"and looked for again soon", "street", 5 * time.Second, 3},
	} {
		client, c := fake.NewClientset(objects()...), &clock{time.Now()}
		l := newLookups(t, client, c)
		ask(t.Context(), l, row.namespace)
		client.ClearActions()
		c.now = c.now.Add(row.after)
		ask(t.Context(), l, row.namespace)
		if got := len(client.Actions()); got != row.asked {
			t.Errorf("%s: asked %d times, want %d", row.reason, got, row.asked)
		}
	}
}

// TestFresh: objects that rules read are requested anew, unless a label allows caching.
func TestFresh(t *testing.T) {
	for _, row := range []struct {
		reason string
		labels map[string]string
		asked  int
	}{
		{"one without the label", nil, 2},
		{"the label is false", map[string]string{cluster.RememberLabel: "false"}, 2},
		{"it may be remembered", map[string]string{cluster.RememberLabel: "true"}, 1},
	} {
		client := fake.NewClientset(&core.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings", Labels: row.labels}, Data: map[string]string{"mode": "strict"},
		})
		fresh := cluster.Fresh{Lookups: newLookups(t, client, &clock{time.Now()})}
		for range 2 {
			m, err := fresh.ConfigMap(t.Context(), "shop", "settings")
			if err != nil || m["data"].(map[string]any)["mode"] != "strict" {
				t.Fatalf("%s: %v, %v", row.reason, m, err)
			}
			m["data"].(map[string]any)["mode"] = "lax"
		}
		if got := len(client.Actions()); got != row.asked {
			t.Errorf("%s: asked %d times, want %d", row.reason, got, row.asked)
		}
		client.ClearActions()
		for range 2 { // it may be there a moment later
			if _, err := fresh.ConfigMap(t.Context(), "shop", "absent"); !errors.Is(err, cluster.ErrNotFound) {
				t.Errorf("%s: one that is not there: %v", row.reason, err)
			}
		}
		if got := len(client.Actions()); got != 2 {
			t.Errorf("%s: one that is not there was asked for %d times", row.reason, got)
		}
	}
}

func TestLookupsHeedTheCaller(t *testing.T) {
	client := fake.NewClientset(objects()...)
	release := make(chan struct{})
	client.PrependReactor("get", "secrets", func(kubetesting.Action) (bool, runtime.Object, error) {
		<-release
		return false, nil, nil
	})
	defer close(release)
	l := newLookups(t, client, &clock{time.Now()})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := l.Secret(ctx, "shop", "pull"); !errors.Is(err, cluster.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want ErrUnavailable because the caller left", err)
	}
}

func TestErrorsNameTheFix(t *testing.T) {
	client := fake.NewClientset()
	client.PrependReactor("get", "secrets", func(kubetesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "pull", errors.New("no"))
	})
	_, _, err := newLookups(t, client, &clock{time.Now()}).Secret(t.Context(), "shop", "pull")
	if want := "secret shop/pull may not be read by the gateway; grant its service account get on secrets there"; err == nil || err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}

func namespace(name string, labels map[string]string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
	}
}

func newMetadata(t *testing.T, objects ...runtime.Object) *metadatafake.FakeMetadataClient {
	t.Helper()
	s := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(s); err != nil {
		t.Fatal(err)
	}
	return metadatafake.NewSimpleMetadataClient(s, objects...)
}

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

func TestNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newMetadata(t, namespace("shop", map[string]string{"tier": "prod"}), namespace("bare", nil))
		n, err := cluster.NewNamespaces(cluster.NamespaceOptions{Client: client})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); n.Run(ctx) }()
		<-n.Ready()
		synctest.Wait()
		client.ClearActions()
		if labels, err := n.Labels(ctx, "shop"); err != nil || labels["tier"] != "prod" {
			t.Errorf("labels %v, %v", labels, err)
		}
		if labels, err := n.Labels(ctx, "bare"); err != nil || labels == nil || len(labels) != 0 {
			t.Errorf("of a namespace without labels: %v, %v; want an empty map", labels, err)
		}
		if got := len(client.Actions()); got != 0 {
			t.Errorf("the API server was asked %d times for a known object", got)
		}
		if err := client.Tracker().Delete(namespaces, "", "shop"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if labels, err := n.Labels(ctx, "shop"); !errors.Is(err, cluster.ErrNotFound) || labels != nil {
			t.Errorf("of a namespace that vanished: %v, %v; want not found", labels, err)
		}
		cancel()
		<-done
	})
}

func TestNamespacesNotMirroredYet(t *testing.T) {
	down := errors.New("connection refused")
	for _, row := range []struct {
		reason, name string
		err          error
		want         error
	}{
		{"made a moment ago", "shop", nil, nil},
		{"not there", "street", nil, cluster.ErrNotFound},
		{"could not be looked up", "shop", down, cluster.ErrUnavailable},
	} {
		client := newMetadata(t, namespace("shop", map[string]string{"tier": "prod"}))
		if row.err != nil {
			client.PrependReactor("get", "namespaces", func(kubetesting.Action) (bool, runtime.Object, error) { return true, nil, row.err })
		}
		n, err := cluster.NewNamespaces(cluster.NamespaceOptions{Client: client})
		if err != nil {
			t.Fatal(err)
		}
		labels, err := n.Labels(t.Context(), row.name)
		if !errors.Is(err, row.want) || (row.want == nil) != maps.Equal(labels, map[string]string{"tier": "prod"}) {
			t.Errorf("%s: got %v, %v; want %v", row.reason, labels, err, row.want)
		}
	}
}

// TestUnknownNamespacesAreBounded: requests for namespaces that do not exist take only a part
// of the client's limit, and nothing from known namespaces.
func TestUnknownNamespacesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newMetadata(t, namespace("shop", map[string]string{"tier": "prod"}))
		n, err := cluster.NewNamespaces(cluster.NamespaceOptions{Client: client})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); n.Run(ctx) }()
		<-n.Ready()
		synctest.Wait()
		client.ClearActions()
		refused := 0
		for i := range 1000 {
			if _, err := n.Labels(ctx, fmt.Sprintf("made-up-%d", i)); errors.Is(err, cluster.ErrUnavailable) {
				refused++
			}
		}
		if asked := len(client.Actions()); asked != 40 || refused != 960 {
			t.Errorf("the API server was asked %d times, %d names were not looked up", asked, refused)
		}
		if labels, err := n.Labels(ctx, "shop"); err != nil || labels["tier"] != "prod" {
			t.Errorf("of a namespace that is known: %v, %v", labels, err)
		}
		<-time.After(time.Second)
		if _, err := n.Labels(ctx, "made-up-0"); !errors.Is(err, cluster.ErrNotFound) {
			t.Errorf("a second later: %v", err)
		}
		cancel()
		<-done
	})
}

func bindings() []runtime.Object {
	user := func(kind, namespace, name string) []rbac.Subject {
		return []rbac.Subject{{Kind: kind, Namespace: namespace, Name: name}}
	}
	return []runtime.Object{
		&rbac.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}, RoleRef: rbac.RoleRef{Kind: "Role", Name: "seller"}, Subjects: user("User", "", "ann")},
		&rbac.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "b"}, RoleRef: rbac.RoleRef{Kind: "ClusterRole", Name: "view"}, Subjects: user("Group", "", "staff")},
		&rbac.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c"}, RoleRef: rbac.RoleRef{Kind: "Role", Name: "robot"}, Subjects: user("ServiceAccount", "", "web")},
		&rbac.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "a"}, RoleRef: rbac.RoleRef{Kind: "ClusterRole", Name: "admin"}, Subjects: user("User", "", "ann")},
	}
}

func TestRoles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(bindings()...)
		r, err := cluster.NewRoles(cluster.RoleOptions{Client: client})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); r.Run(ctx) }()
		synctest.Wait()
		if got := len(client.Actions()); got != 0 {
			t.Errorf("the API server was asked %d times before the first request for roles", got)
		}
		expect := func(reason string, user policy.User, want string) {
			t.Helper()
			roles, clusterRoles, err := r.Roles(ctx, user, "shop")
			if got := fmt.Sprint(roles, clusterRoles); err != nil || got != want {
				t.Errorf("%s: got %s, %v; want %s", reason, got, err, want)
			}
		}
		expect("by name", policy.User{Name: "ann"}, "[shop:seller] [admin]")
		expect("by name and group", policy.User{Name: "ann", Groups: []string{"staff"}}, "[shop:seller] [admin view]")
		if _, clusterRoles, err := r.Roles(ctx, policy.User{Groups: []string{"staff"}}, "street"); err != nil || len(clusterRoles) > 0 {
			t.Errorf("a ClusterRole that is bound in another namespace counts here: %v, %v", clusterRoles, err)
		}
		expect("a service account of the binding's namespace", policy.User{Name: "system:serviceaccount:shop:web"}, "[shop:robot] []")
		expect("one of the same name elsewhere", policy.User{Name: "system:serviceaccount:street:web"}, "[] []")
		expect("a group is not a user", policy.User{Name: "staff"}, "[] []")
		synctest.Wait() // the watches are open
		if err := client.RbacV1().RoleBindings("shop").Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		expect("a binding that went", policy.User{Name: "ann"}, "[] [admin]")
		cancel()
		<-done
	})
}

func TestRolesThatCannotBeListed(t *testing.T) {
	client := fake.NewClientset(bindings()...)
	client.PrependReactor("list", "clusterrolebindings", func(kubetesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("connection refused")
	})
	failed := make(chan struct{}, 100)
	r, err := cluster.NewRoles(cluster.RoleOptions{Client: client, Failed: func(error) { failed <- struct{}{} }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.Run(ctx) }()
	asking, leave := context.WithCancel(ctx)
	go func() {
		<-failed
		leave()
	}()
	if roles, clusterRoles, err := r.Roles(asking, policy.User{Name: "ann"}, "shop"); !errors.Is(err, cluster.ErrUnavailable) || roles != nil || clusterRoles != nil {
		t.Errorf("got %v, %v, %v; want ErrUnavailable and no roles", roles, clusterRoles, err)
	}
	cancel()
	<-done
}

func TestConstructorsRefuse(t *testing.T) {
	client := fake.NewClientset()
	for _, row := range []struct {
		reason string
		make   func() error
		ok     bool
	}{
		{"look-ups with a client", func() error {
			l, err := cluster.NewLookups(cluster.LookupOptions{Client: client})
			l.Close()
			return err
		}, true},
		{"look-ups without", func() error { _, err := cluster.NewLookups(cluster.LookupOptions{}); return err }, false},
		{"look-ups that never end", func() error {
			_, err := cluster.NewLookups(cluster.LookupOptions{Client: client, TTL: -1})
			return err
		}, false},
		{"namespaces without a client", func() error { _, err := cluster.NewNamespaces(cluster.NamespaceOptions{}); return err }, false},
		{"roles without a client", func() error { _, err := cluster.NewRoles(cluster.RoleOptions{}); return err }, false},
		{"a client without a version", func() error { _, err := cluster.NewClient(cluster.ClientOptions{}); return err }, false},
		{"a kubeconfig that is not there", func() error {
			_, err := cluster.NewClient(cluster.ClientOptions{Version: "1", Kubeconfig: t.TempDir() + "/none"})
			return err
		}, false},
		{"a context without a kubeconfig", func() error {
			_, err := cluster.NewClient(cluster.ClientOptions{Version: "1", Context: "other"})
			return err
		}, false},
	} {
		if err := row.make(); (err == nil) != row.ok {
			t.Errorf("%s: got %v", row.reason, err)
		}
	}
}

func ExampleLookups() {
	lookups, err := cluster.NewLookups(cluster.LookupOptions{Client: fake.NewClientset(objects()...)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lookups.Close()
	fmt.Println(lookups.PullSecrets(context.Background(), "shop", "web"))
	_, _, err = lookups.Secret(context.Background(), "shop", "lost")
	fmt.Println(err)
	// Output:
	// [pull other] <nil>
	// secret shop/lost is not found
}

// TestPullSecretsAreThere: a Secret that is created together with its Pods is found soon, and
// an API error is neither answer.
func TestPullSecretsAreThere(t *testing.T) {
	now := &clock{time.Now()}
	client := fake.NewClientset(objects()...)
	has := cluster.PullSecrets{Lookups: newLookups(t, client, now)}
	for _, row := range []struct {
		reason, name string
		want         bool
	}{
		{"one that is there", "pull", true},
		{"one that is not", "later", false},
		{"a name that nothing can have", "../pull", false},
	} {
		if got, err := has.Has(t.Context(), "shop", row.name); got != row.want || err != nil {
			t.Errorf("%s: %t, %v", row.reason, got, err)
		}
	}
	made := &core.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "later"}}
	if _, err := client.CoreV1().Secrets("shop").Create(t.Context(), made, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	now.now = now.now.Add(6 * time.Second)
	if got, err := has.Has(t.Context(), "shop", "later"); !got || err != nil {
		t.Errorf("one that was made 6 s ago: %t, %v", got, err)
	}
	client.PrependReactor("get", "secrets", func(kubetesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "x", errors.New("no"))
	})
	if got, err := has.Has(t.Context(), "shop", "secret"); got || !errors.Is(err, cluster.ErrForbidden) {
		t.Errorf("in a forbidden namespace: %t, %v", got, err)
	}
}
