package image_test

import (
	stdjson "encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/quaymaster/quaymaster/image"
)

// TestAmbiguous: a policy reads the same content as a container runtime, which ignores the case of
// fields and takes the last of several.
func TestAmbiguous(t *testing.T) {
	manifest, config := image.CheckManifest, image.CheckConfig
	for _, c := range []struct {
		reason string
		check  func([]byte) error
		text   string
		fails  string // "" for none
	}{
		{"an image", manifest, `{"schemaVersion":2,"mediaType":"m","config":{"digest":"d","size":1},"layers":[{"digest":"d","annotations":{"a":"1","A":"2"}}]}`, ""},
		{"an index", manifest, `{"manifests":[{"platform":{"os":"linux","architecture":"amd64","os.version":"1"}}],"annotations":{"layers":"x","Layers":"y"}}`, ""},
		{"unknown fields", manifest, `{"other":{"x":1,"X":2},"layers":null}`, ""},
		{"layers twice", manifest, `{"layers":[],"layers":[{"size":9}]}`, "duplicate"},
		{"layers twice, one in another case", manifest, `{"layers":[],"Layers":[{"size":9}]}`, `key "Layers": container runtimes read it as "layers"`},
		{"a field in another case alone", manifest, `{"LAYERS":[]}`, `"layers"`},
		{"by a letter that folds to another", manifest, `{"layerſ":[]}`, `"layers"`},
		{"in a descriptor", manifest, `{"layers":[{"size":1,"Size":9}]}`, `"size"`},
		{"in a platform", manifest, `{"manifests":[{"platform":{"os":"linux","OS":"windows"}}]}`, `"os"`},
		{"an annotation twice", manifest, `{"annotations":{"a":"1","a":"2"}}`, "duplicate"},
		{"no JSON", manifest, `<html>`, "JSON"},
		{"half of it", manifest, `{"layers":[`, "JSON"},
		{"a second value", manifest, `{}{}`, "more bytes follow"},
		{"nothing", manifest, ``, "JSON"},

		{"a configuration", config, `{"os":"linux","created":"2026-01-01T00:00:00Z","config":{"User":"1","Labels":{"a":"1","A":"2"},"Env":["a=b"]},"history":[{"created_by":"x"}],"rootfs":{"type":"layers","diff_ids":[]}}`, ""},
		{"paths that differ by case", config, `{"config":{"Volumes":{"/data":{},"/Data":{}},"ExposedPorts":{"80/tcp":{}}}}`, ""},
		{"text that is not UTF-8", config, "{\"author\":\"\xff\"}", ""},
		{"a user twice", config, `{"config":{"User":"1","User":"0"}}`, "duplicate"},
		{"a user twice, one in another case", config, `{"config":{"User":"1","user":"0"}}`, `key "user": container runtimes read it as "User"`},
		{"two configurations, which runtimes join", config, `{"config":{"User":"0"},"config":{"Env":[]}}`, "duplicate"},
		{"another configuration in another case", config, `{"config":{"User":"1"},"Config":{"User":"0"}}`, `"config"`},
		{"in the history", config, `{"history":[{"created":"x","CREATED":"y"}]}`, `"created"`},
		{"no object", config, `"text"`, ""},
		{"a check of health", config, `{"config":{"Healthcheck":{"Test":["NONE"],"Interval":1}}}`, ""},
		{"a check of health with two commands", config, `{"config":{"Healthcheck":{"Test":["NONE"],"test":["CMD","x"]}}}`, `"Test"`},
	} {
		err := c.check([]byte(c.text))
		if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: got %v, want %q", c.reason, err, c.fails)
		}
	}
}

// descriptor, manifest and config have the fields that policies read of documents of images.
type descriptor struct {
	MediaType   any `json:"mediaType"`
	Digest      any `json:"digest"`
	Size        any `json:"size"`
	Annotations any `json:"annotations"`
	Platform    *struct {
		OS           any `json:"os"`
		Architecture any `json:"architecture"`
		Variant      any `json:"variant"`
	} `json:"platform"`
}

type manifest struct {
	MediaType   any          `json:"mediaType"`
	Config      *descriptor  `json:"config"`
	Layers      []descriptor `json:"layers"`
	Manifests   []descriptor `json:"manifests"`
	Annotations any          `json:"annotations"`
}

type config struct {
	OS           any `json:"os"`
	Architecture any `json:"architecture"`
	Config       *struct {
		User        any `json:"User"`
		Entrypoint  any `json:"Entrypoint"`
		Env         any `json:"Env"`
		Labels      any `json:"Labels"`
		Healthcheck *struct {
			Test     any `json:"Test"`
			Interval any `json:"Interval"`
		} `json:"Healthcheck"`
	} `json:"config"`
	History []struct {
		Created any `json:"created"`
	} `json:"history"`
}

// FuzzAmbiguous: of a document that passes, a decoder that ignores case and one that does not read
// the same.
func FuzzAmbiguous(f *testing.F) {
	f.Add([]byte(`{"layers":[{"size":1,"platform":{}}],"config":{"User":"0","user":"1"}}`))
	f.Add([]byte(`{"config":{"Healthcheck":{"Test":["NONE"],"tesT":["CMD"]}}}`))
	f.Add([]byte(`[[{"config":[{}]}]]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, kind := range []struct {
			check        func([]byte) error
			ignoring, by any
		}{
			{image.CheckManifest, &manifest{}, &manifest{}},
			{image.CheckConfig, &config{}, &config{}},
		} {
			if kind.check(text) != nil {
				continue
			}
			if kind.check(append(text[:len(text):len(text)], "{}"...)) == nil {
				t.Errorf("%q: a second value passed", text)
			}
			err := json.Unmarshal(text, kind.by, jsontext.AllowInvalidUTF8(true))
			if err == nil && (stdjson.Unmarshal(text, kind.ignoring) != nil || !reflect.DeepEqual(kind.ignoring, kind.by)) {
				t.Errorf("%q: read as %+v and as %+v", text, kind.ignoring, kind.by)
			}
		}
	})
}
