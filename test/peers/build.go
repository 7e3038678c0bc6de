// Package peers answers: where is the real program that a test compares with?
//
// Programs are built from Go modules, once per version, into a folder of the
// user's cache, so that nothing but Go is needed and nothing is left in the
// tree. The versions are pinned under test/tools, one module per project,
// because their dependencies do not get along. What a program shares with this project has
// this project's version, so that it is compiled once (make align), but for the modules that
// decide the program's answers.
package peers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/mod/modfile"
)

// The programs under test/tools.
const (
	Cosign2         = "cosign2"
	Cosign3         = "cosign3"
	Crane           = "crane"
	Registry        = "registry"
	Fulcio          = "fulcio"
	TimestampServer = "timestamp-server"
	GolangCILint    = "golangci-lint"
	Etcd            = "etcd"
	Notation        = "notation"
	Helm            = "helm"
	Kustomize       = "kustomize"
	Actionlint      = "actionlint"
	Govulncheck     = "govulncheck"
	KubectlSigstore = "kubectl-sigstore"
	SLSAVerifier    = "slsa-verifier"

	// Helm3 is the major version before.
	Helm3 = "helm3"

	// The next two come from one module.
	Prometheus = "prometheus"
	Promtool   = "promtool"

	// The next three come from one module.
	KubeAPIServer         = "kube-apiserver"
	KubeControllerManager = "kube-controller-manager"
	Kubectl               = "kubectl"

	// OldestKubeAPIServer is of the oldest Kubernetes that the charts allow.
	OldestKubeAPIServer = "oldest-kube-apiserver"
)

// Programs are those that the suites run, the slow ones to build first, and after them, if what
// takes minutes is wanted, those that only such tests run. The linter is not among them: the
// Makefile builds it.
func Programs(long bool) []string {
	programs := []string{
		KubeAPIServer, KubeControllerManager, Kubectl, Etcd, Cosign3, Cosign2, Prometheus, Promtool, Helm,
		Fulcio, TimestampServer, Registry, Notation, Kustomize, Crane, Govulncheck, Actionlint,
	}
	if long {
		programs = append(programs, OldestKubeAPIServer, Helm3, KubectlSigstore, SLSAVerifier)
	}
	return programs
}

// kubernetes is the folder, under test/tools, of Kubernetes' programs, and oldest that of
// the oldest one.
const kubernetes, oldest = "kubernetes", "kubernetes-oldest"

// withoutClouds leaves out of Prometheus its clients of every cloud, which nothing here
// asks.
const withoutClouds = "remove_all_sd"

// home returns the folder under test/tools of the module that pins a program.
func home(name string) string {
	switch name {
	case KubeAPIServer, KubeControllerManager, Kubectl:
		return kubernetes
	case OldestKubeAPIServer:
		return oldest
	case Promtool:
		return Prometheus
	default:
		return name
	}
}

// Build returns the path of a program. If it has not been built yet it builds
// it, which takes from five seconds to three minutes, and is reported on standard
// error; tests that want it meanwhile wait, also those of other processes.
func Build(ctx context.Context, name string) (string, error) {
	t, err := find(name)
	if err != nil {
		return "", fmt.Errorf("build %s: %w", name, err)
	}
	program, err := t.build(ctx, os.Stderr)
	if err != nil {
		return "", fmt.Errorf("build %s %s: %w", name, t.version, err)
	}
	return program, nil
}

// tool is a program and the module that pins it.
type tool struct {
	name    string
	folder  string // of its module under test/tools
	path    string // of its main package
	version string // of the module which that package is in
	flags   string // for the linker
	tags    string // of the build
	id      string // changes with anything that a build depends on
}

// find reads a program's module.
func find(name string) (*tool, error) {
	folder, err := tools()
	if err != nil {
		return nil, err
	}
	t := &tool{name: name, folder: filepath.Join(folder, home(name)), flags: "-s -w"}
	var pinned [2][]byte
	for i, file := range []string{"go.mod", "go.sum"} {
		pinned[i], err = os.ReadFile(filepath.Join(t.folder, file))
		if err != nil {
			return nil, fmt.Errorf("no such program under test/tools: %w", err)
		}
	}
	module, err := modfile.Parse("go.mod", pinned[0], nil)
	if err != nil {
		return nil, err
	}
	t.path, err = mainPackage(module, name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.folder, err)
	}
	longest := ""
	for _, require := range module.Require {
		if path := require.Mod.Path; len(path) > len(longest) && strings.HasPrefix(t.path+"/", path+"/") {
			longest, t.version = path, require.Mod.Version
		}
	}
	parts := [][]byte{pinned[0], pinned[1], []byte(runtime.Version() + runtime.GOOS + runtime.GOARCH)}
	switch home(name) {
	case kubernetes, oldest:
		t.flags += versionFlags(t.version)
		parts = append(parts, []byte(t.flags))
	case Helm3:
		t.flags += helmFlags(t.version, module)
		parts = append(parts, []byte(t.flags))
	}
	if home(name) == Prometheus {
		t.tags = withoutClouds
		parts = append(parts, []byte(t.tags))
	}
	hash := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(hash, "%d:%s", len(part), part)
	}
	t.id = hex.EncodeToString(hash.Sum(nil))[:12]
	return t, nil
}

// mainPackage returns the only package that a module pins, or of several the one
// that is called like the program.
func mainPackage(module *modfile.File, name string) (string, error) {
	if len(module.Tool) == 1 {
		return module.Tool[0].Path, nil
	}
	for _, tool := range module.Tool {
		if path.Base(tool.Path) == name {
			return tool.Path, nil
		}
	}
	return "", fmt.Errorf("go.mod: %d tool directives, and none for %s", len(module.Tool), name)
}

// versionFlags are the linker flags of Kubernetes' release scripts: without
// them the programs take themselves for v0.0.0-master.
func versionFlags(version string) string {
	const variable = " -X k8s.io/component-base/version."
	numbers := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	return variable + "gitVersion=" + version + variable + "gitMajor=" + numbers[0] + variable + "gitMinor=" + numbers[1]
}

// helmFlags are the linker flags of Helm 3's release scripts: without them it renders
// for Kubernetes 1.20.
func helmFlags(version string, module *modfile.File) string {
	const packages = " -X helm.sh/helm/v3/"
	flags := packages + "internal/version.version=" + version
	for _, require := range module.Require {
		if require.Mod.Path == "k8s.io/client-go" {
			minor := strings.SplitN(require.Mod.Version, ".", 3)[1]
			flags += packages + "pkg/chartutil.k8sVersionMajor=1" + packages + "pkg/chartutil.k8sVersionMinor=" + minor
		}
	}
	return flags
}

// tools looks for test/tools in the working folder and those above it.
func tools() (string, error) {
	at, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		for _, below := range []string{"tools", filepath.Join("test", "tools")} {
			folder := filepath.Join(at, below)
			if _, err := os.Stat(filepath.Join(folder, Crane, "go.mod")); err == nil {
				return folder, nil
			}
		}
		parent := filepath.Dir(at)
		if parent == at {
			return "", errors.New("test/tools is neither here nor above; run in the checkout")
		}
		at = parent
	}
}

func (t *tool) build(ctx context.Context, log io.Writer) (string, error) {
	folder, unlock, err := Folder(ctx, t.name+"-"+t.version+"-"+t.id)
	if err != nil {
		return "", err
	}
	defer unlock()
	program := filepath.Join(folder, t.name)
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	start := time.Now()
	fmt.Fprintf(log, "peers: building %s %s into %s (once; may take minutes)\n", t.name, t.version, folder)
	// Under another name first: a build that is cut short leaves no program.
	unfinished := program + ".unfinished"
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags", t.tags, "-ldflags", t.flags, "-o", unfinished, t.path)
	build.Dir = t.folder
	// The toolchain of this process, not an older one that a module allows: the build cache
	// is of this one. The compiler needs no collector below the limit of memory.
	build.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off", "CGO_ENABLED=0",
		"GOTOOLCHAIN="+strings.Fields(runtime.Version())[0], "GOGC=off", "GOMEMLIMIT=4GiB")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, output)
	}
	if err := os.Rename(unfinished, program); err != nil {
		return "", err
	}
	fmt.Fprintf(log, "peers: built %s %s in %s\n", t.name, t.version, time.Since(start).Round(time.Second))
	return program, nil
}

// Folder returns a folder of the user's cache, the same one each time, for files that are made
// once and used by many runs. It is locked for other processes until unlock.
func Folder(ctx context.Context, name string) (folder string, unlock func(), err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", nil, err
	}
	folder = filepath.Join(cache, "quaymaster-tools", name)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", nil, err
	}
	unlock, err = lock(ctx, filepath.Join(folder, "lock"))
	return folder, unlock, err
}

// lock waits until no other process holds the lock.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	held := make(chan error, 1)
	go func() {
		for {
			err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
			if !errors.Is(err, syscall.EINTR) {
				held <- err
				return
			}
		}
	}()
	select {
	case err := <-held:
		if err != nil {
			_ = file.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		return func() { _ = file.Close() }, nil
	case <-ctx.Done():
		go func() { // once the lock comes, it is not needed any more
			err := <-held
			_ = errors.Join(err, file.Close())
		}()
		return nil, context.Cause(ctx)
	}
}
