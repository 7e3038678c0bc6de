package samples

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sample is a file with a policy, and its trials.
type sample struct {
	file string // below the folder of the samples
	// with names the addition, where the same file occurs twice.
	with string
	// beside are documents that the policy looks up and the file lacks.
	beside func(t testing.TB, p *port) []map[string]any
	trials []trial
}

// trial is an image, its proofs, and the expected verdict of the policy.
type trial struct {
	reason     string
	repository string // below the registry
	proofs     []proof
	// object runs IMAGE; empty means a pod.
	object string
	answer string
	// code is that of the image's first reason.
	code string
	// further is that of another one; empty if it is not compared.
	further string
	// warning is that of its first warning: the reason why the policy would refuse an image
	// that it admits.
	warning string
	// says is a part of one of their messages, which the policy's author wrote.
	says string
	// pin: whether the policy wants the exact name to stand in the object. It is
	// compared where an image is allowed.
	pin bool
	// byDigest: the object names the image by its digest alone.
	byDigest bool
	// absent: the image was not pushed.
	absent bool
}

// accepts reports whether the policy is to find the image good, and not only to
// leave it alone.
func (r trial) accepts() bool {
	return r.answer == allow && r.warning == "" && (r.code == "verified" || r.code == "pinned")
}

// refuses reports whether the policy is to hold something against the image.
func (r trial) refuses() bool {
	return r.answer != allow && r.answer != unchecked || r.warning != ""
}

const (
	allow     = "allow"
	deny      = "deny"
	unable    = "error"
	unchecked = "unchecked"
)

// TestSamples asks policies of our own, and those of other projects that are at
// hand, the same way. The programs are mustered once, for that takes a while.
func TestSamples(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs cosign and Sigstore's servers, which takes minutes")
	}
	root := os.Getenv("QUAYMASTER_SAMPLES")
	mine, foreign := ours(), []sample(nil)
	if root != "" {
		foreign = theirs()
	}
	p := newPort(t)
	p.stamp(t, slices.Concat(mine, foreign))
	t.Run("ours", func(t *testing.T) { p.sail(t, "testdata", mine) })
	t.Run("theirs", func(t *testing.T) {
		if root == "" {
			t.Skip("the samples of other projects are not at hand (set QUAYMASTER_SAMPLES)")
		}
		p.sail(t, filepath.Join(root, "verify-images"), foreign)
	})
}

// covers fails the test unless every file is asked, and is asked to accept and to
// refuse.
func covers(t *testing.T, root string, samples []sample) {
	t.Helper()
	accepted, refused := map[string]bool{}, map[string]bool{}
	for _, s := range samples {
		for _, trial := range s.trials {
			accepted[s.file] = accepted[s.file] || trial.accepts()
			refused[s.file] = refused[s.file] || trial.refuses()
		}
	}
	found := 0 // files
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		found++
		file, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		file = filepath.ToSlash(file)
		if !accepted[file] || !refused[file] {
			t.Errorf("%s: no image is there that it is to accept, or none that it is to refuse", file)
		}
		if n := policies(read(t, path)); n != 1 {
			t.Errorf("%s: there are %d policies in it, and one is asked", file, n)
		}
		return nil
	})
	check(t, err)
	files := map[string]bool{}
	for _, s := range samples {
		files[s.file] = true
	}
	if len(files) != found {
		t.Errorf("there are %d files, and %d are asked", found, len(files))
	}
}

// policies counts those among documents; documents that they look up are not counted.
func policies(documents []map[string]any) int {
	n := 0
	for _, document := range documents {
		if isPolicy(document) {
			n++
		}
	}
	return n
}

func isPolicy(document map[string]any) bool {
	kind, ok := document["kind"].(string)
	return ok && strings.HasSuffix(kind, "Policy")
}

// anonym is the name of every policy: no policy may be recognized by its name.
const anonym = "policy"

// anonymous renames a policy, which the caller owns.
func anonymous(document map[string]any) map[string]any {
	if isPolicy(document) {
		document["metadata"].(map[string]any)["name"] = anonym
	}
	return document
}

// sail asks the samples below a folder, which are all that is there.
func (p *port) sail(t *testing.T, root string, samples []sample) {
	t.Helper()
	covers(t, root, samples)
	for _, s := range samples {
		t.Run(strings.TrimSpace(s.file+" "+s.with), func(t *testing.T) {
			t.Parallel()
			p.try(t, root, s)
		})
	}
}

// try has one policy judge all of its trials at once.
func (p *port) try(t *testing.T, root string, s sample) {
	var documents []map[string]any
	for _, document := range read(t, filepath.Join(root, filepath.FromSlash(s.file))) {
		documents = append(documents, anonymous(p.apply("", document).(map[string]any)))
	}
	if s.beside != nil {
		documents = append(documents, s.beside(t, p)...)
	}
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, policy, documents)
	var objects []map[string]any
	for _, trial := range s.trials {
		image := p.registry + "/" + trial.repository + ":nobody-pushed-it"
		if !trial.absent {
			made := p.load(t, trial.repository, trial.proofs)
			image = made.byTag
			if trial.byDigest {
				image = made.byDigest
			}
		}
		objects = append(objects, manifest(t, trial.object, image))
	}
	items, said := p.judge(t, policy, objects)
	for i, trial := range s.trials {
		if wrong := trial.compare(items[i]); len(wrong) > 0 {
			t.Errorf("%s: %s", trial.reason, strings.Join(wrong, "; "))
		}
	}
	if t.Failed() {
		t.Logf("output of quaymaster:\n%s", said)
	}
}

// compare lists the differences between a verdict and the expected one.
func (r trial) compare(got item) (wrong []string) {
	expect := func(what, got, want string) {
		if got != want {
			wrong = append(wrong, what+" is "+quoted(got)+", want "+quoted(want))
		}
	}
	expect("the result", got.Result, r.answer)
	if len(got.Images) != 1 {
		return append(wrong, "the record does not have one image")
	}
	image := got.Images[0]
	reasons, warnings := slices.Concat(image.Reasons, got.Reasons), slices.Concat(image.Warnings, got.Warnings)
	expect("the first reason", first(reasons), r.code)
	expect("the first warning", first(warnings), r.warning)
	if r.further != "" && !slices.ContainsFunc(reasons, func(one reason) bool { return one.Code == r.further }) {
		wrong = append(wrong, "no reason is "+r.further)
	}
	if !slices.ContainsFunc(slices.Concat(reasons, warnings), func(one reason) bool { return strings.Contains(one.Message, r.says) }) {
		wrong = append(wrong, "no message contains "+r.says)
	}
	if r.answer == allow && image.Pin != r.pin {
		wrong = append(wrong, map[bool]string{true: "the policy does not require its digest", false: "the policy requires its digest"}[r.pin])
	}
	return wrong
}

func quoted(code string) string {
	if code == "" {
		return "nothing"
	}
	return code
}
