package stored_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/workload"
	"github.com/quaymaster/quaymaster/workload/stored"
)

func TestObject(t *testing.T) {
	pod := func(spec string) string {
		return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":` + spec + `}`
	}
	for _, c := range []struct{ reason, written, want string }{
		{"a null member is absent", pod(`{"containers":[{"name":"a","livenessProbe":null}],"hostNetwork":null}`), pod(`{"containers":[{"name":"a"}]}`)},
		{"a label of null is empty", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","labels":{"team":null}}}`, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","labels":{"team":""}}}`},
		{"a key of null in a Secret is a key", `{"apiVersion":"v1","kind":"Secret","data":{"a":null,"b":"Yg=="}}`, `{"apiVersion":"v1","kind":"Secret","data":{"a":null,"b":"Yg=="}}`},
		{"and in binary data", `{"apiVersion":"v1","kind":"ConfigMap","binaryData":{"a":null},"data":{"b":null}}`, `{"apiVersion":"v1","kind":"ConfigMap","binaryData":{"a":null},"data":{"b":""}}`},
		{"and among requests", pod(`{"containers":[{"name":"a","resources":{"limits":{"cpu":null}}}]}`), pod(`{"containers":[{"name":"a","resources":{"limits":{"cpu":"0"}}}]}`)},
		{"empty maps are absent", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","annotations":{}}}`, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`},
		{"an empty object is one where its absence differs", pod(`{"containers":[],"securityContext":{},"volumes":[{"name":"v","emptyDir":{}}]}`), pod(`{"containers":[],"securityContext":{},"volumes":[{"name":"v","emptyDir":{}}]}`)},
		{"zero values are absent", pod(`{"containers":[{"name":"a","stdin":false}],"hostNetwork":false,"nodeName":"","priority":0,"volumes":[{"name":"v","hostPath":{"path":"/"}}]}`), pod(`{"containers":[{"name":"a"}],"priority":0,"volumes":[{"name":"v","hostPath":{"path":"/"}}]}`)},
		{"zero values that the type does not have stay", pod(`{"containers":[],"hostnetwork":false,"nodename":""}`), pod(`{"containers":[],"hostnetwork":false,"nodename":""}`)},
		{"zero values where their absence differs stay", pod(`{"containers":[],"automountServiceAccountToken":false,"tolerations":[{"tolerationSeconds":0}]}`), pod(`{"containers":[],"automountServiceAccountToken":false,"tolerations":[{"tolerationSeconds":0}]}`)},
		{"large integers stay", pod(`{"containers":[],"activeDeadlineSeconds":9007199254740993,"hostNetwork":false}`), pod(`{"containers":[],"activeDeadlineSeconds":9007199254740993}`)},
		{"texts of a Secret are data", `{"apiVersion":"v1","kind":"Secret","data":{"a":"Yg==","c":"ZA=="},"stringData":{"a":"x","e":null}}`, `{"apiVersion":"v1","kind":"Secret","data":{"a":"eA==","c":"ZA==","e":""}}`},
		{"texts of a ConfigMap are not", `{"apiVersion":"v1","kind":"ConfigMap","stringData":{"a":"x"}}`, `{"apiVersion":"v1","kind":"ConfigMap","stringData":{"a":"x"}}`},
		{"both names of a ServiceAccount", pod(`{"containers":[],"serviceAccount":"a"}`), pod(`{"containers":[],"serviceAccount":"a","serviceAccountName":"a"}`)},
		{"the newer name decides", pod(`{"containers":[],"serviceAccount":"a","serviceAccountName":"b"}`), pod(`{"containers":[],"serviceAccount":"b","serviceAccountName":"b"}`)},
		{"none is none", pod(`{"containers":[],"serviceAccount":""}`), pod(`{"containers":[]}`)},
		{"in a template", `{"apiVersion":"apps/v1","kind":"Deployment","spec":{"template":{"spec":{"containers":[],"serviceAccountName":"a"}}}}`, `{"apiVersion":"apps/v1","kind":"Deployment","spec":{"template":{"spec":{"containers":[],"serviceAccount":"a","serviceAccountName":"a"}}}}`},
		{"in the template of a CronJob", `{"apiVersion":"batch/v1","kind":"CronJob","spec":{"schedule":"a","jobTemplate":{"spec":{"template":{"spec":{"containers":[],"serviceAccount":"a"}}}}}}`, `{"apiVersion":"batch/v1","kind":"CronJob","spec":{"schedule":"a","jobTemplate":{"spec":{"template":{"spec":{"containers":[],"serviceAccount":"a","serviceAccountName":"a"}}}}}}`},
		{"quantities are canonical text", pod(`{"containers":[{"name":"a","resources":{"limits":{"cpu":2,"memory":"1024Mi"}}}]}`), pod(`{"containers":[{"name":"a","resources":{"limits":{"cpu":"2","memory":"1Gi"}}}]}`)},
		{"ports are numbers or text", `{"apiVersion":"v1","kind":"Service","spec":{"ports":[{"port":80,"targetPort":"web"},{"port":81,"targetPort":8081}]}}`, `{"apiVersion":"v1","kind":"Service","spec":{"ports":[{"port":80,"targetPort":"web"},{"port":81,"targetPort":8081}]}}`},
		{"members that the type does not have stay", pod(`{"containers":[],"hostnetwork":true}`), pod(`{"containers":[],"hostnetwork":true}`)},
		{"an object that the type cannot hold stays", pod(`{"containers":"none","hostNetwork":null}`), pod(`{"containers":"none","hostNetwork":null}`)},
		{"another kind keeps its nulls", `{"apiVersion":"example.com/v1","kind":"Task","spec":{"a":null}}`, `{"apiVersion":"example.com/v1","kind":"Task","spec":{"a":null}}`},
	} {
		object, err := workload.Parse([]byte(c.written))
		if err != nil {
			t.Fatal(err)
		}
		got := stored.Object(object)
		if text := canonical(t, decode(t, string(got.JSON()))); text != canonical(t, decode(t, c.want)) {
			t.Errorf("%s: %s", c.reason, text)
		}
		if again := stored.Object(got); canonical(t, again.Content()) != canonical(t, got.Content()) {
			t.Errorf("%s: converted twice: %v", c.reason, again.Content())
		}
	}
}

func decode(t *testing.T, text string) (content map[string]any) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&content); err != nil {
		t.Fatal(err)
	}
	return content
}

func canonical(t *testing.T, content map[string]any) string {
	t.Helper()
	text, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func ExampleObject() {
	object, _ := workload.Parse([]byte(`{"apiVersion": "v1", "kind": "Pod", "spec": {"hostNetwork": null, "nodeName": "a"}}`))
	fmt.Println(stored.Object(object).Content()["spec"])
	// Output: map[nodeName:a]
}
