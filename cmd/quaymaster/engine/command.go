package engine

import (
	"strings"

	"github.com/quaymaster/quaymaster/policy"
)

// Quote makes a word of s for a shell (POSIX.1-2017, Shell Command Language, 2.2).
func Quote(s string) string {
	if s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@%+=,", r)
	}) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// ExplainFromFolders returns the command that shows how an image of a namespace
// came to be denied by the policies of folders.
func ExplainFromFolders(folders []string) func(namespace string, image policy.Image) string {
	words := []string{"quaymaster", "explain"}
	for _, folder := range folders {
		words = append(words, "--policy", Quote(folder))
	}
	command := strings.Join(words, " ")
	return func(namespace string, image policy.Image) string { return command + explained(namespace, image) }
}

// ExplainFromCluster is the same for the policies of a cluster, which kubectl gets,
// of the resources that there are just now. Without its mirrors a copy would be
// judged under its own name alone; what is no copy needs none.
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
