package strictjson_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	v2 "github.com/go-json-experiment/json"

	"github.com/quaymaster/quaymaster/internal/strictjson"
)

type document struct {
	Name  string            `json:"name"`
	Mode  mode              `json:"mode"`
	Count int32             `json:"count"`
	Is    *bool             `json:"is"`
	List  []string          `json:"list"`
	Share float64           `json:"share"`
	Spec  struct{ N *uint } `json:"spec"`
	Keys  map[string]string `json:"keys"`
}

type mode string

func TestDecode(t *testing.T) {
	for _, c := range []struct{ reason, text, problems, err string }{
		{"all fields", `{"name":"a","mode":"b","count":1,"is":true,"list":["a"],"share":0.5,"spec":{"N":1},"keys":{"a":"b"}}`, "", ""},
		{"an unknown field", `{"nam":"a"}`, "nam: unknown field", ""},
		{"an unknown field below", `{"spec":{"M":1}}`, "spec.M: unknown field", ""},
		{"another case", `{"Name":"a"}`, "Name: unknown field", ""},
		{"a repeated field", `{"name":"a","name":"b"}`, "name: duplicate field", ""},
		{"two problems", `{"a":1,"b":2}`, "a: unknown field, b: unknown field", ""},
		{"a list for a string", `{"name":[]}`, "", "name: want a string, found array"},
		{"an object for a named string", `{"mode":{}}`, "", "mode: want a string, found object"},
		{"a string for a number", `{"count":"1"}`, "", "count: want a whole number, found string"},
		{"half a number", `{"count":1.5}`, "", "count: want a whole number, found number 1.5"},
		{"a number that is too large", `{"count":4294967296}`, "", "count: want a whole number, found number 4294967296"},
		{"a string for a fraction", `{"share":"x"}`, "", "share: want a number, found string"},
		{"a string for a boolean", `{"is":"true"}`, "", "is: want true or false, found string"},
		{"a string for a list", `{"list":"a"}`, "", "list: want a list, found string"},
		{"a list for an object", `{"spec":[]}`, "", "spec: want an object, found array"},
		{"a negative number", `{"spec":{"N":-1}}`, "", "spec.N: want a whole number, found number -1"},
		{"a list for a map", `{"keys":[]}`, "", "keys: want an object, found array"},
		{"a list for the whole", `[]`, "", "want an object, found array"},
		{"no JSON", `{`, "", "unexpected end of JSON input"},
	} {
		problems, err := strictjson.Decode([]byte(c.text), &document{})
		var all []string
		for _, problem := range problems {
			all = append(all, problem.Error())
		}
		if got := strings.Join(all, ", "); got != c.problems || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("%s: %s: %q, %v", c.reason, c.text, got, err)
		}
	}
}

// TestReadable: no decoder names a type of Go, and an error of another kind stays itself.
func TestReadable(t *testing.T) {
	for reason, text := range map[string]string{
		"a list": `{"name":[]}`, "a string": `{"count":"1"}`, "another string": `{"spec":"x"}`, "a number below": `{"keys":{"a":1}}`,
		"half a number": `{"count":1.5}`, "a number for all": `7`,
	} {
		var d document
		for decoder, err := range map[string]error{
			"encoding/json": json.Unmarshal([]byte(text), &d), "v2": v2.Unmarshal([]byte(text), &d, v2.RejectUnknownMembers(true)),
		} {
			problem, ok := errors.AsType[*strictjson.Problem](strictjson.Readable(fmt.Errorf("read: %w", err)))
			if !ok || !strings.HasPrefix(problem.What, "want ") || strings.Contains(problem.Error(), "strictjson") {
				t.Errorf("%s by %s: %v", reason, decoder, strictjson.Readable(err))
			}
		}
	}
	var d document
	if err := v2.Unmarshal([]byte(`{"spec":{"M":1}}`), &d, v2.RejectUnknownMembers(true)); strictjson.Readable(err).Error() != "spec.M: unknown field" {
		t.Error(strictjson.Readable(err))
	}
	for _, err := range []error{json.Unmarshal([]byte(`{"a" 1}`), &d), v2.Unmarshal([]byte(`{"a" 1}`), &d)} {
		if got := strictjson.Readable(fmt.Errorf("read: %w", err)).Error(); !strings.HasPrefix(got, "no JSON at byte ") {
			t.Error(got)
		}
	}
	if got := strictjson.Readable(v2.Unmarshal([]byte(`{"spec":{},"spec":{}}`), &d)); !strings.Contains(got.Error(), "duplicate") {
		t.Error(got)
	}
	if got := strictjson.Readable(nil); got != nil {
		t.Error(got)
	}
}

func ExampleDecode() {
	var settings struct {
		Timeout int `json:"timeout"`
	}
	problems, err := strictjson.Decode([]byte(`{"timeuot": 5}`), &settings)
	fmt.Println(problems[0], err)
	_, err = strictjson.Decode([]byte(`{"timeout": "5s"}`), &settings)
	fmt.Println(err)
	// Output:
	// timeuot: unknown field <nil>
	// timeout: want a whole number, found string
}
