package samples

// Objects that run IMAGE, with the labels that policies ask for.
const (
	labels = `"labels":{"prod":"true","env":"prod","foo":"bar"}`
	spec   = `"spec":{"containers":[{"name":"app","image":"IMAGE"}]}`

	pod        = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"app",` + labels + `},` + spec + `}`
	plainPod   = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"app"},` + spec + `}`
	deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"app",` + labels + `},"spec":{"selector":{"matchLabels":{"foo":"bar"}},"template":{"metadata":{` + labels + `},` + spec + `}}}`
	// testDeployment is one of another environment.
	testDeployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"app","labels":{"env":"test"}},"spec":{"selector":{"matchLabels":{"foo":"bar"}},"template":{"metadata":{` + labels + `},` + spec + `}}}`
	cronJob        = `{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"app",` + labels + `},"spec":{"schedule":"@daily","jobTemplate":{"spec":{"template":{"metadata":{` + labels + `},"spec":{"restartPolicy":"Never","containers":[{"name":"app","image":"IMAGE"}]}}}}}}`
	task           = `{"apiVersion":"tekton.dev/v1beta1","kind":"Task","metadata":{"name":"app"},"spec":{"steps":[{"name":"build","image":"IMAGE"}]}}`
	taskRun        = `{"apiVersion":"tekton.dev/v1beta1","kind":"TaskRun","metadata":{"name":"app"},"spec":{"taskRef":{"name":"build","bundle":"IMAGE"}}}`
)
