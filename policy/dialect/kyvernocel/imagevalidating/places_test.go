package imagevalidating_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
)

// naming is a policy that names images by an expression.
func naming(expression string) string {
	return ofAnyFields(edit(minimal, "spec:\n", "spec:\n  images: [{name: named, expression: \""+expression+"\"}]\n"))
}

// ofAnyFields lets expressions read fields that pods do not have: another version may have them.
func ofAnyFields(text string) string {
	return edit(text, "apiVersions: [v1], operations", "apiVersions: [v1, v9], operations")
}

// TestPlaces: where the images stand that an expression names is read from it; where it
// cannot be, nowhere.
func TestPlaces(t *testing.T) {
	for _, c := range []struct{ reason, expression, want string }{
		{"a list of texts", "object.spec.images", "/spec/images/*"},
		{"a member of each", "object.spec.steps.map(s, s.image)", "/spec/steps/*/image"},
		{"of some", "object.spec.steps.map(s, s.on, s.image)", "/spec/steps/*/image"},
		{"of those that are left", "object.spec.steps.filter(s, s.on).map(s, s.image)", "/spec/steps/*/image"},
		{"if they are there", "object.spec.?steps.orValue([]).map(s, s.image)", "/spec/steps/*/image"},
		{"by an index", "object['spec']['a/b~c'].map(s, s['image'])", "/spec/a~1b~0c/*/image"},
		{"by an index, if it is there", "object.spec[?'steps'].orValue([]).map(s, s.image)", "/spec/steps/*/image"},
		{"texts", "[object.spec.a, object.spec.b]", "/spec/a /spec/b"},
		{"one of two texts", "[object.spec.on ? object.spec.a : object.spec.b]", "/spec/a /spec/b"},
		{"a text that may be missing", "[object.spec.?a.orValue('')]", "/spec/a"},
		{"lists that are joined", "object.spec.a.map(x, x.image) + object.spec.b.map(x, x.image)", "/spec/a/*/image /spec/b/*/image"},
		{"a list twice", "object.spec.a + object.spec.a", "/spec/a/*"},
		{"one of two lists", "has(object.spec.a) ? object.spec.a.map(x, x.image) : [object.spec.b]", "/spec/a/*/image /spec/b"},
		{"members of several", "(object.spec.a + object.spec.b).map(x, x.image)", "/spec/a/*/image /spec/b/*/image"},
		{"what stands outside of the list", "object.spec.a.map(x, object.spec.tool)", "/spec/tool"},
		{"a name that hides another", "object.spec.a.map(x, x.b).map(x, x.c)", "/spec/a/*/b/c"},
		{"of the old object", "oldObject.spec.images", "/spec/images/*"},
		{"a name that hides the object", "object.spec.steps.map(object, object.image)", "/spec/steps/*/image"},
		{"a text that is made", "object.spec.steps.map(s, s.image + '-debug')", ""},
		{"a text that is written", "['registry.example/org/app:v1']", ""},
		{"one beside a place", "[object.spec.a, dyn('registry.example/org/app:v1')]", ""},
		{"a place beside one", "[dyn('registry.example/org/app:v1'), object.spec.a]", ""},
		{"a text that is made of others", "[object.spec.a.replace('a', object.spec.b, object.spec.c)]", ""},
		{"parts of a text", "object.spec.a.split(',')", ""},
		{"parts of a text, beside a list", "object.spec.a + object.spec.b.split(',')", ""},
		{"lists in a list", "object.spec.steps.map(s, s.images).flatten()", "/spec/steps/*/images /spec/steps/*/images/*"},
		{"a list in another order", "object.spec.steps.map(s, s.image).sortBy(i, i)", "/spec/steps/*/image"},
		{"a list next to computed values", "object.spec.a + [string(object.spec.b)]", ""},
		{"a list next to computed values, and another", "object.spec.a + [string(object.spec.b)] + object.spec.c", ""},
		{"computed values next to a list", "[string(object.spec.b)] + object.spec.a", ""},
		{"computed values next to two lists", "[string(object.spec.b)] + object.spec.a + object.spec.c", ""},
		{"one of two, of which one is made", "object.spec.on ? object.spec.a : [string(object.spec.b)]", ""},
		{"by an index that is read", "object.spec[object.spec.key].map(s, s.image)", "/spec/*/*/image"},
		{"by a number", "object.spec.steps[0].images", "/spec/steps/*/images/*"},
		{"by a number, beside a place", "[object.spec.steps[0].image, object.spec.a]", "/spec/steps/*/image /spec/a"},
		{"one element", "[object.spec.images[0]]", "/spec/images/*"},
		{"of those that are left", "[object.spec.steps.filter(s, s.on)[0].image]", "/spec/steps/*/image"},
		{"lists that are made in a list", "object.spec.jobs.map(j, j.steps.map(s, s.image)).flatten()", "/spec/jobs/*/steps/*/image"},
		{"an outer name in an inner list", "object.spec.jobs.map(j, j.steps.map(s, j.image)).flatten()", "/spec/jobs/*/image"},
		{"members by their keys", "object.spec.images.map(k, object.spec.images[k])", "/spec/images/*"},
		{"sorted", "object.spec.images.sort()", "/spec/images/*"},
		{"each once", "object.spec.images.distinct()", "/spec/images/*"},
		{"the other list", "object.spec.?a.orValue(object.spec.b)", "/spec/a/* /spec/b/*"},
		{"a list of what may be there", "object.spec.?tool.optMap(x, [x.image]).orValue([])", "/spec/tool/image"},
		{"of the request", "[request.name]", ""},
		{"whether a member is there", "object.spec.steps.map(s, string(has(s.image)))", ""},
		{"members of a literal list", "[object.spec.a].map(x, x)", "/spec/a"},
		{"members of computed values", "[string(object.spec.a)].map(x, x)", ""},
		{"members of computed values, next to a list", "[string(object.spec.a)].map(x, x) + object.spec.b", ""},
		{"the other value of a list", "object.spec.steps.map(s, s.image).orValue([])", "compile"},
	} {
		p, err := compile(naming(c.expression))
		if err != nil {
			if c.want != "compile" {
				t.Errorf("%s: %v", c.reason, err)
			}
			continue
		}
		var got []string
		for _, e := range p.Rules[0].Extractors(&policy.Subject{Group: "example.com", Version: "v1", Kind: "Task"}) {
			got = append(got, e.Path)
			if e.Name != "named" || e.Value != "" {
				t.Errorf("%s: %+v", c.reason, e)
			}
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: %q, want %q", c.reason, text, c.want)
		}
	}
}

// TestStandardPlaces: of kinds with a pod specification its own places are looked at,
// beside those that an expression names elsewhere.
func TestStandardPlaces(t *testing.T) {
	own := testkit.Must(compile(naming("object.spec.steps.map(s, s.image)")))(t)
	for kind, spec := range map[string]string{
		"/Pod": "/spec", "/PodTemplate": "/template/spec", "/ReplicationController": "/spec/template/spec", "apps/Deployment": "/spec/template/spec",
		"apps/StatefulSet": "/spec/template/spec", "apps/DaemonSet": "/spec/template/spec", "apps/ReplicaSet": "/spec/template/spec",
		"batch/Job": "/spec/template/spec", "batch/CronJob": "/spec/jobTemplate/spec/template/spec", "example.com/Deployment": "", "/Service": "",
	} {
		group, name, _ := strings.Cut(kind, "/")
		var got []string
		for _, e := range own.Rules[0].Extractors(&policy.Subject{Group: group, Version: "v1", Kind: name}) {
			got = append(got, strings.TrimSuffix(e.Path+"/"+e.Value, "/"))
		}
		var want []string
		if spec != "" {
			want = []string{spec + "/volumes/*/image/reference", spec + "/containers/*/image", spec + "/initContainers/*/image", spec + "/ephemeralContainers/*/image"}
		}
		want = append(want, "/spec/steps/*/image")
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
	pod, task := &policy.Subject{Version: "v1", Kind: "Pod"}, &policy.Subject{Group: "example.com", Version: "v1", Kind: "Task"}
	for expression, want := range map[string]int{
		"object.spec.containers.map(c, c.image)": 0, "object.spec.initContainers.map(c, c.image)": 0, "object.spec.ephemeralContainers.map(c, c.image)": 0,
		"object.spec.volumes.map(v, v.image.reference)": 0, "object.spec.containers.map(c, c.name)": 5, "object.specs.containers.map(c, c.image)": 5,
		"object.containers.map(c, c.image)":             5,
		"object.status.spec.containers.map(c, c.image)": 5,
	} {
		rule := testkit.Must(compile(naming(expression)))(t).Rules[0]
		if got := rule.Extractors(pod); len(got) != want {
			t.Errorf("%s: of a Pod: %+v", expression, got)
		}
		if got := rule.Extractors(task); len(got) != 1 {
			t.Errorf("%s: of a Task: %+v", expression, got)
		}
	}
	follows := testkit.Must(compile(edit(naming("object.spec.hostAliases.map(s, s.ip)"), "[v1, v9]", "[v1]")))(t)
	deployment := follows.Rules[1].Extractors(&policy.Subject{Group: "apps", Version: "v1", Kind: "Deployment"})
	if last := deployment[len(deployment)-1]; last.Path != "/spec/template/spec/hostAliases/*/ip" {
		t.Errorf("of the template: %+v", last)
	}
}

// TestCategories: the images of a pod specification are in its lists, and those that an
// expression names in its own.
func TestCategories(t *testing.T) {
	lists := []string{"containers", "initContainers", "ephemeralContainers", "imageVolumes", "named"}
	for _, c := range []struct{ reason, role, container, want string }{
		{"a container", "container", "c", "containers"},
		{"one that begins", "init", "c", "initContainers"},
		{"one that is added", "ephemeral", "c", "ephemeralContainers"},
		{"a volume", "volume", "v", "imageVolumes"},
		{"a standard place beside others", "custom", "initContainers/0", "initContainers"},
		{"a place of a name that is none", "custom", "others/0", ""},
		{"another place", "custom", "named/0", "named"},
	} {
		tool := app
		if c.want != "named" {
			tool = ""
		}
		for _, list := range lists {
			text := edit(naming("[object.tool]"), "images.containers.all(i, verifyImageSignatures(i, [attestors.ours]) > 0)", "images."+list+".size() == 1")
			images := containers(app)
			images[0].Role, images[0].Container = c.role, c.container
			out := judged(t, text, nil, map[string]any{"tool": tool}, images, nil)
			if c.want == "" {
				if len(out.Decisions) > 0 {
					t.Errorf("%s in %s: it is no image, and there is %+v", c.reason, list, out.Decisions)
				}
				continue
			}
			d := out.Decisions[0]
			if (d.Result == policy.Pass) != (list == c.want) {
				t.Errorf("%s in %s: %s %s", c.reason, list, d.Result, textOf(d.Reasons))
			}
		}
	}
}

// TestNamedImages: an expression names images that are there, as many as there may be.
func TestNamedImages(t *testing.T) {
	many := func(n int, text any) map[string]any { return map[string]any{"steps": slices.Repeat([]any{text}, n)} }
	for _, c := range []struct {
		reason, expression string
		object             map[string]any
		want               string
	}{
		{"none", "object.steps", many(0, app), ""},
		{"one that is there", "object.steps", many(1, app), ""},
		{"one that is not", "object.steps", many(1, "registry.example/org/other:v1"), "stands at no place"},
		{"an empty text", "object.steps", many(1, ""), ""},
		{"as many as there may be", "object.steps", many(200, app), ""},
		{"one more", "object.steps", many(201, app), "names more than 200 images"},
		{"more than texts", "object.steps", many(1, 1.0), "holds more than texts"},
		{"a text", "object.steps", map[string]any{"steps": app}, "and no list of texts"},
		{"a missing member", "dyn(object).none", many(1, app), "no such key"},
	} {
		_, err := planned(t, naming(c.expression), c.object)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
}

// TestReferences: the images that a policy matches.
func TestReferences(t *testing.T) {
	const digest = "@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	for _, c := range []struct {
		reason, references, image string
		want                      bool
	}{
		{"a glob", "{glob: 'a.example/*'}", "a.example/b:1", true},
		{"which crosses slashes", "{glob: 'a.example/*'}", "a.example/b/c:1", true},
		{"as two stars do", "{glob: 'a.example/**'}", "a.example/b/c:1", true},
		{"and three", "{glob: 'a.example/***'}", "a.example/b/c:1", true},
		{"another registry", "{glob: 'a.example/*'}", "b.example/b:1", false},
		{"an alternative", "{glob: 'a.example/{b,c}:*'}", "a.example/c:1", true},
		{"the first one", "{glob: 'a.example/{b,c}:*'}", "a.example/b:1", true},
		{"no alternative", "{glob: 'a.example/{b,c}:*'}", "a.example/d:1", false},
		{"alternatives in one another", "{glob: 'a.example/{b,{c,d}e}:*'}", "a.example/de:1", true},
		{"one of them alone", "{glob: 'a.example/{b,{c,d}e}:*'}", "a.example/d:1", false},
		{"one after the other", "{glob: 'a.example/{b,c}/{d,e}:*'}", "a.example/b/e:1", true},
		{"an alternative of nothing", "{glob: 'a.example/b{,c}:*'}", "a.example/b:1", true},
		{"two entries", "{glob: 'a.example/*'}, {glob: 'b.example/*'}", "b.example/a:1", true},
		{"a glob and an expression", "{glob: 'a.example/*'}, {expression: \"ref.startsWith('b.example/')\"}", "b.example/a:1", true},
		{"neither", "{glob: 'a.example/*'}, {expression: \"ref.startsWith('b.example/')\"}", "c.example/a:1", false},
		{"two expressions", "{expression: \"ref.startsWith('a.example/')\"}, {expression: \"ref.startsWith('b.example/')\"}", "b.example/a:1", true},
		{"as it is written", "{expression: \"ref == 'nginx'\"}", "nginx", true},
		{"with its registry", "{expression: \"ref == 'docker.io/library/nginx:latest'\"}", "nginx", true},
		{"without it", "{expression: \"ref == 'library/nginx:latest'\"}", "docker.io/library/nginx", true},
		{"in short", "{expression: \"ref == 'nginx:latest'\"}", "docker.io/library/nginx", true},
		{"as go-containerregistry has it", "{expression: \"ref == 'index.docker.io/library/nginx:latest'\"}", "nginx", true},
		{"an unusual name of the registry", "{expression: \"ref.startsWith('123456789012.dkr.ecr.us-east-1.amazonaws.com/')\"}", "123456789012.dkr-ecr.us-east-1.on.aws/app:v1", true},
		{"its tag beside a digest, by another name", "{expression: \"ref == '123456789012.dkr.ecr.us-east-1.amazonaws.com/app:v1'\"}", "123456789012.dkr-ecr.us-east-1.on.aws/app:v1@sha256:" + strings.Repeat("a", 64), true},
		{"another registry's", "{expression: \"ref.startsWith('123456789012.dkr.ecr.us-east-1.amazonaws.com/')\"}", "123456789012.dkr.ecr.us-east-2.amazonaws.com/app:v1", false},
		{"of another registry not in short", "{expression: \"ref == 'b:1'\"}", "a.example/b:1", false},
		{"of another owner not in short", "{expression: \"ref == 'b:1'\"}", "docker.io/a/b:1", false},
		{"a tag beside a digest", "{expression: \"ref == 'a.example/b:1'\"}", "a.example/b:1" + digest, true},
		{"another tag beside a digest", "{expression: \"ref == 'a.example/b:2'\"}", "a.example/b:1" + digest, false},
		{"no tag", "{expression: \"ref == 'a.example/b:'\"}", "a.example/b" + digest, false},
		{"an address as IPv6", "{expression: \"ref.startsWith('127.0.0.1:5000/')\"}", "[::ffff:127.0.0.1]:5000/b:1", true},
		{"the usual name is no unusual one", "{expression: \"ref.startsWith('1.dkr-ecr.eu-west-1.on.aws/')\"}", "1.dkr.ecr.eu-west-1.amazonaws.com/b:1", false},
		{"a negation selects no image by another name", "{expression: \"!ref.startsWith('127.0.0.1:5000/')\"}", "127.0.0.1:5000/b:1", false},
	} {
		p := testkit.Must(compile(edit(minimal, "spec:\n", "spec:\n  matchImageReferences: ["+c.references+"]\n")))(t)
		s := &policy.Subject{Object: policy.ContentOf(map[string]any{}), Kind: "Pod", Version: "v1", Operation: "CREATE", Namespace: "shop"}
		plan := testkit.Must(p.Rules[0].Plan(t.Context(), s, []policy.Image{{Role: "container", Ref: image.MustParse(c.image)}}))(t)
		if got := len(plan.Checks) > 0; got != c.want {
			t.Errorf("%s: %v", c.reason, got)
		}
	}
}

// TestUnclearReferences: an expression that fails leaves it indeterminate whether an image
// matches, unless another entry matches it; an unchanged image is not evaluated.
func TestUnclearReferences(t *testing.T) {
	const fails, holds, not = "{expression: \"ref.split('#')[1] == ''\"}", "{expression: 'true'}", "{expression: 'false'}"
	for _, c := range []struct {
		reason, references string
		unchanged          bool
		checks             int
		unclear            bool
	}{
		{"it fails", fails, false, 0, true},
		{"and the image ran before", fails, true, 0, false},
		{"another one holds", fails + ", " + holds, false, 1, false},
		{"another one does not", fails + ", " + not, false, 0, true},
		{"nor does it, in the other order", not + ", " + fails, false, 0, true},
		{"a glob means it", fails + ", {glob: 'registry.example/*'}", false, 1, false},
	} {
		p := testkit.Must(compile(edit(minimal, "spec:\n", "spec:\n  matchImageReferences: ["+c.references+"]\n")))(t)
		images := containers(app)
		images[0].Unchanged = c.unchanged
		s := &policy.Subject{Object: policy.ContentOf(map[string]any{}), Kind: "Pod", Version: "v1", Operation: "CREATE", Namespace: "shop"}
		plan, err := p.Rules[0].Plan(context.Background(), s, images)
		if len(plan.Checks) != c.checks || (err != nil) != c.unclear {
			t.Errorf("%s: %d checks, %v", c.reason, len(plan.Checks), err)
		}
	}
}
