package peers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/mod/modfile"
)

// The modules under test/tools/definitions, of which nothing is built.
const (
	CertManager        = "github.com/cert-manager/cert-manager"
	PrometheusOperator = "github.com/prometheus-operator/prometheus-operator"
	Kyverno            = "github.com/kyverno/kyverno"
	PolicyController   = "github.com/sigstore/policy-controller"
	ManifestSigstore   = "github.com/sigstore/k8s-manifest-sigstore"
)

// definitionsFolder is where they are pinned.
const definitionsFolder = "definitions"

// Module returns the folder of a module's files, as its authors released them, at the version
// that is pinned. It is downloaded once, a few megabytes, without its dependencies.
func Module(ctx context.Context, path string) (string, error) {
	root, err := tools()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(root, definitionsFolder)
	content, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil {
		return "", fmt.Errorf("find the module %s: %w", path, err)
	}
	module, err := modfile.Parse("go.mod", content, nil)
	if err != nil {
		return "", fmt.Errorf("find the module %s: %w", path, err)
	}
	for _, require := range module.Require {
		if require.Mod.Path == path {
			return download(ctx, folder, require.Mod.String())
		}
	}
	return "", fmt.Errorf("the module %s is not pinned in %s", path, folder)
}

func download(ctx context.Context, folder, module string) (string, error) {
	command := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	command.Dir, command.Env = folder, append(os.Environ(), "GOWORK=off")
	var errs bytes.Buffer
	command.Stderr = &errs
	said, err := command.Output()
	var answer struct{ Dir, Error string }
	if problem := json.Unmarshal(said, &answer); err == nil {
		err = problem
	}
	if err != nil || answer.Dir == "" {
		return "", fmt.Errorf("download %s: %w\n%s%s", module, err, answer.Error, errs.String())
	}
	return answer.Dir, nil
}
