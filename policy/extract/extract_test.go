package extract_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/extract"
	"github.com/quaymaster/quaymaster/workload"
)

const task = `{"apiVersion": "tekton.dev/v1", "kind": "Task", "metadata": {"name": "t"}, "spec": {"steps": [%s]}}`

var steps = []policy.Extractor{{Name: "steps", Path: "/spec/steps/*", Value: "image", Key: "name"}}

func object(t *testing.T, text string) workload.Object {
	t.Helper()
	return testkit.Must(workload.Parse([]byte(text)))(t)
}

func pod(t *testing.T, images ...string) workload.Object {
	t.Helper()
	containers := make([]string, len(images))
	for i, name := range images {
		containers[i] = fmt.Sprintf(`{"name": "c%d", "image": %q}`, i, name)
	}
	return object(t, `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [`+strings.Join(containers, ",")+`]}}`)
}

func TestFinder(t *testing.T) {
	upper := func(text string) (string, error) { return strings.ToLower(text), nil }
	transformed := []policy.Extractor{{Path: "/spec/steps/*/image", Transform: upper}}
	for _, c := range []struct {
		reason     string
		object     workload.Object
		extractors []policy.Extractor
		want       []string
		unreadable string
	}{
		{"a pod has the standard locations", pod(t, "a:1", "b:2"), nil, []string{"container c0 /spec/containers/0/image a:1", "container c1 /spec/containers/1/image b:2"}, ""},
		{"an empty list of extractors means the standard locations", pod(t, "a:1"), []policy.Extractor{}, []string{"container c0 /spec/containers/0/image a:1"}, ""},
		{"extractors replace the standard locations", pod(t, "a:1"), steps, []string{}, ""},
		{"an extractor names its images", object(t, fmt.Sprintf(task, `{"name": "s", "image": "a:1"}`)), steps, []string{"custom steps/s /spec/steps/0/image a:1"}, ""},
		{"an extractor transforms its texts", object(t, fmt.Sprintf(task, `{"image": "A:1"}`)), transformed, []string{"custom custom /spec/steps/0/image a:1"}, ""},
		{"another kind has no standard locations", object(t, fmt.Sprintf(task, `{"name": "s", "image": "a:1"}`)), nil, []string{}, ""},
		{"a text is not a reference", pod(t, "a:1", "B:2"), nil, nil, "/spec/containers/1/image: "},
		{"a text at an extractor is not a reference", object(t, fmt.Sprintf(task, `{"name": "s", "image": "$(params.image)"}`)), steps, nil, "/spec/steps/0/image: "},
		{"an entry at an extractor has no name", object(t, fmt.Sprintf(task, `{"image": "a:1"}`)), steps, nil, "no text"},
		{"an image is not a text", object(t, fmt.Sprintf(task, `{"name": "s", "image": 1}`)), steps, nil, "want text"},
	} {
		find := extract.Finder(func() (workload.Object, error) { return c.object, nil }, image.Parse)
		found, err := find(c.extractors)
		if c.unreadable != "" {
			if _, is := errors.AsType[extract.Unreadable](err); !is || !strings.Contains(err.Error(), c.unreadable) || found != nil {
				t.Errorf("%s: %v, %v", c.reason, found, err)
			}
			continue
		}
		got := make([]string, len(found))
		for i, f := range found {
			got[i] = strings.Join([]string{f.Role, f.Container, f.Pointer, f.Ref.Written()}, " ")
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v", c.reason, got, err)
		}
	}
}

// TestFinderMakesTheObjectOnce: an object is converted at the first request, and not again for
// each rule.
func TestFinderMakesTheObjectOnce(t *testing.T) {
	made := 0
	find := extract.Finder(func() (workload.Object, error) { made++; return pod(t, "a:1"), nil }, image.Parse)
	if made != 0 {
		t.Error("the object was made without a request")
	}
	for range 2 {
		if found, err := find(nil); err != nil || len(found) != 1 || made != 1 {
			t.Errorf("%v, %v, made %d times", found, err, made)
		}
	}
	broken := errors.New("no object")
	_, err := extract.Finder(func() (workload.Object, error) { return workload.Object{}, broken }, image.Parse)(nil)
	if _, is := errors.AsType[extract.Unreadable](err); is || !errors.Is(err, broken) {
		t.Errorf("%v: the object was not made, and its images are not the reason", err)
	}
}

func TestBound(t *testing.T) {
	for _, c := range []struct {
		reason string
		count  int
		want   string
	}{
		{"as many as the bound", 500, ""},
		{"one more", 501, "it names 501 images, more than 500: make several objects of it"},
	} {
		entries := slices.Repeat([]string{`{"name": "s", "image": "a:1"}`}, c.count)
		for where, find := range map[string]func() ([]workload.Use, error){
			"a pod": func() ([]workload.Use, error) {
				return extract.Uses(pod(t, slices.Repeat([]string{"a:1"}, c.count)...), nil)
			},
			"an extractor": func() ([]workload.Use, error) {
				return extract.Uses(object(t, fmt.Sprintf(task, strings.Join(entries, ","))), steps)
			},
		} {
			uses, err := find()
			if c.want == "" {
				if err != nil || len(uses) != c.count {
					t.Errorf("%s, %s: %d uses, %v", c.reason, where, len(uses), err)
				}
				continue
			}
			if _, is := errors.AsType[extract.Unreadable](err); !is || err.Error() != c.want || uses != nil {
				t.Errorf("%s, %s: %d uses, %v", c.reason, where, len(uses), err)
			}
		}
	}
}

// TestExtractorsAreTheSame holds that each field that selects in an object is passed on.
func TestExtractorsAreTheSame(t *testing.T) {
	given := policy.Extractor{Name: "n", Path: "/p", Value: "v", Key: "k", Transform: func(string) (string, error) { return "x", nil }, Ambiguous: true, Fresh: true}
	all := extract.Locations([]policy.Extractor{given})
	if len(all) != 1 || all[0].Name != "n" || all[0].Path != "/p" || all[0].Value != "v" || all[0].Key != "k" || all[0].Transform == nil {
		t.Errorf("%+v", all)
	}
}
