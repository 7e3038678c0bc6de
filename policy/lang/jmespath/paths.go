package jmespath

import (
	"slices"
	"strings"

	jp "github.com/kyverno/go-jmespath"
)

// maxReadPath is the depth to which reads below a member of the data are distinguished. Unknown
// values lie at most two names deep, as request.userInfo.uid does.
const maxReadPath = 4

// readPaths returns the paths of member names that a query reads in its data. Each ends at a
// value that is used as a whole; the empty path is all of the data.
func readPaths(ast jp.ASTNode) [][]string {
	var r reads
	r.whole(ast, place{inside: true})
	return r.paths
}

type reads struct{ paths [][]string }

// place is where a node is evaluated.
type place struct {
	path   []string
	inside bool // false: on nothing of the data that can be named
}

// whole records that the whole value of a node is used.
func (r *reads) whole(node jp.ASTNode, at place) {
	if value := r.read(node, at); value.inside {
		r.paths = append(r.paths, value.path)
	}
}

// read looks through a node and returns the place that it gives.
func (r *reads) read(node jp.ASTNode, at place) place {
	c := node.Children
	switch node.NodeType {
	case jp.ASTLiteral, jp.ASTEmpty:
		return place{}
	case jp.ASTIdentity, jp.ASTCurrentNode:
		return at
	case jp.ASTIndex, jp.ASTSlice: // an element of the value
		if at.inside {
			r.paths = append(r.paths, at.path)
		}
		return place{}
	case jp.ASTField:
		return r.member(node, at)
	case jp.ASTSubexpression, jp.ASTPipe, jp.ASTIndexExpression:
		return r.read(c[1], r.read(c[0], at))
	case jp.ASTExpRef: // is evaluated on what a list holds
		r.whole(c[0], place{})
		return place{}
	case jp.ASTProjection, jp.ASTValueProjection, jp.ASTFilterProjection:
		r.whole(c[0], at)
		for _, child := range c[1:] {
			r.whole(child, place{})
		}
		return place{}
	}
	for _, child := range c { // functions, operators, lists and hashes
		r.whole(child, at)
	}
	return place{}
}

// member returns the place of a member; a hole may name any.
func (r *reads) member(node jp.ASTNode, at place) place {
	name, ok := node.Value.(string)
	switch {
	case !at.inside:
		return place{}
	case !ok || strings.ContainsRune(name, markOpen) || len(at.path) >= maxReadPath:
		r.paths = append(r.paths, at.path)
		return place{}
	}
	return place{path: append(at.path[:len(at.path):len(at.path)], name), inside: true}
}

// Paths returns what a query reads in its data, as paths of names; the empty one is all of it.
func (q *Query) Paths() [][]string { return q.paths }

// readMembers returns, of each member of the data of which not the whole is read, the
// members that are.
func readMembers(paths [][]string) map[string][]string {
	members := map[string][]string{}
	for _, path := range paths {
		if len(path) == 0 {
			return nil
		}
		if len(path) > 1 && !slices.Contains(members[path[0]], path[1]) {
			members[path[0]] = append(members[path[0]], path[1])
		}
	}
	for _, path := range paths {
		if len(path) == 1 {
			delete(members, path[0])
		}
	}
	return members
}

// unknown returns why a query cannot read a member that is not known as a whole.
func (q *Query) unknown(name string, d Deferred) error {
	for _, path := range q.paths {
		if len(path) > 0 && path[0] != name {
			continue
		}
		if len(path) > 0 {
			path = path[1:]
		}
		if err := unknown(d, path); err != nil {
			return err
		}
	}
	return nil
}

// unknown returns why the value at a path in a Deferred is not known.
func unknown(d Deferred, path []string) error {
	if p, ok := d.(Partial); ok {
		return p.Unknown(path)
	}
	return nil
}
