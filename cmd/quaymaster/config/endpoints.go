package config

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/webhook/configuration"
)

// The paths of the optional endpoints.
const (
	ImageReviewPath = "/imagereview"
	DataVerifyPath  = "/externaldata/verify"
	DataMutatePath  = "/externaldata/mutate"
	APIPath         = "/api/v1/verify"
)

// Paths are the active endpoints: those of the API server's webhooks, and the enabled optional
// ones.
func (d Endpoints) Paths() []string {
	list := []string{configuration.MutatePath, configuration.ValidatePath, configuration.DocumentsPath,
		configuration.ShadowPath, configuration.ShadowDocumentsPath, configuration.ProbePath}
	if d.ImageReview {
		list = append(list, ImageReviewPath)
	}
	if d.ExternalData {
		list = append(list, DataVerifyPath, DataMutatePath)
	}
	if d.API.IsOpen() {
		list = append(list, APIPath)
	}
	return list
}

// Controllers are the kinds that can be pinned, with their groups.
func Controllers() map[string]string {
	return map[string]string{
		"DaemonSet": "apps", "Deployment": "apps", "ReplicaSet": "apps", "StatefulSet": "apps",
		"CronJob": "batch", "Job": "batch", "PodTemplate": "", "ReplicationController": "",
	}
}

// controllerKinds are their names, for messages.
func controllerKinds() string {
	return strings.Join(slices.Sorted(maps.Keys(Controllers())), ", ")
}

// HostOf returns the host of a URL; empty where there is none.
func HostOf(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return parsed.Hostname()
}
