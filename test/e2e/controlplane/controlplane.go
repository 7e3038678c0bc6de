// Package controlplane runs a real Kubernetes API server.
//
// It runs etcd and kube-apiserver, and kube-controller-manager when asked, on loopback, with
// certificates of its own and role-based access control. There are no nodes and no scheduler:
// objects are admitted, stored and watched, and no pod runs.
package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/client-go/rest"

	"github.com/quaymaster/quaymaster/test/e2e/process"
	"github.com/quaymaster/quaymaster/test/peers"
)

// startTimeout is how long a server may take to get ready, on a busy machine;
// stopTimeout, to go.
const startTimeout, stopTimeout = 2 * time.Minute, 30 * time.Second

// Options of a control plane. Only Folder is required.
type Options struct {
	// Folder holds certificates, data and logs; the caller removes it.
	Folder string
	// Controllers runs kube-controller-manager: jobs, deployments, garbage
	// collection by owner reference, the end of namespaces.
	Controllers bool
	// Oldest runs the API server of the oldest Kubernetes that the charts allow, in place of
	// the newest. The controllers are the newest's.
	Oldest bool
	// ServiceAccounts switches the admission plugin on that refuses pods of
	// namespaces without a service account, and mounts its token.
	ServiceAccounts bool
	// Admission is an AdmissionConfiguration (YAML), for example with a
	// kubeconfig for webhooks that holds client certificates.
	Admission []byte
	// Flags are further flags of the API server.
	Flags []string
}

// ControlPlane is a running API server and what belongs to it.
type ControlPlane struct {
	options   Options
	authority *Authority
	address   string // of the API server
	data      string // etcd's URL
	flags     []string
	admin     *rest.Config

	etcd, server, controllers *process.Process
}

// Start returns a control plane that is ready. It builds the programs first if
// they are not there yet, which takes minutes, once.
func Start(ctx context.Context, o Options) (_ *ControlPlane, err error) {
	if o.Folder == "" {
		return nil, errors.New("start a control plane: Folder is required")
	}
	c := &ControlPlane{options: o}
	defer func() {
		if err != nil {
			c.Close()
			err = fmt.Errorf("start a control plane: %w", err)
		}
	}()
	c.authority, err = NewAuthority("control plane")
	if err != nil {
		return nil, err
	}
	c.address, err = process.FreeAddress(ctx)
	if err != nil {
		return nil, err
	}
	c.admin, err = c.User("admin", "system:masters")
	if err != nil {
		return nil, err
	}
	c.data, err = c.startEtcd(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.prepare(c.data); err != nil {
		return nil, err
	}
	if err := c.StartAPIServer(ctx); err != nil {
		return nil, err
	}
	if o.Controllers {
		if err := c.StartControllers(ctx); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Close ends all programs.
func (c *ControlPlane) Close() {
	// In this order: an API server without etcd would only complain.
	for _, p := range []*process.Process{c.controllers, c.server, c.etcd} {
		if p != nil {
			p.Kill()
		}
	}
}

// Address of the API server, host and port.
func (c *ControlPlane) Address() string { return c.address }

// APIServer is the process, for its log and usage. It changes when the server
// is started again.
func (c *ControlPlane) APIServer() *process.Process { return c.server }

func (c *ControlPlane) startEtcd(ctx context.Context) (url string, err error) {
	program, err := peers.Build(ctx, peers.Etcd)
	if err != nil {
		return "", err
	}
	var addresses [2]string
	for i := range addresses {
		addresses[i], err = process.FreeAddress(ctx)
		if err != nil {
			return "", err
		}
	}
	clients, members := "http://"+addresses[0], "http://"+addresses[1]
	c.etcd, err = process.Start(process.Options{Path: program, Folder: c.options.Folder, Args: []string{
		"--data-dir=" + filepath.Join(c.options.Folder, "etcd"),
		"--listen-client-urls=" + clients, "--advertise-client-urls=" + clients,
		"--listen-peer-urls=" + members, "--initial-advertise-peer-urls=" + members,
		"--initial-cluster=default=" + members,
		"--unsafe-no-fsync", "--log-level=warn",
	}})
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return clients, c.etcd.Await(ctx, func(ctx context.Context) error {
		connection, err := new(net.Dialer).DialContext(ctx, "tcp", addresses[0])
		if err != nil {
			return err
		}
		return connection.Close()
	})
}

// prepare writes the files that the API server reads, and decides its flags.
func (c *ControlPlane) prepare(etcd string) error {
	serving, err := c.authority.Server()
	if err != nil {
		return err
	}
	private, public, err := newKey()
	if err != nil {
		return err
	}
	const authority, certificate, key, signing, verifying, admission = "ca.crt", "server.crt", "server.key", "accounts.key", "accounts.pub", "admission.yaml"
	for name, content := range map[string][]byte{
		authority: c.authority.pem, certificate: serving.Certificate, key: serving.Key,
		signing: private, verifying: public, admission: c.options.Admission,
	} {
		if err := os.WriteFile(c.file(name), content, 0o600); err != nil {
			return err
		}
	}
	host, port, err := net.SplitHostPort(c.address)
	if err != nil {
		return err
	}
	c.flags = []string{
		"--etcd-servers=" + etcd,
		"--bind-address=" + host, "--advertise-address=" + host, "--secure-port=" + port,
		"--endpoint-reconciler-type=none", // a loopback address is no endpoint
		"--service-cluster-ip-range=10.0.0.0/24",
		"--tls-cert-file=" + c.file(certificate), "--tls-private-key-file=" + c.file(key),
		"--client-ca-file=" + c.file(authority),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.file(verifying), "--service-account-signing-key-file=" + c.file(signing),
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
	}
	if !c.options.ServiceAccounts {
		c.flags = append(c.flags, "--disable-admission-plugins=ServiceAccount")
	}
	if len(c.options.Admission) > 0 {
		c.flags = append(c.flags, "--admission-control-config-file="+c.file(admission))
	}
	c.flags = append(c.flags, c.options.Flags...)
	return nil
}

func (c *ControlPlane) file(name string) string { return filepath.Join(c.options.Folder, name) }

// StartAPIServer starts the API server at its address, after StopAPIServer, with further
// flags for this once, and returns when it is ready.
func (c *ControlPlane) StartAPIServer(ctx context.Context, flags ...string) error {
	name := peers.KubeAPIServer
	if c.options.Oldest {
		name = peers.OldestKubeAPIServer
	}
	program, err := peers.Build(ctx, name)
	if err != nil {
		return err
	}
	c.server, err = process.Start(process.Options{Path: program, Folder: c.options.Folder, Args: slices.Concat(c.flags, flags)})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	client, err := rest.HTTPClientFor(c.admin)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	return c.server.Await(ctx, func(ctx context.Context) error { return process.Answers(ctx, client, c.admin.Host+"/readyz") })
}

// StopAPIServer asks the API server to end, and returns when it has; etcd keeps its data.
func (c *ControlPlane) StopAPIServer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	return c.server.Stop(ctx)
}

// KillAPIServer ends the API server at once, which waits for watches for a minute
// when it is asked to end.
func (c *ControlPlane) KillAPIServer() { c.server.Kill() }

// KillControllers ends kube-controller-manager, if it runs.
func (c *ControlPlane) KillControllers() {
	if c.controllers != nil {
		c.controllers.Kill()
	}
}

// StartControllers starts kube-controller-manager, after KillControllers, and does not wait
// for it.
func (c *ControlPlane) StartControllers(ctx context.Context) error {
	program, err := peers.Build(ctx, peers.KubeControllerManager)
	if err != nil {
		return err
	}
	kubeconfig := c.file("controllers.kubeconfig")
	if err := WriteKubeconfig(kubeconfig, c.admin); err != nil {
		return err
	}
	c.controllers, err = process.Start(process.Options{Path: program, Folder: c.options.Folder, Args: []string{
		"--kubeconfig=" + kubeconfig, "--leader-elect=false", "--secure-port=0",
		"--service-account-private-key-file=" + c.file("accounts.key"), "--root-ca-file=" + c.file("ca.crt"),
		"--kube-api-qps=200", "--kube-api-burst=400",
		"--controllers=cronjob-controller,daemonset-controller,deployment-controller,garbage-collector-controller," +
			"job-controller,namespace-controller,replicaset-controller,serviceaccount-controller,statefulset-controller,validatingadmissionpolicy-status-controller",
	}})
	return err
}

// Kubeconfig returns a kubeconfig file (JSON, which is YAML) that does what
// config does.
func Kubeconfig(config *rest.Config) ([]byte, error) {
	type named map[string]any
	user := named{}
	if config.BearerToken != "" {
		user["token"] = config.BearerToken
	}
	if len(config.CertData) > 0 {
		user["client-certificate-data"], user["client-key-data"] = config.CertData, config.KeyData
	}
	content := &bytes.Buffer{}
	err := json.NewEncoder(content).Encode(named{
		"apiVersion": "v1", "kind": "Config", "current-context": "default",
		"clusters": []named{{"name": "default", "cluster": named{"server": config.Host, "certificate-authority-data": config.CAData}}},
		"users":    []named{{"name": "default", "user": user}},
		"contexts": []named{{"name": "default", "context": named{"cluster": "default", "user": "default"}}},
	})
	return content.Bytes(), err
}

// WriteKubeconfig writes a Kubeconfig into a file.
func WriteKubeconfig(file string, config *rest.Config) error {
	content, err := Kubeconfig(config)
	if err != nil {
		return fmt.Errorf("write the kubeconfig %s: %w", file, err)
	}
	return os.WriteFile(file, content, 0o600)
}
