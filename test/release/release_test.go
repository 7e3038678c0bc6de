package release

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/quaymaster/quaymaster/test/peers"
)

// TestRelease makes a release, and spoils it in each way once on its way.
func TestRelease(t *testing.T) {
	y := open(t)
	y.must(t, "build.sh", version, y.file("dist"))
	y.checkFiles(t)
	provenance := exec.CommandContext(t.Context(), "go", "run", "./deploy/release", "provenance")
	provenance.Dir, provenance.Env = y.root, y.env
	predicate, err := provenance.Output()
	check(t, err)
	check(t, os.WriteFile(y.file("provenance.json"), predicate, 0o600))

	y.must(t, "publish.sh", "push")
	pushed, err := os.ReadFile(y.file("dist", "pushed"))
	check(t, err)
	names := strings.Split(strings.TrimSpace(string(pushed)), "\n")
	if len(names) != 3 || !strings.HasPrefix(names[0], "quaymaster "+y.host+"/quay/quaymaster@sha256:") || !strings.HasPrefix(names[2], "chart "+y.host+"/quay/charts/quaymaster@sha256:") {
		t.Fatalf("pushed:\n%s", pushed)
	}
	y.refuses(t, "it is not signed yet", nil)
	y.must(t, "publish.sh", "sign")
	y.checkChecksums(t)
	for _, row := range []struct {
		reason string
		more   []string
	}{
		{"signed by another identity, as cosign signs", []string{"COSIGN_PUBLIC_KEY=" + y.file("stranger.pub")}},
		{"signed by another identity, as notation signs", []string{"NOTATION_ROOT=" + y.file("stranger.root.pem")}},
	} {
		y.refuses(t, row.reason, row.more)
	}
	y.spoiling.Store(true)
	y.refuses(t, "a byte of each signature is another", nil)
	y.spoiling.Store(false)
	y.swapped(t, string(pushed))

	y.must(t, "publish.sh", "promote")
	y.must(t, "publish.sh", "promote") // as a run of the workflow that is repeated does
	for _, name := range names {
		_, reference, _ := strings.Cut(name, " ")
		repository, digest, _ := strings.Cut(reference, "@")
		tag := version
		if strings.Contains(repository, "/charts/") {
			tag = "1.2.3"
		}
		if got := strings.TrimSpace(y.crane(t, "digest", repository+":"+tag)); got != digest {
			t.Errorf("%s:%s is %s, and %s was verified", repository, tag, got, digest)
		}
	}
	t.Run("the image runs", y.runs)
	t.Run("the chart is Helm's", y.pulls)
	t.Run("the documentation", y.follows)
}

// refuses wants promote to fail, and to tag nothing.
func (y *yard) refuses(t *testing.T, reason string, more []string) {
	t.Helper()
	said, err := y.script(t, "publish.sh", []string{"promote"}, more...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(said, "nothing is tagged") {
		t.Errorf("%s: promoted with %v:\n%s", reason, err, said)
	}
	for _, repository := range []string{"quaymaster", "quaymaster-node", "charts/quaymaster"} {
		tags, err := peers.Get(t, peers.Crane).Run(t.Context(), "ls", y.host+"/quay/"+repository)
		if err != nil && !strings.Contains(tags, "NAME_UNKNOWN") { // so it calls one without tags
			t.Fatal(err)
		}
		if err != nil {
			continue
		}
		for _, tag := range strings.Fields(tags) {
			if !strings.HasPrefix(tag, "sha256-") { // of its referrers
				t.Errorf("%s: %s is tagged %s", reason, repository, tag)
			}
		}
	}
}

// swapped puts an image in another one's place, which is signed just as well.
func (y *yard) swapped(t *testing.T, pushed string) {
	t.Helper()
	lines := strings.SplitAfter(pushed, "\n")
	node := strings.TrimPrefix(lines[1], "quaymaster-node ")
	check(t, os.WriteFile(y.file("dist", "pushed"), []byte("quaymaster "+node+strings.Join(lines[1:], "")), 0o600))
	y.refuses(t, "another image, signed well", nil)
	check(t, os.WriteFile(y.file("dist", "pushed"), []byte(pushed), 0o600))
}

// checkFiles compares the checksums with the files, and the catalogues with them.
func (y *yard) checkFiles(t *testing.T) {
	t.Helper()
	sums, err := os.ReadFile(y.file("dist", "files", "SHA256SUMS"))
	check(t, err)
	entries, err := os.ReadDir(y.file("dist", "files"))
	check(t, err)
	var names []string
	for _, entry := range entries {
		if entry.Name() == "SHA256SUMS" {
			continue
		}
		names = append(names, entry.Name())
		content, err := os.ReadFile(y.file("dist", "files", entry.Name()))
		check(t, err)
		sum := sha256.Sum256(content)
		if !strings.Contains(string(sums), hex.EncodeToString(sum[:])+"  "+entry.Name()+"\n") {
			t.Errorf("the checksum of %s is not there:\n%s", entry.Name(), sums)
		}
	}
	want := []string{"quaymaster-1.2.3.tgz", "quaymaster-node_v1.2.3_linux_" + architecture() + ".tar.gz", "quaymaster-node.spdx.json", "quaymaster.spdx.json"}
	for _, platform := range []string{"darwin_amd64", "darwin_arm64", "linux_amd64", "linux_arm64"} {
		want = append(want, "quaymaster_v1.2.3_"+platform+".tar.gz")
	}
	slices.Sort(names)
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Errorf("files %q,\nwant %q", names, want)
	}
	for _, catalogue := range []string{"quaymaster.yaml", "quaymaster.rb"} {
		text, err := os.ReadFile(y.file("dist", catalogue))
		check(t, err)
		for line := range strings.Lines(string(sums)) {
			if sum, name, _ := strings.Cut(strings.TrimSpace(line), "  "); strings.HasPrefix(name, "quaymaster_") && !strings.Contains(string(text), sum) {
				t.Errorf("%s has not the checksum of %s", catalogue, name)
			}
		}
	}
	if output, err := y.script(t, "build.sh", []string{version, y.file("dist")}); err == nil || !strings.Contains(output, "not empty") {
		t.Errorf("built into an old folder: %v\n%s", err, output)
	}
	if output, err := y.script(t, "build.sh", []string{"main", y.file("new")}); err == nil || !strings.Contains(output, "want a release") {
		t.Errorf("built a release of a branch: %v\n%s", err, output)
	}
}

// checkChecksums has cosign verify the signature and the provenance of SHA256SUMS, and
// the list with one byte changed.
func (y *yard) checkChecksums(t *testing.T) {
	t.Helper()
	y.must(t, "publish.sh", "checksums")
	y.must(t, "publish.sh", "checksums") // each step may be run again
	sums := y.file("dist", "files", "SHA256SUMS")
	content, err := os.ReadFile(sums)
	check(t, err)
	root, err := os.ReadFile(y.file("signer.root.pem"))
	check(t, err)
	if sum := sha256.Sum256(root); strings.Count(string(content), hex.EncodeToString(sum[:])+"  notation-root.pem\n") != 1 {
		t.Errorf("the list names notation's root not once:\n%s", content)
	}
	content[0] ^= 1
	changed := y.file("changed")
	check(t, os.WriteFile(changed, content, 0o600))
	cosign := peers.Get(t, peers.Cosign3)
	for _, verify := range [][]string{
		{"verify-blob", "--bundle", sums + ".sigstore.json"},
		{"verify-blob-attestation", "--type", "slsaprovenance1", "--bundle", sums + ".provenance.sigstore.json"},
	} {
		args := append(verify, "--key", y.file("signer.pub"), "--insecure-ignore-tlog")
		cosign.Must(t, append(args, sums)...)
		if said, err := cosign.Run(t.Context(), append(args, changed)...); err == nil {
			t.Errorf("%s accepts the list with a byte changed:\n%s", verify[0], said)
		}
	}
	archive := y.file("dist", "files", "quaymaster_v1.2.3_darwin_arm64.tar.gz")
	good, err := os.ReadFile(archive)
	check(t, err)
	check(t, os.WriteFile(archive, append(good, 0), 0o600))
	if said, err := y.script(t, "publish.sh", []string{"checksums"}); err == nil {
		t.Errorf("an archive with a byte more was signed for:\n%s", said)
	}
	check(t, os.WriteFile(archive, good, 0o600))
}

func (y *yard) crane(t *testing.T, args ...string) string {
	t.Helper()
	crane := peers.Get(t, peers.Crane)
	return crane.Must(t, args...)
}

// runs unpacks the image and runs its program with nothing else around it.
func (y *yard) runs(t *testing.T) {
	root := t.TempDir()
	archive := y.file("image.tar")
	y.crane(t, "export", y.host+"/quay/quaymaster:"+version, archive)
	file, err := os.Open(archive)
	check(t, err)
	defer func() { _ = file.Close() }()
	executable := 0
	for r := tar.NewReader(file); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		check(t, err)
		if header.Typeflag != tar.TypeReg {
			check(t, os.MkdirAll(filepath.Join(root, header.Name), 0o755))
			continue
		}
		if header.Mode&0o111 != 0 {
			executable++
		}
		content, err := io.ReadAll(r)
		check(t, err)
		check(t, os.MkdirAll(filepath.Dir(filepath.Join(root, header.Name)), 0o755))
		check(t, os.WriteFile(filepath.Join(root, header.Name), content, os.FileMode(header.Mode)))
	}
	if executable != 1 {
		t.Errorf("%d programs are in it, want ours alone", executable)
	}
	command := exec.CommandContext(t.Context(), filepath.Join(root, "usr/bin/quaymaster"), "version")
	command.Env = []string{}
	if os.Getuid() == 0 { // with the image's root and user, as a container has them
		check(t, os.Chmod(root, 0o755))
		command.Path, command.Dir = "/usr/bin/quaymaster", "/"
		command.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	}
	if output, err := command.CombinedOutput(); err != nil || string(output) != "quaymaster "+version+"\n" {
		t.Errorf("got %q, %v", output, err)
	}
}

// pulls has Helm find the chart by its version, and render it.
func (y *yard) pulls(t *testing.T) {
	helm := peers.Get(t, peers.Helm)
	helm.Must(t, "pull", "oci://"+y.host+"/quay/charts/quaymaster", "--version", "1.2.3", "--plain-http")
	if said := helm.Must(t, "template", "quaymaster-1.2.3.tgz"); !strings.Contains(said, `version: "1.2.3"`) {
		t.Errorf("rendered:\n%s", said)
	}
}
