// Package carried reads the configuration of the gateway of a cluster, and carries the settings that affect
// verdicts to a program elsewhere.
package carried

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/gate"
)

// The ConfigMap of the gateway's configuration, as in deploy.
const (
	configurationName = "quaymaster"
	configurationKey  = "gateway.yaml"
)

// Read reads the configuration of the gateway of a cluster, from the ConfigMap
// quaymaster of a namespace; an empty one means quaymaster.
func Read(ctx context.Context, client *cluster.Client, namespace string) (config.Configuration, error) {
	if namespace == "" {
		namespace = configurationName
	}
	lookups, err := cluster.NewLookups(cluster.LookupOptions{Client: client.Typed})
	if err != nil {
		return config.Configuration{}, err
	}
	defer lookups.Close()
	name := "ConfigMap " + namespace + "/" + configurationName
	found, err := lookups.ConfigMap(ctx, namespace, configurationName)
	if err != nil {
		return config.Configuration{}, fmt.Errorf("%s: %w", name, err)
	}
	data, _ := found["data"].(map[string]any)
	text, _ := data[configurationKey].(string)
	if text == "" {
		return config.Configuration{}, fmt.Errorf("%s has no %s", name, configurationKey)
	}
	c, err := config.Parse([]byte(text))
	if err != nil {
		return config.Configuration{}, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

// Given are replacements for files of the gateway.
type Given struct{ Policies, Mirrors, TrustedRoot bool }

// Settings returns the settings that affect verdicts, for a Reader elsewhere. It also returns a
// sentence for each other setting that affects verdicts and is not included.
func Settings(c config.Configuration, given Given) (config.Configuration, []string) {
	settings := config.Configuration{
		Header: config.Header{APIVersion: config.APIVersion, Kind: config.Kind}, Namespace: c.Namespace,
		Webhooks: config.Webhooks{ExcludedNamespaces: c.Webhooks.ExcludedNamespaces, MutateControllers: c.Webhooks.MutateControllers, OnlyPods: c.Webhooks.OnlyPods},
		Policies: c.Policies, Exceptions: c.Exceptions, Requirements: c.Requirements, Cleanup: c.Cleanup,
		Mirrors: config.Mirrors{ConfigMaps: c.Mirrors.ConfigMaps, OpenShift: c.Mirrors.OpenShift},
		Trust:   config.Trust{RetiredKeys: c.Trust.RetiredKeys, RetiredIdentities: c.Trust.RetiredIdentities, Builders: c.Trust.Builders},
	}
	settings.Policies.Folders, settings.Policies.WriteStatus, settings.Policies.NativePolicies = nil, "", ""
	settings.Policies.Audit = slices.DeleteFunc(slices.Clone(c.Policies.Audit),
		func(source string) bool { return source != config.AuditCluster && source != config.AuditFolders })
	var lost []string
	note := func(is bool, format string, args ...any) {
		if is {
			lost = append(lost, fmt.Sprintf(format, args...))
		}
	}
	note(len(c.Policies.Folders) > 0 && !given.Policies, "the gateway has policies in folders of its own (policies.folders), which are not read: what they deny is not denied here, unless --policy gives them")
	note(len(c.Mirrors.Files) > 0 && !given.Mirrors, "the gateway has mirrors in files of its own (mirrors.files), which are not read: copies are judged by fewer names here, unless --mirrors gives them")
	note(c.Trust.TrustedRoot != "" && !given.TrustedRoot, "the gateway has a trusted root of its own (trust.trustedRoot), which is not read: keyless signatures are judged by the public-good instance's, unless --trusted-root gives it")
	r := c.Registries
	note(len(r.Hosts)+len(r.Loopback)+len(r.PullSecrets)+len(r.Providers) > 0 || r.CAFile != "" || r.NoPrivate,
		"the gateway reaches registries by settings and credentials of its own (registries), which are not carried: what only it may read could not be read here")
	return settings, lost
}

// AsAdmitted converts a request to its form at admission: pods made from templates are pinned,
// and the templates where a rule names their kind itself.
func AsAdmitted(c config.Configuration, request *gate.Request) {
	kind := request.Object.Kind()
	if request.Pinning == gate.PinHere && kind != "Pod" && !request.Object.IsDocument() && !slices.Contains(c.Webhooks.MutateControllers, kind) {
		request.Pinning = gate.PinNamed
		if c.Webhooks.OnlyPods {
			request.Pinning = gate.PinKept
		}
	}
}

// Bundled encodes the Settings for use without a cluster, where mirrors are documents.
func Bundled(c config.Configuration) ([]byte, error) {
	settings, _ := Settings(c, Given{})
	settings.Mirrors, settings.Cleanup = config.Mirrors{}, config.Cleanup{}
	text, err := json.Marshal(settings)
	if err != nil {
		return nil, fmt.Errorf("the gateway's settings: %w", err)
	}
	return text, nil
}
