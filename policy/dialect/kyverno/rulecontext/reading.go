package rulecontext

import (
	"errors"
	"strings"

	jp "github.com/kyverno/go-jmespath"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
	"github.com/quaymaster/quaymaster/policy/internal/admissionrequest"
)

// Reading is the subject fields that expressions read; the zero Reading has none.
type Reading struct {
	// beyond is the first thing that a bare subject does not have.
	beyond string
	// namespace: the object's namespace is read; operation: the operation of the request.
	namespace, operation bool
	// request: the request is read beyond its object and the identity of that.
	request bool
	// names are the members of the context that are read, as far as they are spelled out.
	names []string
	// misspelt is the first member of the request that is written in other cases.
	misspelt string
}

// BeyondObject reports whether a value depends on more of the request than the object and
// the operation: the user, the options, the old object. An unreadable expression does.
func (r Reading) BeyondObject() bool { return r.request }

// Expression adds the reads of an expression without braces.
func (r *Reading) Expression(source string) {
	if source != "" {
		r.text("{{ " + source + " }}")
	}
}

// Of returns the error for the fields that are read and a bare subject does not have.
func (r Reading) Of(s *policy.Subject) error {
	switch {
	case r.beyond != "":
		return match.Unknown(r.beyond)
	case r.namespace && s.Namespace == "":
		return match.Unknown("the object's namespace")
	}
	return nil
}

// Operation reports whether the operation is read. A bare subject may be created or changed.
func (r Reading) Operation() bool { return r.operation }

// NeedOperation records that the values which are read so far cannot be evaluated without the
// operation, if they read it.
func (r *Reading) NeedOperation() {
	if r.operation {
		r.note("request.operation")
	}
}

// Beyond returns the first thing that is read and a bare subject does not have; empty for none.
func (r Reading) Beyond() string { return r.beyond }

// OfObject reports whether more is read than the images and the namespace.
func (r Reading) OfObject() bool { return r.beyond != "" }

// Entries looks through the entries of a context.
func (r *Reading) Entries(list []Document) {
	for _, entry := range list {
		if c := entry.ConfigMap; c != nil {
			r.text(c.Name)
			r.text(c.Namespace)
		}
		if v := entry.Variable; v != nil {
			r.Value(v.Value)
			r.Value(v.Default)
			if v.Value == nil && v.JMESPath != "" {
				r.text("{{ " + v.JMESPath + " }}")
			} else {
				r.text(v.JMESPath)
			}
		}
		if a := entry.APICall; a != nil {
			r.call(a)
		}
		if i := entry.ImageRegistry; i != nil {
			r.text(i.Reference)
			r.text(i.JMESPath)
		}
		if g := entry.GlobalReference; g != nil {
			r.text(g.Name)
			r.text(g.JMESPath)
		}
	}
}

func (r *Reading) call(a *apiCallDocument) {
	r.text(a.URLPath)
	r.text(a.JMESPath)
	r.Value(a.Default)
	for _, d := range a.Data {
		r.text(d.Key)
		r.Value(d.Value)
	}
	if s := a.Service; s != nil {
		r.text(s.URL)
		r.text(s.CABundle)
		for _, h := range s.Headers {
			r.text(h.Key)
			r.text(h.Value)
		}
	}
}

func (r *Reading) note(what string) {
	if r.beyond == "" {
		r.beyond = what
	}
}

// Value looks through JSON for variables.
func (r *Reading) Value(v any) {
	switch v := v.(type) {
	case string:
		r.text(v)
	case []any:
		for _, item := range v {
			r.Value(item)
		}
	case map[string]any:
		for key, item := range v {
			r.text(key)
			r.Value(item)
		}
	}
}

// text looks through the variables of a string, as package variable reads it.
func (r *Reading) text(s string) {
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

// hole replaces a variable in a variable. As the name of a member it may be any.
const hole = "quaymasterHole"

// variable reads the variable that s begins with, with those inside it, and
// returns its length.
func (r *Reading) variable(s string) int {
	var source strings.Builder
	braces, literal := 0, false
	for i := 2; i < len(s); {
		switch rest := s[i:]; {
		case strings.HasPrefix(rest, "{{"):
			i += r.variable(rest)
			if literal {
				source.WriteByte('0') // JSON for any value
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

// expression adds the reads of an expression. One that cannot be analysed may read anything.
func (r *Reading) expression(source string) {
	node, err := parseExpression(source)
	if err != nil {
		r.request = true
		r.note("the target of the expression {{" + strings.TrimSpace(source) + "}}")
		return
	}
	r.whole(node, root)
}

// parseExpression calls the library and recovers from its panics: its parser reads past the end
// of some truncated expressions.
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

// whole records that the whole value of a node is used.
func (r *Reading) whole(node jp.ASTNode, at part) {
	if value := r.read(node, at); value != known {
		r.request = r.request || value == root || value == request
		r.note(string(value))
	}
}

// read returns which part of the context a node gives, evaluated on a part.
func (r *Reading) read(node jp.ASTNode, at part) part {
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
		base, names := r.read(c[0], at), len(r.names)
		value := r.read(c[1], base)
		if c[0].NodeType == jp.ASTCurrentNode {
			r.names = r.names[:names] // in a patch @ is the value that the object has there
		}
		return value
	case jp.ASTExpRef: // evaluated on the elements of a list
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

// member returns the value of a name in a part of the context. The images variable is unknown: it
// holds the role of every image of an object.
func (r *Reading) member(at part, name string) part {
	switch at {
	case known:
		return known
	case root:
		if !strings.Contains(name, hole) {
			r.names = append(r.names, name)
		}
		switch name {
		case "request":
			return request
		case "images":
			r.note(name)
		case "serviceAccountName", "serviceAccountNamespace":
			r.request = true
			r.note(name)
		}
		if strings.Contains(name, hole) {
			r.request = true
			r.note(string(root))
		}
		return known // the policy's own variable, or a statement's member
	case request:
		if r.misspelt == "" && admissionrequest.Misspelt(name) != "" {
			r.misspelt = name
		}
		switch name {
		case "object":
			return object
		case "operation":
			r.operation = true
			return known
		case "kind":
			return known
		case "name", "namespace":
		default:
			r.request = true
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
