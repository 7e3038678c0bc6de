package patch_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/patch"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

const pod = `{apiVersion: v1, kind: Pod, metadata: {name: a, labels: {app: web}}, spec: {containers: [
  {name: one, image: "reg/one:1", ports: [{containerPort: 80, protocol: TCP}]}, {name: two, image: "two:latest", imagePullPolicy: Never}],
  volumes: [{name: data, emptyDir: {}}, {name: host, hostPath: {path: /data}}], tolerations: [{key: x}]}}`

func TestMergePod(t *testing.T) {
	for _, c := range []struct {
		patch  string
		want   string // operations of the result, or the beginning of why it is skipped
		reason string
	}{
		{`metadata: {labels: {app: web}}`, `[]`, "a value that is there already"},
		{`metadata: {labels: {app: api, b: c}}`, `[replace /metadata/labels/app "api"] [add /metadata/labels/b "c"]`, "members are replaced and added"},
		{`metadata: {labels: {app: null, b: null}}`, `[remove /metadata/labels/app]`, "null deletes a present key"},
		{`metadata: {annotations: {a: b, c: null}}`, `[add /metadata/annotations {"a":"b"}]`, "parents are made, without null"},
		{`metadata: {annotations: {c: null}}`, `[]`, "nothing is made of null"},
		{`metadata: {annotations: {}}`, `[add /metadata/annotations {}]`, "an empty object is written"},
		{`metadata: {labels: {}}`, `[]`, "an empty object changes no other"},
		{`metadata: {labels: {+(app): api, +(b): c}}`, `[add /metadata/labels/b "c"]`, "+() adds an absent key"},
		{`metadata: {labels: {(): x, +(): z}}`, `[add /metadata/labels/() "x"] [add /metadata/labels/+() "z"]`, "no anchor: there is nothing in it"},
		{`metadata: {labels: {a): x, (a)b: z}}`, `[add /metadata/labels/(a)b "z"] [add /metadata/labels/a) "x"]`, "no anchor: half of one"},
		{`metadata: {labels: {f(x): x, ab(x): z}}`, `[add /metadata/labels/ab(x) "z"] [add /metadata/labels/f(x) "x"]`, "no anchor: something else in front"},
		{`metadata: {+(annotations): {a: b}}`, `[add /metadata/annotations {"a":"b"}]`, "+() with an object"},
		{`spec: {containers: [{name: one, image: x}]}`, `[replace /spec/containers/0/image "x"]`, "a container by name"},
		{`spec: {containers: [{name: one, $patch: delete}, {name: one, image: x}]}`, `[replace /spec/containers/0/image "x"] [remove /spec/containers/0/ports]`, "a container that is deleted and written anew"},
		{`spec: {containers: [{name: new, image: x}]}`, `[add /spec/containers/0 {"image":"x","name":"new"}]`, "a new container comes first"},
		{`spec: {initContainers: [{image: x}]}`, `[add /spec/initContainers [{"image":"x"}]]`, "a list that is not there is written as the policy has it"},
		{`spec: {containers: [{name: two, image: x}]}`, `[remove /spec/containers/1] [add /spec/containers/0 {"image":"x","imagePullPolicy":"Never","name":"two"}]`, "the patched element comes first"},
		{`spec: {containers: [{name: one, ports: [{containerPort: 80, name: http}]}]}`, `[add /spec/containers/0/ports/0/name "http"]`, "a port by its number"},
		{`spec: {containers: [{name: one, ports: [{containerPort: 80, protocol: UDP}]}]}`, `[add /spec/containers/0/ports/0 {"containerPort":80,"protocol":"UDP"}]`, "another protocol is another port"},
		{`spec: {tolerations: [{key: z}]}`, `[replace /spec/tolerations/0 {"key":"z"}]`, "tolerations are replaced"},
		{`spec: {tolerations: []}`, `[remove /spec/tolerations/0]`, "by nothing, too"},
		{`spec: {tolerations: [{key: x}]}`, `[]`, "or by the same"},
		{`spec: {volumes: [{name: data, emptyDir: {medium: Memory}}]}`, `[add /spec/volumes/0/emptyDir/medium "Memory"]`, "below an element"},
		{`spec: {volumes: [{name: new, emptyDir: {}}]}`, `[add /spec/volumes/0 {"emptyDir":{},"name":"new"}]`, "emptyDir: {} is not lost"},
		{`metadata: {finalizers: [a, b]}`, `[add /metadata/finalizers ["a","b"]]`, "strings, each once"},

		{`spec: {containers: [{(name): "*", imagePullPolicy: Always}]}`, `[replace /spec/containers/1/imagePullPolicy "Always"] [add /spec/containers/0/imagePullPolicy "Always"]`, "every container"},
		{`spec: {containers: [{(image): "*:latest", imagePullPolicy: Always}]}`, `[remove /spec/containers/1] [add /spec/containers/0 {"image":"two:latest","imagePullPolicy":"Always","name":"two"}]`, "the container with that image"},
		{`spec: {containers: [{(image): "other", imagePullPolicy: Always}]}`, `[]`, "no container with that image"},
		{`{metadata: {labels: {b: c}}, spec: {containers: [{(image): "other", imagePullPolicy: Always}]}}`, `[add /metadata/labels/b "c"]`, "which does not hold the rest up"},
		{`spec: {containers: [{(name): "*", +(imagePullPolicy): Always}]}`, `[add /spec/containers/0/imagePullPolicy "Always"]`, "+() for each container by itself"},
		{`spec: {containers: [{+(imagePullPolicy): Always}]}`, `[add /spec/containers/0/imagePullPolicy "Always"]`, "+() alone selects all"},
		{`spec: {initContainers: [{+(imagePullPolicy): Always}]}`, `[]`, "of none: an element without name is not added"},
		{`spec: {containers: [{+(name): one, tty: true}]}`, `[add /spec/containers/1/tty true] [add /spec/containers/0/tty true]`, "a name with +() is none to select by"},
		{`spec: {containers: [{name: one, +(imagePullPolicy): Always}]}`, `[add /spec/containers/0/imagePullPolicy "Always"]`, "+() in a container by name"},
		{`spec: {containers: [{name: two, +(imagePullPolicy): Always}]}`, `[remove /spec/containers/1] [add /spec/containers/0 {"image":"two:latest","imagePullPolicy":"Never","name":"two"}]`, "that has it"},
		{`spec: {containers: [{name: one, (image): "reg/*", tty: true}]}`, `[add /spec/containers/0/tty true]`, "a name and a condition"},
		{`spec: {containers: [{name: one, (image): "other/*", tty: true}]}`, `[]`, "a name and a condition that does not hold"},
		{`spec: {containers: [{name: new, (image): "*", tty: true}]}`, `[]`, "a condition does not hold for a missing element"},
		{`spec: {containers: [{(name): "*", ports: [{(containerPort): "80", name: http}]}]}`, `[add /spec/containers/0/ports/0/name "http"]`, "lists in lists"},
		{`spec: {containers: [{name: one, ports: [{(containerPort): 80, name: http}]}]}`, `[add /spec/containers/0/ports/0/name "http"]`, "a number as a condition"},
		{`spec: {containers: [{name: one, ports: [{(containerPort): ">79", name: http}]}]}`, `[add /spec/containers/0/ports/0/name "http"]`, "with an operator"},
		{`spec: {containers: [{name: one, ports: [{(containerPort): "<80", name: http}]}]}`, `[]`, "with an operator that does not hold"},
		{`spec: {containers: [{(name): "*", resources: {requests: {+(cpu): "1"}}}]}`, `[add /spec/containers/1/resources {"requests":{"cpu":"1"}}] [add /spec/containers/0/resources {"requests":{"cpu":"1"}}]`, "+() further in"},
		{`spec: {containers: [{(name): "*", +(ports): []}]}`, `[remove /spec/containers/1] [add /spec/containers/0 {"image":"two:latest","imagePullPolicy":"Never","name":"two","ports":[]}]`, "what +() changes comes first"},
		{`spec: {containers: [{(image): "two:*"}]}`, `[]`, "conditions alone move nothing"},
		{`spec: {containers: [{(image): "two:*", +(imagePullPolicy): Always}]}`, `[]`, "nor does +() with nothing to add"},
		{`spec: {containers: [{(image): "two:*", imagePullPolicy: Never}]}`, `[remove /spec/containers/1] [add /spec/containers/0 {"image":"two:latest","imagePullPolicy":"Never","name":"two"}]`, "the patched element comes first, though it is unchanged"},
		{`spec: {initContainers: [{(name): "*", tty: true}]}`, `[]`, "no list to select from"},
		{`spec: {tolerations: [{(key): x, effect: NoSchedule}]}`, `[add /spec/tolerations/0/effect "NoSchedule"]`, "a list without merge key is patched in place"},
		{`spec: {tolerations: [{(key): y, effect: NoSchedule}]}`, `[]`, "where the condition holds"},

		{`{metadata: {labels: {b: c}}, spec: {containers: [{<(image): "reg/*"}]}}`, `[add /metadata/labels/b "c"]`, "<() holds for one container"},
		{`{metadata: {labels: {b: c}}, spec: {containers: [{<(image): "nope/*"}]}}`, `skipped /spec/containers/1/image`, "<() holds for none"},
		{`{metadata: {labels: {b: c}}, spec: {volumes: [{<(emptyDir): {}}]}}`, `[add /metadata/labels/b "c"]`, "<() with an empty object"},
		{`{metadata: {labels: {b: c}}, spec: {volumes: [{<(secret): {}}]}}`, `skipped /spec/volumes/1/secret`, "no volume is a secret"},
		{`{metadata: {labels: {b: c}}, spec: {volumes: [{hostPath: {<(path): "*"}}]}}`, `[add /metadata/labels/b "c"]`, "<() further in"},
		{`{metadata: {labels: {b: c}}, spec: {volumes: [{secret: {<(secretName): "*"}}]}}`, `skipped /spec/volumes/1/secret/secretName`, "further in, and none"},
		{`{metadata: {labels: {b: c}}, spec: {initContainers: [{<(image): "*"}]}}`, `skipped /spec/initContainers/-/image`, "<() for a list that is not there"},
		{`{metadata: {labels: {b: c}}, spec: {containers: [{(name): nobody, <(image): "reg/*"}]}}`, `skipped /spec/containers/1/image`, "<() goes before ()"},
		{`{metadata: {labels: {b: c}}, spec: {containers: [{(name): nobody, <(image): "*"}]}}`, `[add /metadata/labels/b "c"]`, "() beside it does not decide for all"},
		{`{metadata: {labels: {b: c}}, spec: {containers: [{" <(image)": "nope/*", (name): "*"}]}}`, `skipped /spec/containers/1/image`, "<() goes before (), as the first of them, too"},
		{`{metadata: {labels: {b: c}}, spec: {containers: [{" <(image)": "reg/*", (name): "*"}]}}`, `[add /metadata/labels/b "c"]`, "and holds for one container"},
		{`{metadata: {labels: {b: c}}, spec: {containers: [{<(image): "reg/*", tty: true}]}}`, `[add /metadata/labels/b "c"]`, "an element with <() only decides"},

		{`{metadata: {labels: {b: c, (app): web}}}`, `[add /metadata/labels/b "c"]`, "() in an object"},
		{`{metadata: {labels: {b: c, (app): api}}}`, `skipped /metadata/labels/app`, "() that does not hold"},
		{`{metadata: {labels: {b: c, (other): "*"}}}`, `skipped /metadata/labels/other`, "() on a missing key"},
		{`{metadata: {annotations: {b: c, (other): "*"}}}`, `skipped /metadata/annotations/other`, "() in a missing object"},
		{`{spec: {(tolerations): [{key: x}], priority: 1}}`, `[add /spec/priority 1]`, "() with a list"},
		{`{spec: {(tolerations): [{key: y}], priority: 1}}`, `skipped /spec/tolerations`, "() with a list that does not hold"},
		{`{spec: {(containers): [{<(image): reg/*}], priority: 1}}`, `[add /spec/priority 1]`, "() with <() in it"},
		{`{spec: {(containers): [{<(image): nope/*}], priority: 1}}`, `skipped /spec/containers`, "() with <() in it that holds for none"},
		{`{(metadata): {=(labels): {(app): web}, =(none): x}, spec: {priority: 1}}`, `[add /spec/priority 1]`, "() with another in it"},
		{`{(metadata): {=(labels): {(app): api}, =(none): x}, spec: {priority: 1}}`, `skipped /metadata`, "() with another in it that does not hold"},
		{`{metadata: {(labels): {app: "w*"}, annotations: {a: b}}}`, `[add /metadata/annotations {"a":"b"}]`, "() writes no wildcards"},
		{`{metadata: {(labels): {+(b): c}}}`, `[add /metadata/labels/b "c"]`, "+() in () adds where x exists"},
		{`{metadata: {(annotations): {+(b): c}}}`, `skipped /metadata/annotations`, "and not where it does not"},
		{`spec: {containers: [{name: one, ports: [{containerPort: 80, (hostPort): "8080", name: x}]}]}`, `[]`, "a condition skips its element"},

		{`metadata: {labels: {$patch: delete}}`, `[remove /metadata/labels]`, "delete an object"},
		{`metadata: {annotations: {$patch: delete}}`, `[]`, "delete a missing object"},
		{`metadata: {labels: {$patch: replace, a: b}}`, `[remove /metadata/labels/app] [add /metadata/labels/a "b"]`, "replace an object"},
		{`metadata: {labels: {$patch: replace, app: web}}`, `[]`, "replace an object by itself"},
		{`metadata: {labels: {$patch: replace}}`, `[remove /metadata/labels/app]`, "replace an object by an empty one"},
		{`metadata: {annotations: {$patch: replace}}`, `[add /metadata/annotations {}]`, "replace nothing by an empty one"},
		{`metadata: {labels: {$patch: merge, a: b}}`, `[add /metadata/labels/a "b"]`, "merge an object"},
		{`metadata: {annotations: {$patch: replace, a: b}}`, `[add /metadata/annotations {"a":"b"}]`, "replace nothing"},
		{`spec: {containers: [{name: one, $patch: delete}]}`, `[remove /spec/containers/0]`, "delete an element"},
		{`spec: {containers: [{name: new, $patch: delete}]}`, `[]`, "delete an element that is not there"},
		{`spec: {containers: [{(image): "*:latest", $patch: delete}]}`, `[remove /spec/containers/1]`, "delete an element by a condition"},
		{`spec: {volumes: [{(name): "*", hostPath: {(path): "/data"}, $patch: delete}]}`, `[remove /spec/volumes/1]`, "delete an element by a condition further in"},
		{`spec: {volumes: [{(name): "*", hostPath: {(path): "/etc"}, $patch: delete}]}`, `[]`, "that holds for none"},
		{`spec: {volumes: [{name: host, hostPath: {(path): "/data"}, $patch: delete}]}`, `[remove /spec/volumes/1]`, "by a name and one further in"},
		{`spec: {volumes: [{name: host, hostPath: {(path): "/etc"}, $patch: delete}]}`, `[]`, "that does not hold"},
		{`{metadata: {labels: {$patch: delete, (app): web}}}`, `[remove /metadata/labels]`, "delete an object by a condition"},
		{`{metadata: {labels: {$patch: delete, (app): api}}}`, `skipped /metadata/labels/app`, "that does not hold"},
		{`{metadata: {$patch: delete, labels: {(app): api}}}`, `skipped /metadata/labels/app`, "nor further in"},
		{`{metadata: {$patch: delete, labels: {(app): web}}}`, `[remove /metadata]`, "where it holds"},
		{`{metadata: {$patch: delete, labels: x}}`, `[remove /metadata]`, "keys that are no condition do not matter"},
		{`spec: {volumes: [{$patch: delete}, {<(hostPath): {path: "*"}}]}`, `[remove /spec/volumes]`, "delete a list if <() holds for an element"},
		{`spec: {volumes: [{$patch: delete}, {<(secret): {}}]}`, `skipped /spec/volumes/1/secret`, "and not if it holds for none"},
		{`spec: {volumes: [{$patch: delete}, {name: x}, {<(secret): {}}]}`, `skipped /spec/volumes/1/secret`, "whatever stands before it"},
		{`spec: {volumes: [{$patch: delete}, {emptyDir: x}]}`, `[remove /spec/volumes]`, "nothing else of such a patch matters"},
		{`spec: {volumes: [{$patch: replace}, {<(hostPath): {path: "*"}}, {name: new}]}`, `[remove /spec/volumes/1] [replace /spec/volumes/0 {"name":"new"}]`, "replace a list if <() holds for an element"},
		{`spec: {volumes: [{$patch: replace}, {<(secret): {}}, {name: new}]}`, `skipped /spec/volumes/1/secret`, "and not if it holds for none"},
		{`spec: {volumes: [{$patch: replace}, {name: new, emptyDir: {}}]}`, `[remove /spec/volumes/1] [replace /spec/volumes/0 {"emptyDir":{},"name":"new"}]`, "replace a list"},
		{`spec: {volumes: [{$patch: replace}, {name: new, +(emptyDir): {}}]}`, `[remove /spec/volumes/1] [replace /spec/volumes/0 {"emptyDir":{},"name":"new"}]`, "+() in a list that is replaced: nothing has it"},
		{`spec: {volumes: [{$patch: replace}, {name: new, (emptyDir): {}}, {name: other}]}`, `[remove /spec/volumes/1] [replace /spec/volumes/0 {"name":"other"}]`, "() in a list that is replaced: nothing is as it wants"},
		{`spec: {volumes: [{$patch: replace}, {name: new, $patch: delete}, {name: other}]}`, `[remove /spec/volumes/1] [replace /spec/volumes/0 {"name":"other"}]`, "nor is there anything to delete"},
		{`spec: {tolerations: [{key: z, value: {$patch: delete}, z: {}}]}`, `[replace /spec/tolerations/0 {"key":"z","z":{}}]`, "a directive in a list that is replaced is none of its members"},
		{`spec: {volumes: [{$patch: delete}]}`, `[remove /spec/volumes]`, "delete a list"},
		{`spec: {initContainers: [{$patch: delete}]}`, `[]`, "delete a list that is not there"},
		{`status: {containerStatuses: [{$patch: delete}]}`, `[]`, "nor is it made to do so"},
		{`spec: {volumes: null}`, `[remove /spec/volumes]`, "delete a list by null"},
	} {
		object := object(t, pod)
		got, err := apply(t, mustMerge(t, read(t, c.patch)), nil, object)
		if was := summary(t, patch.Diff(object, got), err); was != c.want {
			t.Errorf("%s\n%s\n got %s\nwant %s", c.reason, c.patch, was, c.want)
		}
	}
}

// summary writes operations, or why there are none.
func summary(t *testing.T, operations []patch.Operation, err error) string {
	t.Helper()
	skipped := (*patch.SkippedError)(nil)
	if errors.As(err, &skipped) {
		return "skipped " + skipped.Path
	}
	if err != nil {
		return "error " + err.Error()
	}
	var out []string
	for _, o := range operations {
		s := "[" + o.Op + " " + o.Path
		if o.Op != "remove" {
			s += " " + text(t, o.Value)
		}
		out = append(out, s+"]")
	}
	if len(out) == 0 {
		return "[]"
	}
	return strings.Join(out, " ")
}

func TestMergeOtherKinds(t *testing.T) {
	for _, c := range []struct{ object, patch, want, reason string }{
		{`{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {containers: [{name: a}]}}}}`, `spec: {template: {spec: {containers: [{name: b}]}}}`, `[add /spec/template/spec/containers/0 {"name":"b"}]`, "in a template"},
		{`{apiVersion: batch/v1, kind: CronJob, spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: a}]}}}}}}`, `spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: b}]}}}}}`, `[add /spec/jobTemplate/spec/template/spec/containers/0 {"name":"b"}]`, "in a template's template"},
		{`{apiVersion: v1, kind: Service, spec: {ports: [{port: 80, protocol: TCP}]}}`, `spec: {ports: [{port: 80, name: http}]}`, `[add /spec/ports/0/name "http"]`, "a service's ports"},
		{`{apiVersion: example.com/v1, kind: Pod, spec: {containers: [{name: a}]}}`, `spec: {containers: [{name: b}]}`, `[replace /spec/containers/0 {"name":"b"}]`, "a custom resource's list is replaced"},
		{`{apiVersion: example.com/v1, kind: X, spec: {items: [{host: a}, {host: b}]}}`, `spec: {items: [{(host): b, tls: true}]}`, `[add /spec/items/1/tls true]`, "or patched where a condition holds"},
		{`{apiVersion: example.com/v1, kind: X, spec: {items: [{host: a}, {host: b}]}}`, `spec: {items: [{(host): c, tls: true}]}`, `[]`, "and left alone where none does"},
		{`{apiVersion: v1, kind: ConfigMap, metadata: {finalizers: [a, b]}}`, `metadata: {finalizers: [b, c]}`, `[remove /metadata/finalizers/1] [add /metadata/finalizers/0 "c"] [add /metadata/finalizers/0 "b"]`, "finalizers merge"},
		{`{apiVersion: v1, kind: ConfigMap, metadata: {finalizers: [a, b]}}`, `metadata: {finalizers: [a]}`, `[]`, "and lose none"},
		{`{apiVersion: example.com/v1, kind: X, metadata: {finalizers: [a]}}`, `metadata: {finalizers: [b]}`, `[replace /metadata/finalizers/0 "b"]`, "except a custom resource's"},
		{`{apiVersion: v1, kind: Pod, spec: {containers: [{name: a}, {name: b}, {name: c}]}}`, `spec: {containers: [{name: b}, {name: a}, {name: c}]}`, `[remove /spec/containers/1] [add /spec/containers/0 {"name":"b"}]`, "the order of the patch"},
		{`{apiVersion: v1, kind: Pod, spec: {containers: [{name: a}, {name: b}, {name: c}]}}`, `spec: {containers: [{name: a}, {name: b}, {name: c}]}`, `[]`, "that it has already"},
		{`{apiVersion: v1, kind: Pod, spec: {containers: [{name: a}, {name: a}]}}`, `spec: {containers: [{name: a, image: x}]}`, `[add /spec/containers/0/image "x"]`, "of two with a name the first"},
		{`{apiVersion: v1, kind: Pod, spec: {containers: [{name: a}, {name: a}]}}`, `spec: {containers: [{(name): a, image: x}]}`, `[add /spec/containers/1/image "x"] [add /spec/containers/0/image "x"]`, "of two that a condition selects both"},
		{`{apiVersion: v1, kind: Pod, spec: {containers: [{image: a}]}}`, `spec: {containers: [{name: one, image: x}]}`, `[add /spec/containers/0 {"image":"x","name":"one"}]`, "a container without name has no other's"},
		{`{apiVersion: v1, kind: Pod, spec: {containers: [{image: a}]}}`, `spec: {containers: [{name: "null", image: x}]}`, `[add /spec/containers/0 {"image":"x","name":"null"}]`, "nor is null its name"},
		{`{apiVersion: v1, kind: Pod, spec: {containers: [{name: "null"}]}}`, `spec: {containers: [{name: "null", image: x}]}`, `[add /spec/containers/0/image "x"]`, "unless it is written so"},
		{`{apiVersion: v1, kind: Service, spec: {ports: [{port: 80}]}}`, `spec: {ports: [{port: 80, protocol: TCP, name: http}]}`, `[add /spec/ports/0/name "http"] [add /spec/ports/0/protocol "TCP"]`, "a port without a protocol"},
		{`{apiVersion: v1, kind: Service, spec: {ports: [{port: 80, protocol: UDP}]}}`, `spec: {ports: [{port: 80, protocol: TCP, name: http}]}`, `[add /spec/ports/0 {"name":"http","port":80,"protocol":"TCP"}]`, "and one with another"},
		{`{apiVersion: example.com/v1, kind: X, spec: {items: [a, {host: b}]}}`, `spec: {items: [{+(tls): true}]}`, `[add /spec/items/1/tls true]`, "an element that is no object is left alone"},
		{`{apiVersion: v1, kind: Pod, spec: {containers: [{name: a}, {name: b, command: [x]}]}}`, `spec: {containers: [{(name): b, command: [x]}]}`, `[remove /spec/containers/1] [add /spec/containers/0 {"command":["x"],"name":"b"}]`, "the element patched by a list comes first, though it is unchanged"},
		{`{apiVersion: v1, kind: Pod, spec: {containers: [{name: a}, {name: b, ports: [{containerPort: 80}]}]}}`, `spec: {containers: [{(name): b, ports: [{containerPort: 80}, {(containerPort): 81}]}]}`, `[remove /spec/containers/1] [add /spec/containers/0 {"name":"b","ports":[{"containerPort":80}]}]`, "by a part of a list"},
		{`{apiVersion: v1, kind: Pod, spec: {containers: [{name: a}, {name: b, ports: [{containerPort: 80}]}]}}`, `spec: {containers: [{(name): b, ports: [{(containerPort): 80}, {(containerPort): 81}]}]}`, `[]`, "a list of conditions patches nothing"},
		{`{apiVersion: v1, kind: Pod, spec: {containers: [{name: a}, {name: b, resources: {limits: {cpu: "1"}}}]}}`, `spec: {containers: [{(name): b, resources: {limits: {+(cpu): "2"}}}]}`, `[]`, "nor does +() further in with nothing to add"},
		{`{apiVersion: example.com/v1, kind: X, spec: {tls: true, weight: 1.0e-7, size: 80}}`, `spec: {(tls): "true", (weight): 100n, (size): 8*, x: z}`, `[add /spec/x "z"]`, "numbers and booleans as text"},
		{`{apiVersion: example.com/v1, kind: X, spec: {tls: true}}`, `spec: {(tls): "{{ contains('ab', 'a') }}", x: z}`, `[add /spec/x "z"]`, "a boolean as itself"},
		{`{apiVersion: example.com/v1, kind: X, spec: {tls: true}}`, `spec: {(tls): "{{ contains('ab', 'c') }}", x: z}`, `skipped /spec/tls`, "a boolean that is the other"},
		{`{apiVersion: example.com/v1, kind: X, spec: {hosts: [a1]}}`, `spec: {(hosts): ["a*", "?1"], x: z}`, `[add /spec/x "z"]`, "a list of patterns"},
		{`{apiVersion: example.com/v1, kind: X, spec: {hosts: [a1]}}`, `spec: {(hosts): ["b*", "a*"], x: z}`, `skipped /spec/hosts`, "of which the first does not hold"},
		{`{apiVersion: example.com/v1, kind: X, spec: {hosts: [a1]}}`, `spec: {(hosts): ["a*", "b*"], x: z}`, `error patch at /spec/hosts: the comparison is indeterminate: of several items of a list, or of several keys that a wildcard matches, one holds, which may be the only one that Kyverno compares`, "of which the first alone holds"},
		{`{apiVersion: example.com/v1, kind: X, spec: {tls: true, weight: 1.0e-7, size: 80}}`, `spec: {(tls): "true", (weight): 200n, (size): 8*, x: z}`, `skipped /spec/weight`, "a number that is another"},
	} {
		object := object(t, c.object)
		got, err := apply(t, mustMerge(t, read(t, c.patch)), nil, object)
		if was := summary(t, patch.Diff(object, got), err); was != c.want {
			t.Errorf("%s\n%s\n got %s\nwant %s", c.reason, c.patch, was, c.want)
		}
	}
}

func TestMergeVariables(t *testing.T) {
	data := variable.Context{"x": "v", "n": 3.0, "nothing": nil, "labels": map[string]any{"a": "b", "$patch": "delete", "(c)": "d", "gone": nil},
		"list": []any{map[string]any{"name": "new", "image": "i"}}, "name": "one", "pattern": "reg/*", "host": "reg",
		"element": map[string]any{"name": "one", "image": "i"}, "none": map[string]any{}, "nil": []any{}}
	for _, c := range []struct{ patch, want, reason string }{
		{`metadata: {labels: {app: "{{x}}"}}`, `[replace /metadata/labels/app "v"]`, "a variable"},
		{`metadata: {labels: {app: "{{x}}-{{n}}"}}`, `[replace /metadata/labels/app "v-3"]`, "variables in text"},
		{`metadata: {labels: {"{{x}}": "y"}}`, `[add /metadata/labels/v "y"]`, "in a key"},
		{`metadata: {labels: {"+({{x}})": "y"}}`, `[add /metadata/labels/v "y"]`, "in an anchor"},
		{`metadata: {labels: {"{{ 'a' }}": "1", "{{ join('', ['a']) }}": "2"}}`, `[add /metadata/labels/a "2"]`, "the same key twice: the last as they are written in order"},
		{`metadata: {labels: {"({{ 'app' }})": "{{ 'web' }}", b: c}}`, `[add /metadata/labels/b "c"]`, "in a condition"},
		{`metadata: {labels: {"(app)": "{{x}}", b: c}}`, `skipped /metadata/labels/app`, "in a condition that does not hold"},
		{`spec: {priority: "{{n}}"}`, `[add /spec/priority 3]`, "a value keeps its type"},
		{`metadata: {labels: {app: "{{nothing}}"}}`, `[remove /metadata/labels/app]`, "null deletes"},
		{`spec: {containers: [{name: "{{name}}", image: "{{x}}"}]}`, `[replace /spec/containers/0/image "v"]`, "a merge key"},
		{`spec: {containers: [{name: "{{x}}", image: "{{x}}"}]}`, `[add /spec/containers/0 {"image":"v","name":"v"}]`, "a merge key that is new"},
		{`spec: {containers: [{name: "{{name}}", tty: true}]}`, `[add /spec/containers/0/tty true]`, "a merge key and nothing else that varies"},
		{`spec: {containers: ["{{element}}"]}`, `[replace /spec/containers/0/image "i"]`, "an element"},
		{`spec: {containers: ["{{x}}"]}`, `error patch at /spec/containers: want objects in this list, found a string`, "which is none"},
		{`spec: {tolerations: ["{{element}}", {key: "{{x}}", "{{name}}": ["{{n}}", {a: "{{list}}", b: c}]}]}`, `[replace /spec/tolerations/0 {"key":"v","one":[3,{"a":[{"image":"i","name":"new"}],"b":"c"}]}] [add /spec/tolerations/0 {"image":"i","name":"one"}]`, "in a list that is replaced"},
		{`metadata: {annotations: {"{{x}}": "y"}}`, `[add /metadata/annotations {"v":"y"}]`, "in a key of a missing object"},
		{`metadata: {annotations: {"": "y", "{{x}}": "z"}}`, `[add /metadata/annotations {"":"y","v":"z"}]`, "beside an empty key"},
		{`metadata: {annotations: "{{none}}"}`, `[add /metadata/annotations {}]`, "an empty object is written"},
		{`metadata: {labels: "{{none}}"}`, `[]`, "and changes no other"},
		{`metadata: {finalizers: "{{nil}}"}`, `[add /metadata/finalizers []]`, "an empty list is written, of strings"},
		{`spec: {initContainers: "{{nil}}"}`, `[add /spec/initContainers []]`, "and of elements that are merged by name"},
		{`spec: {containers: "{{nil}}"}`, `[]`, "and changes no other such"},
		{`spec: {tolerations: "{{nil}}"}`, `[remove /spec/tolerations/0]`, "but replaces one"},
		{`spec: {containers: "{{list}}"}`, `[add /spec/containers/0 {"image":"i","name":"new"}]`, "a list merges as in the policy"},
		{`metadata: {labels: "{{labels}}"}`, `[add /metadata/labels/$patch "delete"] [add /metadata/labels/(c) "d"] [add /metadata/labels/a "b"]`, "a value has no directives and no anchors"},
		{`metadata: {annotations: "{{labels}}"}`, `[add /metadata/annotations {"$patch":"delete","(c)":"d","a":"b"}]`, "where nothing is, too"},
		{`spec: {containers: [{(image): "{{host}}/*", tty: true}]}`, `[add /spec/containers/0/tty true]`, "a pattern"},
		{`spec: {containers: [{(image): "{{pattern}}", tty: true}]}`, `error patch at /spec/containers/0/image: the comparison is indeterminate`, "a wildcard that a variable brings"},
		{`spec: {containers: [{(image): "!{{pattern}}", tty: true}]}`, `error patch at /spec/containers/0/image: the comparison is indeterminate`, "or a negated one"},
		{`metadata: {labels: {app: '\{{x}}'}}`, `[replace /metadata/labels/app "{{x}}"]`, "escaped"},
		{`metadata: {labels: {app: "{{@}}-{{x}}"}}`, `[replace /metadata/labels/app "web-v"]`, "the present value"},
		{`metadata: {labels: {app: "{{ to_upper('{{ @ }}') }}"}}`, `[replace /metadata/labels/app "WEB"]`, "in an expression"},
		{`spec: {containers: [{(name): "*", image: "m/{{@}}"}]}`, `[replace /spec/containers/1/image "m/two:latest"] [replace /spec/containers/0/image "m/reg/one:1"]`, "in each element"},
		{`spec: {containers: [{(name): "*", (image): "*:latest", image: "m/{{@}}"}]}`, `[remove /spec/containers/1] [add /spec/containers/0 {"image":"m/two:latest","imagePullPolicy":"Never","name":"two"}]`, "in some"},
		{`metadata: {labels: {app: '\{{@}}'}}`, `[replace /metadata/labels/app "{{@}}"]`, "not if it is escaped"},
		{`metadata: {labels: {app: "{{ @.x }}"}}`, `[replace /metadata/labels/app "v"]`, "nor is it a field of all that is known"},
		{`metadata: {labels: {app: '\$(X)'}}`, `[replace /metadata/labels/app "$(X)"]`, "an escaped reference"},
		{`metadata: {labels: {app: "a@b"}}`, `[replace /metadata/labels/app "a@b"]`, "nor in text"},
		{`metadata: {labels: {other: "{{@}}"}}`, `error patch at /metadata/labels/other: `, "nothing is there"},
		{`spec: {tolerations: [{key: "{{@}}"}]}`, `error patch at /spec/tolerations/0/key: `, "in a list that is replaced"},
		{`spec: {tolerations: [{key: "{{@}}", value: x}]}`, `error patch at /spec/tolerations/0/key: `, "beside what does not vary"},
		{`metadata: {finalizers: ["{{@}}"]}`, `error patch at /metadata/finalizers/0: `, "in a list of strings"},
		{`spec: {containers: [{name: new, image: "{{@}}"}]}`, `error patch at /spec/containers/-/image: `, "in a new element"},
		{`spec: {initContainers: [{image: "{{@}}", resources: {<(limits): {}}}]}`, `error patch at /spec/initContainers/-/image: `, "in an element that only decides"},
		{`metadata: {labels: {+(app): "{{missing}}"}}`, `error /metadata/labels/+(app): variable {{missing}}: `, "not defined, though not needed"},
		{`metadata: {labels: "{{x}}"}`, `error patch at /metadata/labels: a string cannot be merged into an object`, "a value that does not fit"},
		{`spec: {containers: "{{labels}}"}`, `error patch at /spec/containers: an object cannot be merged into a list`, "an object for a list"},
		{`spec: {containers: [{(image): "{{missing}}", tty: true}]}`, `error patch at /spec/containers/0/image: `, "not defined in a pattern"},
		{`{metadata: {labels: {b: c}}, spec: {containers: [{<(image): "{{missing}}"}]}}`, `error patch at /spec/containers/0/image: `, "nor in one that decides for all"},
	} {
		object := object(t, pod)
		got, err := apply(t, mustMerge(t, read(t, c.patch)), data, object)
		was := summary(t, patch.Diff(object, got), err)
		if was != c.want && (err == nil || !strings.HasPrefix(was, c.want)) {
			t.Errorf("%s\n%s\n got %s\nwant %s", c.reason, c.patch, was, c.want)
		}
	}
}

func TestMergeErrors(t *testing.T) {
	for _, c := range []struct{ patch, want, reason string }{
		{`spec: {containers: [{image: x}]}`, `patch at /spec/containers: an element of the patch has no "name"`, "no merge key"},
		{`spec: {containers: [x]}`, "patch at /spec/containers: want objects in this list, found a string", "no object"},
		{`spec: {containers: [[x]]}`, "patch at /spec/containers: want objects in this list, found a list", "a list for one"},
		{`spec: {initContainers: [[{(a): b}]]}`, "patch at /spec/initContainers: want objects in this list, found a list", "one with anchors, where there is nothing to compare"},
		{`spec: {containers: [{name: {a: b}}]}`, `patch at /spec/containers: an element of the patch has no "name"`, "an object for a merge key"},
		{`spec: {containers: {name: x}}`, "patch at /spec/containers: an object cannot be merged into a list", "an object for a list"},
		{`metadata: {labels: [x]}`, "patch at /metadata/labels: a list cannot be merged into an object", "a list for an object"},
		{`metadata: {labels: x}`, "patch at /metadata/labels: a string cannot be merged into an object", "a string for an object"},
		{`metadata: {name: {a: b}}`, "patch at /metadata/name: an object cannot be merged into a string", "an object for a string"},
		{`metadata: {name: [b]}`, "patch at /metadata/name: a list cannot be merged into a string", "a list for a string"},
		{`spec: {tolerations: [{(key): x, effect: y}, {key: z}]}`, "patch at /spec/tolerations: this list has no merge key", "mixed elements"},
		{`spec: {containers: [{name: one, ports: {a: b}}]}`, "patch at /spec/containers/0/ports: an object", "the place in a list"},
	} {
		_, err := apply(t, mustMerge(t, read(t, c.patch)), nil, object(t, pod))
		if failed := (*patch.Error)(nil); !errors.As(err, &failed) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: got %v; want %s: %s", c.patch, err, c.want, c.reason)
		}
	}
}

func TestCompileMergeErrors(t *testing.T) {
	deep := any("x")
	for range 300 {
		deep = map[string]any{"a": deep}
	}
	for _, c := range []struct {
		patch              any
		path, want, reason string
	}{
		{"x", "", "want an object, found a string", "a string"},
		{nil, "", "want an object, found null", "nothing"},
		{[]any{}, "", "want an object, found a list", "a list"},
		{read(t, `{$patch: delete}`), "/$patch", "whole object", "delete everything"},
		{read(t, `{a: {$patch: destroy}}`), "/a/$patch", "want delete, replace or merge", "no such directive"},
		{read(t, `{a: {$patch: "{{x}}"}}`), "/a/$patch", "want delete, replace or merge", "a variable directive"},
		{read(t, `{a: [{$patch: destroy}]}`), "/a/0/$patch", "want delete, replace or merge", "no such directive for a list"},
		{read(t, `{a: {$retainKeys: [b]}}`), "/a/$retainKeys", "is a directive that", "$retainKeys"},
		{read(t, `{a: {$setElementOrder/b: [c]}}`), "/a/$setElementOrder~1b", "is a directive that", "$setElementOrder"},
		{read(t, `{a: {$deleteFromPrimitiveList/b: [c]}}`), "/a/$deleteFromPrimitiveList~1b", "is a directive that", "$deleteFromPrimitiveList"},
		{read(t, `{a: {=(b): c}}`), "/a/=(b)", "patches have", "an equality anchor"},
		{read(t, `{a: {X(b): null}}`), "/a/X(b)", "patches have", "a negation anchor"},
		{read(t, `{a: {^(b): [{}]}}`), "/a/^(b)", "patches have", "an existence anchor"},
		{read(t, `{a: {b: c, +(b): d}}`), "/a/b", "twice", "x beside +(x)"},
		{read(t, `{a: {(b): {c: "{{ d. }}"}}}`), "/a/(b)/c", "SyntaxError", "a bad expression in a condition"},
		{read(t, `{a: {"({{ d. }})": x}}`), "/a/({{ d. }})", "SyntaxError", "a bad expression in what a condition is about"},
		{read(t, `{a: {(b): {+(c): "{{ d. }}"}}}`), "/a/(b)/+(c)", "SyntaxError", "a bad expression in a field added on a condition"},
		{read(t, `{a: "{{ }} {{@}}"}`), "/a", "the expression is empty", "an empty variable next to the present value"},
		{read(t, `{a: ["{{ d. }}"]}`), "/a/0", "SyntaxError", "a bad expression"},
		{read(t, `{a: {"{{ d. }}": x}}`), "/a/{{ d. }}", "SyntaxError", "a bad expression in a key"},
		{read(t, `{a: "{{ x"}`), "/a", "not closed", "not closed"},
		{read(t, `{a: "$(x)"}`), "/a", "refers to a field", "a reference"},
		{deep, "", "exceeds the bound", "too deep"},
		{map[string]any{"a": struct{}{}}, "", "not JSON", "no JSON"},
	} {
		_, err := patch.CompileMerge(newEngine(t), c.patch)
		compile := (*variable.CompileError)(nil)
		if !errors.As(err, &compile) || !strings.Contains(err.Error(), c.want) || c.path != "" && compile.Path != c.path {
			t.Errorf("%v: %v; want %s at %s: %s", c.patch, err, c.want, c.path, c.reason)
		}
	}
}

func TestMergeBounds(t *testing.T) {
	big := strings.Repeat("x", 1<<20)
	data := variable.Context{"big": big, "few": big[:10]}
	for _, c := range []struct {
		name string
		fits bool
	}{{"few", true}, {"big", false}} {
		members := map[string]any{}
		for i := range 4 {
			members[fmt.Sprint("k", i)] = "{{" + c.name + "}}"
		}
		_, err := apply(t, mustMerge(t, map[string]any{"data": members}), data, object(t, `{kind: ConfigMap}`))
		if c.fits != (err == nil) || err != nil && !errors.Is(err, jmespath.ErrTooLarge) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	deep := any("x")
	for range 199 {
		deep = []any{deep}
	}
	data = variable.Context{"deep": deep}
	for reason, at := range map[string]string{"at the bound": "", "over it": "/a/a/a"} {
		value := any("{{deep}}")
		for range strings.Count(at, "/") {
			value = map[string]any{"a": value}
		}
		_, err := apply(t, mustMerge(t, map[string]any{"a": value}), data, map[string]any{})
		if (at == "") != (err == nil) || err != nil && !errors.Is(err, patch.ErrTooLarge) {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

// nested makes an object in an object and so on.
func nested(depth int, innermost any) any {
	for range depth {
		innermost = map[string]any{"a": innermost}
	}
	return innermost
}

// TestMergeDepth: the deepest that may be, of the policy and of a value, and one more.
func TestMergeDepth(t *testing.T) {
	for _, c := range []struct {
		depth int
		fits  bool
	}{{200, true}, {201, false}} {
		_, err := patch.CompileMerge(newEngine(t), nested(c.depth, "x"))
		if c.fits != (err == nil) || err != nil && !errors.Is(err, patch.ErrTooLarge) {
			t.Errorf("a patch with a text at a depth of %d: %v", c.depth, err)
		}
		data := variable.Context{"deep": nested(c.depth-150, map[string]any{})}
		_, err = apply(t, mustMerge(t, nested(150, "{{deep}}")), data, map[string]any{})
		if c.fits != (err == nil) || err != nil && !errors.Is(err, patch.ErrTooLarge) {
			t.Errorf("an empty object at a depth of %d: %v", c.depth, err)
		}
	}
}

// TestMergeWritesNoMore: names count as values do, and a value written into each element
// counts each time.
func TestMergeWritesNoMore(t *testing.T) {
	big := strings.Repeat("x", 1<<20)
	for _, c := range []struct {
		patch, object string
		fits          bool
		reason        string
	}{
		{`{"{{big}}0": x, "{{big}}1": x}`, `{}`, true, "two long names"},
		{`{"{{big}}0": x, "{{big}}1": x, "{{big}}2": x}`, `{}`, false, "three"},
		{`items: [{(a): "*", b: BIG}]`, `items: [{a: 1}, {a: 2}]`, true, "a long text of the policy in two elements"},
		{`items: [{(a): "*", b: BIG}]`, `items: [{a: 1}, {a: 2}, {a: 3}]`, false, "in three"},
		{`items: [{a: "{{big}}"}, {a: "{{big}}"}]`, `{}`, true, "a list of two long texts"},
		{`items: [{a: "{{big}}"}, {a: "{{big}}"}, {a: "{{big}}"}]`, `{}`, false, "of three"},
		{`items: [{a: "{{big}}"}, {a: "{{big}}"}, {a: "{{big}}"}]`, `items: []`, false, "instead of none"},
	} {
		merge := mustMerge(t, read(t, strings.ReplaceAll(c.patch, "BIG", big)))
		_, err := apply(t, merge, variable.Context{"big": big}, object(t, c.object))
		if c.fits != (err == nil) || err != nil && !errors.Is(err, patch.ErrTooLarge) {
			t.Errorf("%s: %.200v", c.reason, err)
		}
	}
}

func TestMergeNoObject(t *testing.T) {
	got, err := mustMerge(t, read(t, `{a: {b: c}}`)).Apply(nil, nil)
	if err != nil || text(t, got) != `{"a":{"b":"c"}}` {
		t.Errorf("%v, %v", got, err)
	}
}

func TestSkippedErrorMessage(t *testing.T) {
	_, err := mustMerge(t, read(t, `{spec: {containers: [{<(image): "nope/*"}]}}`)).Apply(nil, object(t, pod))
	skipped := (*patch.SkippedError)(nil)
	if !errors.As(err, &skipped) || skipped.Anchor != "<(image)" || !strings.Contains(err.Error(), "nope/*") || !strings.Contains(err.Error(), "two:latest") {
		t.Errorf("%v", err)
	}
	if errors.As(err, new(*patch.Error)) {
		t.Error("skipped is no failure")
	}
}

func TestApplyConcurrently(t *testing.T) {
	merge := mustMerge(t, read(t, `{metadata: {labels: {+(b): "{{x}}"}}, spec: {containers: [{(name): "*", image: "{{@}}-{{x}}"}, {name: new}]}}`))
	operations := mustJSON(t, "- {op: add, path: '/metadata/labels/{{x}}', value: {a: ['{{x}}']}}")
	object := object(t, pod)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			x := fmt.Sprint("x", i)
			for _, p := range []applier{merge, operations} {
				got, err := p.Apply(variable.Context{"x": x}, object)
				if err != nil || !strings.Contains(text(t, got), x) {
					t.Errorf("%s: %v", x, err)
				}
			}
		})
	}
	group.Wait()
}
