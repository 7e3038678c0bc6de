package kyverno

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	jp "github.com/kyverno/go-jmespath"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/wildcard"
)

// Of a bare subject only some images and their namespace are known. What a rule
// asks beyond that is neither yes nor no: the rule cannot be asked.

// unknownHere is what a rule asks for and nobody knows.
func unknownHere(what string) error {
	return fmt.Errorf("only images and their namespace are known here, and the rule asks for %s; the admission webhook knows the whole object", what)
}

// matchesBare is matches for a bare subject. What is known decides first, so that
// a filter which cannot match is a no, whatever else it asks. The subject is a
// pod of which nobody knows whether it is created or changed: a rule about either
// means it, and an exclusion means it only if it is for both.
func (f filter) matchesBare(s *policy.Subject, excluding bool) (bool, error) {
	d := f.Resources
	if len(f.kinds) > 0 && !slices.ContainsFunc(f.kinds, func(k kindSelector) bool { return k.matchesBare(s, excluding) }) {
		return false, nil
	}
	creates, updates := slices.Contains(d.Operations, "CREATE"), slices.Contains(d.Operations, "UPDATE")
	if len(d.Operations) > 0 && (!creates && !updates || excluding && creates != updates) {
		return false, nil
	}
	if s.Namespace != "" {
		if len(d.Namespaces) > 0 && !wildcard.Any(d.Namespaces, s.Namespace) {
			return false, nil
		}
		if matched, err := f.matchesNamespace(s); err != nil || !matched {
			return false, err
		}
	}
	return true, f.asksMore(s)
}

// asksMore returns what of a bare subject the filter asks for in vain.
func (f filter) asksMore(s *policy.Subject) error {
	d := f.Resources
	named := func(patterns []string) bool { return len(patterns) > 0 && !slices.Contains(patterns, "*") }
	switch {
	case s.Namespace == "" && (named(d.Namespaces) || d.NamespaceSelector != nil):
		return unknownHere("the object's namespace")
	case named(f.names):
		return unknownHere("the object's name")
	case len(d.Annotations) > 0:
		return unknownHere("the object's annotations")
	case d.Selector != nil && len(d.Selector.MatchLabels)+len(d.Selector.MatchExpressions) > 0:
		return unknownHere("the object's labels")
	case len(f.Subjects)+len(f.Roles)+len(f.ClusterRoles) > 0:
		return unknownHere("who made the object")
	}
	return nil
}

// matchesBare: the images may be those of containers that are added later.
func (s kindSelector) matchesBare(subject *policy.Subject, excluding bool) bool {
	if s.matches(subject) || excluding {
		return s.matches(subject)
	}
	later := *subject
	later.Subresource = "ephemeralcontainers"
	return s.matches(&later)
}

// findsElsewhere reports whether the rule looks for images at places that a bare
// subject does not have, so that what it finds there says nothing.
func (r *compiledRule) findsElsewhere(s *policy.Subject) bool {
	return s.Bare && len(r.extractors[s.Kind]) > 0
}

// asksMore returns what of a bare subject the rule's expressions ask for in vain.
func (r *compiledRule) asksMore(s *policy.Subject) error {
	switch {
	case !s.Bare:
		return nil
	case r.findsElsewhere(s):
		return unknownHere("images at places of its own (imageExtractors)")
	case s.Namespace == "" && r.namespaced:
		return unknownHere("the object's namespace, being a rule of one")
	case !r.asks:
		return nil
	}
	return r.reads.of(s)
}

// reading is what expressions read of the subject.
type reading struct {
	// beyond is the first thing that a bare subject does not have.
	beyond string
	// namespace: the object's namespace is read.
	namespace bool
}

func (r reading) of(s *policy.Subject) error {
	switch {
	case r.beyond != "":
		return unknownHere(r.beyond)
	case r.namespace && s.Namespace == "":
		return unknownHere("the object's namespace")
	}
	return nil
}

// readingOf looks through all expressions of a rule, whether or not they would be
// evaluated.
func readingOf(doc rule) reading {
	var r reading
	r.value(doc.Preconditions)
	for _, entry := range doc.Context {
		if c := entry.ConfigMap; c != nil {
			r.text(c.Name)
			r.text(c.Namespace)
		}
		if v := entry.Variable; v != nil {
			r.value(v.Value)
			r.value(v.Default)
			if v.Value == nil && v.JMESPath != "" {
				r.text("{{ " + v.JMESPath + " }}")
			}
		}
	}
	for _, entry := range doc.VerifyImages {
		r.value(entry)
	}
	return r
}

func (r *reading) note(what string) {
	if r.beyond == "" {
		r.beyond = what
	}
}

// value looks through JSON for variables.
func (r *reading) value(v any) {
	switch v := v.(type) {
	case string:
		r.text(v)
	case []any:
		for _, item := range v {
			r.value(item)
		}
	case map[string]any:
		for key, item := range v {
			r.text(key)
			r.value(item)
		}
	}
}

// text looks through the variables of a string, as package variable reads it.
func (r *reading) text(s string) {
	for i := 0; i < len(s); {
		switch rest := s[i:]; {
		case strings.HasPrefix(rest, `\{{`):
			i += 3
		case strings.HasPrefix(rest, "{{"):
			i += r.variable(rest)
		default:
			i++
		}
	}
}

// hole stands for a variable in a variable. As the name of a member it may be any.
const hole = "quaymasterHole"

// variable reads the variable that s begins with, with those inside it, and
// returns its length.
func (r *reading) variable(s string) int {
	var source strings.Builder
	braces, literal := 0, false
	for i := 2; i < len(s); {
		switch rest := s[i:]; {
		case strings.HasPrefix(rest, "{{"):
			i += r.variable(rest)
			if literal {
				source.WriteByte('0') // JSON, whatever is filled in
			} else {
				source.WriteString(hole)
			}
			continue
		case strings.HasPrefix(rest, "}}") && braces == 0:
			r.expression(source.String())
			return i + 2
		case rest[0] == '{':
			braces++
		case rest[0] == '}' && braces > 0:
			braces--
		case rest[0] == '`':
			literal = !literal
		}
		source.WriteByte(s[i])
		i++
	}
	return len(s) // never closed, and refused when it is compiled
}

// expression looks at what an expression reads. One that cannot be seen through
// may read anything.
func (r *reading) expression(source string) {
	node, err := parseExpression(source)
	if err != nil {
		r.note("what the expression {{" + strings.TrimSpace(source) + "}} names")
		return
	}
	r.whole(node, root)
}

// parseExpression calls the library, whose parser looks past the end of some
// truncated expressions.
func parseExpression(source string) (node jp.ASTNode, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("the expression is incomplete")
		}
	}()
	return jp.NewParser().Parse(source)
}

// part is a part of the context in which not every member is known.
type part string

const (
	known      part = "" // as it is, or nothing of the subject's
	root       part = "the whole context"
	request    part = "request"
	object     part = "request.object"
	objectMeta part = "request.object.metadata"
)

// whole says that the value of a node is used as it is.
func (r *reading) whole(node jp.ASTNode, at part) {
	if value := r.read(node, at); value != known {
		r.note(string(value))
	}
}

// read returns which part of the context a node gives, evaluated on a part.
func (r *reading) read(node jp.ASTNode, at part) part {
	c := node.Children
	switch node.NodeType {
	case jp.ASTLiteral, jp.ASTIndex, jp.ASTSlice, jp.ASTEmpty:
		return known
	case jp.ASTIdentity, jp.ASTCurrentNode:
		return at
	case jp.ASTField:
		name, _ := node.Value.(string)
		return r.member(at, name)
	case jp.ASTSubexpression, jp.ASTPipe:
		return r.read(c[1], r.read(c[0], at))
	case jp.ASTExpRef: // is evaluated on what a list holds
		r.whole(c[0], known)
		return known
	case jp.ASTProjection, jp.ASTValueProjection, jp.ASTFilterProjection, jp.ASTIndexExpression:
		r.whole(c[0], at)
		for _, child := range c[1:] {
			r.whole(child, known)
		}
		return known
	}
	for _, child := range c { // functions, operators, lists and hashes
		r.whole(child, at)
	}
	return known
}

// member returns what a name gives in a part of the context. The images variable
// is not known: it says of all images of an object in which role each stands.
func (r *reading) member(at part, name string) part {
	switch at {
	case known:
		return known
	case root:
		switch name {
		case "request":
			return request
		case "images", "serviceAccountName", "serviceAccountNamespace":
			r.note(name)
		}
		if strings.Contains(name, hole) {
			r.note(string(root))
		}
		return known // the policy's own variable, or a statement's member
	case request:
		switch name {
		case "object":
			return object
		case "kind", "operation":
			return known
		}
	case object:
		switch name {
		case "metadata":
			return objectMeta
		case "kind", "apiVersion":
			return known
		}
	}
	if name == "namespace" && (at == request || at == objectMeta) {
		r.namespace = true
		return known
	}
	r.note(string(at) + "." + strings.ReplaceAll(name, hole, "{{...}}"))
	return known
}
