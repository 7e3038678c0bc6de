package quaymaster_test

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// TestDocComments holds that a comment which begins with a name begins with that of its
// declaration: after a renaming, the comment of the old name leads a reader to nothing.
func TestDocComments(t *testing.T) {
	for _, f := range load(t).files {
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				checkDoc(t, f.path, d.Doc, d.Name)
			case *ast.GenDecl:
				checkDocs(t, f.path, d)
			}
		}
	}
}

func checkDocs(t *testing.T, path string, d *ast.GenDecl) {
	t.Helper()
	var all []*ast.Ident
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			checkDoc(t, path, spec.Doc, spec.Name)
			all = append(all, spec.Name)
		case *ast.ValueSpec:
			checkDoc(t, path, spec.Doc, spec.Names...)
			all = append(all, spec.Names...)
		}
	}
	if d.Tok != token.IMPORT {
		checkDoc(t, path, d.Doc, all...)
	}
}

func checkDoc(t *testing.T, path string, doc *ast.CommentGroup, names ...*ast.Ident) {
	t.Helper()
	var declared []string
	for _, name := range names {
		declared = append(declared, name.Name)
	}
	if first := foreignName(doc.Text(), declared); first != "" {
		t.Errorf("%s: the comment of %s begins with %s", path, strings.Join(declared, ", "), first)
	}
}

// foreignName returns the first word of a comment if it is written as a name and is none of
// those that the comment is of.
func foreignName(comment string, names []string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(comment), " ")
	first = strings.TrimRight(first, ",:.\n")
	if first == "" || !unicode.IsLower([]rune(first)[0]) || slices.Contains(names, first) {
		return ""
	}
	return first
}

func TestForeignName(t *testing.T) {
	for _, row := range []struct{ comment, names, want, reason string }{
		{"next returns the first.", "next", "", "its own name"},
		{"tellNext returns the first.", "next", "tellNext", "the name before a renaming"},
		{"get, of all, is first.", "set get", "", "one of several"},
		{"The journal's own bounds.", "minSize", "", "a sentence"},
		{"", "next", "", "no comment"},
	} {
		if got := foreignName(row.comment, strings.Fields(row.names)); got != row.want {
			t.Errorf("%s: %q, want %q", row.reason, got, row.want)
		}
	}
}
