package pinnable_test

import (
	"fmt"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config/pinnable"
)

func ExampleControllers() {
	fmt.Println(pinnable.Controllers()["CronJob"], pinnable.Kinds())
	// Output: batch CronJob, DaemonSet, Deployment, Job, PodTemplate, ReplicaSet, ReplicationController, StatefulSet
}
