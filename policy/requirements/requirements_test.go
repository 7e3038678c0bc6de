package requirements_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/age"
	"github.com/quaymaster/quaymaster/policy/requirements"
)

func ExampleCompile() {
	made, err := requirements.Compile("Settings", "the settings", []requirements.Requirement{{
		Path: "requirements[0]", Images: []string{"registry.example/shop/*"}, MinimumAge: 72 * time.Hour,
	}})
	fmt.Println(made.ID(), made.Rules[0].Name(), err)
	// Output: Settings/requirements requirements[0] <nil>
}

func TestCompile(t *testing.T) {
	many := make([]string, requirements.MaxList+1)
	for i := range many {
		many[i] = "*"
	}
	valid := requirements.Requirement{Path: "r[0]", Images: []string{"*"}, MinimumAge: time.Hour}
	for _, c := range []struct {
		reason string
		change func(*requirements.Requirement)
		says   string
	}{
		{"valid", func(*requirements.Requirement) {}, ""},
		{"both ages, the minimum above the maximum: they are of different evidence", func(r *requirements.Requirement) { r.MaximumAge = time.Minute }, ""},
		{"no image", func(r *requirements.Requirement) { r.Images = nil }, "r[0].images: is empty"},
		{"an empty pattern", func(r *requirements.Requirement) { r.Images = []string{""} }, "r[0].images[0]"},
		{"a pattern that matches nothing", func(r *requirements.Requirement) { r.Images = []string{"*", "https://registry.example/app"} }, "r[0].images[1]"},
		{"an empty namespace", func(r *requirements.Requirement) { r.Namespaces = []string{"a", ""} }, "r[0].namespaces[1]"},
		{"too many patterns", func(r *requirements.Requirement) { r.Images = many }, "exceed the bound of 256"},
		{"no bound", func(r *requirements.Requirement) { r.MinimumAge = 0 }, "requires nothing"},
		{"a negative age", func(r *requirements.Requirement) { r.MinimumAge = -1 }, "r[0].minimumAge"},
		{"an endless age", func(r *requirements.Requirement) { r.MaximumAge = requirements.MaxAge + 1 }, "r[0].maximumAge"},
	} {
		r := valid
		c.change(&r)
		made, err := requirements.Compile("Settings", "test", []requirements.Requirement{r})
		if c.says == "" && (err != nil || made == nil) || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
	if made, err := requirements.Compile("Settings", "test", nil); made != nil || err != nil {
		t.Errorf("%v, %v of no requirement", made, err)
	}
	if _, err := requirements.Compile("Settings", "test", make([]requirements.Requirement, requirements.MaxList+1)); err == nil || !strings.Contains(err.Error(), "exceed the bound") {
		t.Errorf("%v of too many requirements", err)
	}
	one, _ := requirements.Compile("Settings", "test", []requirements.Requirement{valid})
	valid.MinimumAge++
	if other, _ := requirements.Compile("Settings", "test", []requirements.Requirement{valid}); one.Hash == other.Hash || one.Hash == "" {
		t.Error("the hash does not depend on the requirement")
	}
}

func TestPlan(t *testing.T) {
	now := time.Now()
	made, err := requirements.Compile("Settings", "test", []requirements.Requirement{{
		Path: "r[0]", Images: []string{"nginx:1*", "registry.example/shop/*"}, Namespaces: []string{"prod", "team-*"}, MinimumAge: time.Hour, MaximumAge: 2 * time.Hour,
	}})
	if err != nil {
		t.Fatal(err)
	}
	images := []policy.Image{
		{Pointer: "/0", Ref: image.MustParse("nginx:1.27")}, {Pointer: "/1", Ref: image.MustParse("docker.io/library/nginx:1.27")},
		{Pointer: "/2", Ref: image.MustParse("registry.example/shop/web:v1")}, {Pointer: "/3", Ref: image.MustParse("registry.example/other/web:v1")},
	}
	for _, c := range []struct {
		reason  string
		subject policy.Subject
		want    string
		fails   bool
	}{
		{"its namespace", policy.Subject{Namespace: "prod", Time: now}, "/0/1/2", false},
		{"a pattern of it", policy.Subject{Namespace: "team-a", Time: now}, "/0/1/2", false},
		{"another one", policy.Subject{Namespace: "test", Time: now}, "", false},
		{"none", policy.Subject{Time: now}, "", false},
		{"one that is not known", policy.Subject{Shape: policy.Shape{Bare: true}, Time: now}, "", true},
	} {
		planned, err := made.Rules[0].Plan(t.Context(), &c.subject, images)
		var got string
		for _, check := range planned.Checks {
			got += check.Image.Pointer
			if want := (age.Bounds{By: "r[0]", Minimum: time.Hour, Maximum: 2 * time.Hour, At: now, Whole: true}); check.Age != want || check.Action != policy.Enforce {
				t.Errorf("%s: %+v", c.reason, check)
			}
		}
		if got != c.want || (err != nil) != c.fails {
			t.Errorf("%s: %s, %v", c.reason, got, err)
		}
	}
}

func TestFinder(t *testing.T) {
	standard := []policy.Image{{Pointer: "/a", Ref: image.MustParse("a:1")}}
	find := func([]policy.Extractor) ([]policy.Image, error) { return standard, nil }
	images, err := requirements.Finder(find, []policy.Check{
		{Image: standard[0]}, {Image: policy.Image{Pointer: "/custom", Ref: image.MustParse("b:1")}}, {Image: policy.Image{Pointer: "/custom", Ref: image.MustParse("b:1")}},
		{Image: policy.Image{Pointer: "/a", Ref: image.MustParse("source.example/a:1")}},
	})(nil)
	if err != nil || len(images) != 3 || len(standard) != 1 {
		t.Errorf("%+v, %v", images, err)
	}
	failing := func([]policy.Extractor) ([]policy.Image, error) { return nil, fmt.Errorf("unreadable") }
	if _, err := requirements.Finder(failing, nil)(nil); err == nil {
		t.Error("images that cannot be read are none")
	}
}
