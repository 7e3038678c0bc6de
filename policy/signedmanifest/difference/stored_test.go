package difference_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/signedmanifest"
	"github.com/quaymaster/quaymaster/policy/signedmanifest/difference"
	"github.com/quaymaster/quaymaster/workload"
)

// recorded is a manifest with the object that an API server made of it.
type recorded struct {
	name     string
	manifest workload.Object
	object   map[string]any
}

func records(t *testing.T) []recorded {
	t.Helper()
	names, err := filepath.Glob("testdata/stored/*.yaml")
	if err != nil || len(names) < 20 {
		t.Fatalf("%d recorded manifests, %v", len(names), err)
	}
	var out []recorded
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := workload.Read(bytes.NewReader(text), name)
		if err != nil || len(objects) != 1 {
			t.Fatal(len(objects), err)
		}
		stored, err := os.ReadFile(strings.TrimSuffix(name, ".yaml") + ".json")
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, recorded{strings.TrimSuffix(filepath.Base(name), ".yaml"), objects[0], decode(t, stored)})
	}
	return out
}

func decode(t *testing.T, text []byte) (object map[string]any) {
	t.Helper()
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// allocated are the fields that the API server allocates, by the record. A policy ignores them.
var allocated = map[string][]string{
	"service": {"spec.clusterIP"},
}

func termsOf(r recorded) difference.Terms { return difference.Terms{Ignored: allocated[r.name]} }

// TestStored: an object that a real API server made of a manifest is what was signed.
func TestStored(t *testing.T) {
	for _, r := range records(t) {
		found, err := termsOf(r).Find(r.manifest, r.object)
		if err != nil || len(found) > 0 {
			t.Errorf("%s: %v, %v", r.name, found, err)
		}
		if !signedmanifest.IsOf(r.manifest, r.object, false) {
			t.Errorf("%s: the manifest is of another object", r.name)
		}
		if fields := allocated[r.name]; fields != nil {
			if found, err := (difference.Terms{}).Find(r.manifest, r.object); len(found) != len(fields) || err != nil {
				t.Errorf("%s, with nothing ignored: %v, %v", r.name, found, err)
			}
		}
	}
}

// owned are the fields that the API server has to itself, by their paths.
func owned(path []string) bool {
	if path[0] == "status" {
		return true
	}
	return len(path) > 1 && path[0] == "metadata" &&
		slices.Contains([]string{"uid", "creationTimestamp", "resourceVersion", "generation", "managedFields", "name", "namespace"}, path[1])
}

// TestChanged: of every field of such an object, another value is a difference, and so is one more.
// One less is a difference if it was signed.
func TestChanged(t *testing.T) {
	for _, r := range records(t) {
		terms, seen := termsOf(r), 0
		check := func(path []string, what string, changed map[string]any) {
			seen++
			found, err := terms.Find(r.manifest, changed)
			if err != nil || len(found) == 0 {
				t.Errorf("%s: %s %s is no difference (%v)", r.name, strings.Join(path, "."), what, err)
			}
		}
		each(r.object, nil, func(path []string, value any) {
			if owned(path) || slices.Contains(allocated[r.name], strings.Join(path, ".")) || len(path) == 1 && slices.Contains([]string{"apiVersion", "kind", "metadata"}, path[0]) || value == "" {
				return
			}
			switch value := value.(type) {
			case map[string]any:
				more := maps.Clone(value)
				more["another"] = "x"
				check(path, "with a member more", with(r.object, path, more))
			case []any:
				check(path, "with an element more", with(r.object, path, append(slices.Clone(value), "another")))
				check(path, "with an object more", with(r.object, path, append(slices.Clone(value), map[string]any{"name": "another"})))
			case string:
				check(path, "with other text", with(r.object, path, value+"-other"))
				check(path, "without text", with(r.object, path, ""))
			case float64:
				check(path, "with another number", with(r.object, path, value+1))
			case bool:
				check(path, "the other way", with(r.object, path, !value))
			}
			if signed(r.manifest.Content(), path) {
				check(path, "removed", with(r.object, path, nil))
			}
		})
		if seen < 5 && r.name != "serviceaccount" && r.name != "namespace" {
			t.Errorf("%s: only %d changes", r.name, seen)
		}
	}
}

// each calls f for every value of an object.
func each(value any, path []string, f func([]string, any)) {
	if len(path) > 0 {
		f(path, value)
	}
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			each(member, append(slices.Clip(path), name), f)
		}
	case []any:
		for i, member := range v {
			each(member, append(slices.Clip(path), strconv.Itoa(i)), f)
		}
	}
}

// with returns a copy of an object with another value at a path; nil removes it.
func with(object map[string]any, path []string, value any) map[string]any {
	out, _ := replaced(object, path, value).(map[string]any)
	return out
}

func replaced(in any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	switch v := in.(type) {
	case map[string]any:
		v = maps.Clone(v)
		if len(path) == 1 && value == nil {
			delete(v, path[0])
			return v
		}
		v[path[0]] = replaced(v[path[0]], path[1:], value)
		return v
	case []any:
		i, _ := strconv.Atoi(path[0])
		v = slices.Clone(v)
		if len(path) == 1 && value == nil {
			return slices.Delete(v, i, i+1)
		}
		v[i] = replaced(v[i], path[1:], value)
		return v
	}
	return in
}

// signed reports whether a manifest has a value at a path that an API server does not add by itself.
func signed(manifest any, path []string) bool {
	for _, name := range path {
		switch v := manifest.(type) {
		case map[string]any:
			manifest = v[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(v) {
				return false
			}
			manifest = v[i]
		}
	}
	return manifest != nil
}

func encode(t *testing.T, object map[string]any) []byte {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
