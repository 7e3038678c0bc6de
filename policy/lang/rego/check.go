package rego

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// capabilities are the functions that compute and nothing else.
func capabilities(clock bool) *ast.Capabilities {
	all := ast.CapabilitiesForThisVersion()
	all.AllowNet = []string{} // none, where nil would be all
	replaced := stricter()
	all.Builtins = slices.DeleteFunc(all.Builtins, func(b *ast.Builtin) bool {
		_, is := replaced[b.Name]
		return is || forbidden(b, clock)
	})
	return all
}

func forbidden(b *ast.Builtin, clock bool) bool {
	for _, prefix := range []string{"http.", "net.", "opa.", "rego.", "providers.", "rand.", "uuid.", "io.", "graphql.", "crypto.x509."} {
		if strings.HasPrefix(b.Name, prefix) {
			return true
		}
	}
	switch b.Name {
	case clockName:
		return !clock
	case "trace", "print", "internal.print", "strings.render_template", "json.match_schema", "json.verify_schema":
		return true
	case "bits.lsh", "graph.reachable_paths", "numbers.range_step", "regex.globs_match", "yaml.unmarshal":
		return true // a small input can have a huge output, and they cannot be interrupted
	}
	return b.Nondeterministic
}

const clockName = "time.now_ns"

func readsClock(m *ast.Module) (reads bool) {
	ast.WalkRefs(m, func(r ast.Ref) bool {
		reads = reads || r.String() == clockName
		return false
	})
	return reads
}

// check refuses a policy before its first evaluation.
func check(m *ast.Module, options Options) error {
	if m.Package.Path.String() != "data."+module {
		return fmt.Errorf("want package %s, found %s", module, strings.TrimPrefix(m.Package.Path.String(), "data."))
	}
	if n := comprehensions(m); n > maxComprehensions {
		return fmt.Errorf("%d comprehensions are nested, and %d are the bound", n, maxComprehensions)
	}
	if !slices.ContainsFunc(m.Rules, func(r *ast.Rule) bool { return r.Head.Ref().String() == answer }) {
		return fmt.Errorf("it has no rule %s", answer)
	}
	return errors.Join(checkReferences(m, options), readsData(m), checkPatterns(m))
}

// readsData refuses references to documents that the policy does not define: there are no others, so
// that "not data.sigstore.denied" holds for everything where the rule is called deny.
func readsData(m *ast.Module) (err error) {
	defines := func(name ast.Value) bool {
		return slices.ContainsFunc(m.Rules, func(r *ast.Rule) bool { return r.Head.Ref()[0].Value.String() == string(name.(ast.String)) })
	}
	ast.WalkTerms(m, func(t *ast.Term) bool {
		ref, _ := t.Value.(ast.Ref)
		if len(ref) < 2 || !ref.HasPrefix(ast.DefaultRootRef) {
			return false
		}
		own := ref.HasPrefix(m.Package.Path)
		if own && len(ref) > len(m.Package.Path) {
			if name := ref[len(m.Package.Path)]; ast.IsConstant(name.Value) {
				_, text := name.Value.(ast.String)
				own = text && defines(name.Value)
			}
		}
		if !own {
			err = fmt.Errorf("%s: there is no %s: data has the rules of this policy alone, as data.%s.%s", t.Location, ref, module, answer)
		}
		return false
	})
	return err
}

// comprehensions returns how deep they are nested below a node.
func comprehensions(node any) int {
	deepest := 0
	below := func(parts ...any) bool {
		for _, part := range parts {
			deepest = max(deepest, 1+comprehensions(part))
		}
		return true
	}
	ast.NewGenericVisitor(func(n any) bool {
		switch n := n.(type) {
		case *ast.ArrayComprehension:
			return below(n.Term, n.Body)
		case *ast.SetComprehension:
			return below(n.Term, n.Body)
		case *ast.ObjectComprehension:
			return below(n.Key, n.Value, n.Body)
		case *ast.Every:
			return below(n.Domain, n.Body)
		}
		return false
	}).Walk(node)
	return deepest
}

// checkReferences refuses references to possibly absent or misspelt members: input as a whole,
// members with computed names, and the absent and misspelt ones.
func checkReferences(m *ast.Module, options Options) (err error) {
	var seen, followed int
	named := len(options.Absent) > 0 || len(options.Members) > 0
	ast.WalkTerms(m, func(t *ast.Term) bool {
		if v, _ := t.Value.(ast.Var); v.Equal(ast.InputRootDocument.Value) {
			seen++
		}
		ref, _ := t.Value.(ast.Ref)
		if len(ref) < 2 || !ref.HasPrefix(ast.InputRootRef) {
			return false
		}
		followed++
		name, ok := ref[1].Value.(ast.String)
		switch {
		case !ok && named:
			err = fmt.Errorf("%s: %s may refer to %s: write out the name", t.Location, ref, absentNames(options))
		case len(options.Members) > 0 && !slices.Contains(options.Members, string(name)) && !slices.Contains(options.Absent, string(name)):
			err = fmt.Errorf("%s: there is no %s: input has %s", t.Location, ref, strings.Join(options.Members, ", "))
		case slices.Contains(options.Absent, string(name)):
			err = fmt.Errorf("%s: %s is not available: %s", t.Location, ref, options.AbsentWhy)
		default:
			err = errors.Join(err, misnamed(t.Location, ref, options.Names))
		}
		return false
	})
	if err == nil && seen > followed && named {
		err = fmt.Errorf("input as a whole may refer to %s: name its members", absentNames(options))
	}
	return err
}

// membersOf returns the members of the input that a policy names.
func membersOf(m *ast.Module) (members []string) {
	ast.WalkRefs(m, func(r ast.Ref) bool {
		if len(r) > 1 && r.HasPrefix(ast.InputRootRef) {
			if name, ok := r[1].Value.(ast.String); ok {
				members = append(members, string(name))
			}
		}
		return false
	})
	return members
}

// misnamed refuses a reference to a name that is not there: "not" would hold for everything.
func misnamed(at *ast.Location, ref ast.Ref, names map[string][]string) error {
	var path string
	for _, term := range ref[1:] {
		name, ok := term.Value.(ast.String)
		known, closed := names[strings.TrimPrefix(path, ".")]
		if ok && closed && !slices.Contains(known, string(name)) {
			return fmt.Errorf("%s: there is no %s: want one of %s", at, ref, strings.Join(known, ", "))
		}
		path += "." + string(name)
		if !ok {
			return nil
		}
	}
	return nil
}

// absentNames describes, for messages, the members that input lacks.
func absentNames(options Options) string {
	if len(options.Absent) == 0 {
		return "a member that is not there"
	}
	return strings.Join(options.Absent, " or ") + ", which is not available"
}

// depth returns how deep the brackets of a text are nested, those in texts and
// comments left out.
func depth(text string) int {
	deepest, now := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"' && text[i] != '\n'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '`':
			for i++; i < len(text) && text[i] != '`'; i++ {
			}
		case '#':
			for i++; i < len(text) && text[i] != '\n'; i++ {
			}
		case '(', '[', '{':
			now++
			deepest = max(deepest, now)
		case ')', ']', '}':
			now--
		}
	}
	return deepest
}
