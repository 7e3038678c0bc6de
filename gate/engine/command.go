package engine

import (
	"strings"

	"github.com/quaymaster/quaymaster/policy"
)

// Quote quotes s as a word for a shell (POSIX.1-2017, Shell Command Language, 2.2).
func Quote(s string) string {
	if s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@%+=,", r)
	}) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// ExplainFromFolders returns the command that explains why the policies of folders deny an image
// of a namespace.
func ExplainFromFolders(folders []string) func(namespace string, image policy.Image) string {
	words := []string{"quaymaster", "explain"}
	for _, folder := range folders {
		words = append(words, "--policy", Quote(folder))
	}
	command := strings.Join(words, " ")
	return func(namespace string, image policy.Image) string { return command + explained(namespace, image) }
}

// ExplainFromCluster is the same for the policies of a cluster, read by kubectl from the
// resources that the API server serves now. Without the cluster's mirrors a copy would be
// evaluated under its own name alone; an image that is no copy needs none.
func ExplainFromCluster(resources func() []string) func(namespace string, image policy.Image) string {
	return func(namespace string, image policy.Image) string {
		command := "kubectl get " + strings.Join(resources(), ",") + " -A -o yaml | quaymaster explain --policy /dev/stdin"
		if !image.Copy.IsZero() {
			command += " --mirrors <(kubectl get registrymirrors.quaymaster.dev -o yaml)" // of bash and zsh
		}
		return command + explained(namespace, image)
	}
}

func explained(namespace string, image policy.Image) string {
	written := image.Ref.Written()
	if !image.Copy.IsZero() {
		written = image.Copy.Written()
	}
	text := ""
	if namespace != "" {
		text = " --namespace " + Quote(namespace)
	}
	if strings.HasPrefix(written, "-") {
		text += " --"
	}
	return text + " " + Quote(written)
}
