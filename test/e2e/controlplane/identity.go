package controlplane

import (
	"context"
	"fmt"

	authentication "k8s.io/api/authentication/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// tokenSeconds is how long a service account's token is good for.
const tokenSeconds = 6 * 3600

// Admin returns a configuration that may do everything. Its clients have no limit on requests
// a second.
func (c *ControlPlane) Admin() *rest.Config { return rest.CopyConfig(c.admin) }

// User returns a configuration for a user with groups, by client certificate. Roles grant its
// permissions.
func (c *ControlPlane) User(name string, groups ...string) (*rest.Config, error) {
	pair, err := c.authority.Client(name, groups...)
	if err != nil {
		return nil, err
	}
	config := c.anonymous()
	config.CertData, config.KeyData = pair.Certificate, pair.Key
	return config, nil
}

// ServiceAccount returns a configuration for a service account that exists, by
// a token as pods get it.
func (c *ControlPlane) ServiceAccount(ctx context.Context, namespace, name string) (*rest.Config, error) {
	token, err := c.Token(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	config := c.anonymous()
	config.BearerToken = token
	return config, nil
}

// Token returns a token of a service account that exists, for audiences, or else for
// the API server.
func (c *ControlPlane) Token(ctx context.Context, namespace, name string, audiences ...string) (string, error) {
	client, err := kubernetes.NewForConfig(c.admin)
	if err != nil {
		return "", err
	}
	seconds := int64(tokenSeconds)
	answer, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authentication.TokenRequest{
		Spec: authentication.TokenRequestSpec{ExpirationSeconds: &seconds, Audiences: audiences},
	}, meta.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("get a token of the service account %s/%s: %w", namespace, name, err)
	}
	return answer.Status.Token, nil
}

func (c *ControlPlane) anonymous() *rest.Config {
	return &rest.Config{
		Host: "https://" + c.address, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: c.authority.pem},
		// A test that needs the warnings sets a handler: printed, they bury a failure.
		WarningHandler: rest.NoWarnings{},
	}
}

// Namespace makes a namespace with its default service account, if it is not
// there. Labels are key, value, key, value.
func (c *ControlPlane) Namespace(ctx context.Context, name string, labels ...string) error {
	client, err := kubernetes.NewForConfig(c.admin)
	if err != nil {
		return err
	}
	namespace := &core.Namespace{ObjectMeta: meta.ObjectMeta{Name: name, Labels: map[string]string{}}}
	for i := 0; i+1 < len(labels); i += 2 {
		namespace.Labels[labels[i]] = labels[i+1]
	}
	_, err = client.CoreV1().Namespaces().Create(ctx, namespace, meta.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the namespace %s: %w", name, err)
	}
	account := &core.ServiceAccount{ObjectMeta: meta.ObjectMeta{Name: "default"}}
	_, err = client.CoreV1().ServiceAccounts(name).Create(ctx, account, meta.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the service account %s/default: %w", name, err)
	}
	return nil
}

// Serving issues a certificate for servers on loopback, such as webhooks. It is
// signed by the authority in CAData of every configuration here.
func (c *ControlPlane) Serving() (Pair, error) { return c.authority.Server() }
