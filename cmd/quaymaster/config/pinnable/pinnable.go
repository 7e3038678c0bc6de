// Package pinnable lists the controllers of Pods (Kubernetes 1.36) with templates that a setting can pin.
package pinnable

import (
	"maps"
	"slices"
	"strings"
)

// Controllers are the kinds that can be pinned, with their groups.
func Controllers() map[string]string {
	return map[string]string{
		"DaemonSet": "apps", "Deployment": "apps", "ReplicaSet": "apps", "StatefulSet": "apps",
		"CronJob": "batch", "Job": "batch", "PodTemplate": "", "ReplicationController": "",
	}
}

// Kinds are their names, for messages.
func Kinds() string {
	return strings.Join(slices.Sorted(maps.Keys(Controllers())), ", ")
}
