package source

import (
	"fmt"
	"strings"
)

// Guard confines the sources of a policy. The zero Guard is of a policy of the cluster that names no Secret.
type Guard struct {
	own   string
	names map[string]bool
}

// NewGuard returns the Guard of a rule: of the namespace of its policy, which is empty for one of the cluster,
// and for the text of the rule, as decoded JSON.
func NewGuard(namespace string, rule ...any) Guard {
	g := Guard{own: namespace, names: map[string]bool{}}
	for _, part := range rule {
		g.add(part)
	}
	return g
}

// add adds the names in texts. A name in the text is the author's of the policy; any other one may be the
// author's of the trigger.
func (g Guard) add(value any) {
	switch v := value.(type) {
	case string:
		for _, word := range strings.FieldsFunc(v, func(c rune) bool { return !isNameCharacter(c) }) {
			g.names[word] = true
		}
	case []any:
		for _, item := range v {
			g.add(item)
		}
	case map[string]any:
		for key, item := range v {
			g.add(key)
			g.add(item)
		}
	}
}

// isNameCharacter reports whether a character may be in the name of an object, or in the value of a label.
func isNameCharacter(c rune) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '.' || c == '_'
}

// Allows returns the reason why a source may not be read.
func (g Guard) Allows(of Ref) error {
	if g.own != "" && of.Namespace != g.own {
		return fmt.Errorf("a policy of namespace %s reads its own namespace alone", g.own)
	}
	if !of.IsSecret() {
		return nil
	}
	const why = "which the policy does not name: with a name from elsewhere, the author of a trigger could choose any Secret that the gateway may read: write the name in the policy"
	switch {
	case of.Namespace == "":
		return fmt.Errorf("Secrets of all namespaces at once: name one") //nolint:staticcheck // a kind begins the message
	case of.Namespace != g.own && !g.names[of.Namespace]:
		return fmt.Errorf("Secrets of namespace %s, %s", of.Namespace, why) //nolint:staticcheck // the same
	case of.Name != "" && !g.names[of.Name]:
		return fmt.Errorf("Secret %s, %s", of.Name, why) //nolint:staticcheck // the same
	}
	for _, term := range strings.Split(of.Labels, ",") { // a policy of kyverno.io has no variables in it
		if _, value, _ := strings.Cut(term, "="); value != "" && !g.names[strings.TrimPrefix(value, "=")] {
			return fmt.Errorf("Secrets with the label %s, %s", term, why) //nolint:staticcheck // the same
		}
	}
	return nil
}

// checkCopied refuses the credentials of a service account, and of a node that joins: with a copy, its reader
// could act as the account.
func checkCopied(object map[string]any) error {
	if object["kind"] != "Secret" || object["apiVersion"] != "v1" {
		return nil
	}
	switch kind := object["type"]; kind {
	case "kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token":
		return fmt.Errorf("a Secret of type %s is not copied: its reader could act as its owner", kind)
	}
	return nil
}
