package quaymaster_test

import (
	"go/ast"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// avoided are names that readers do not find, because the field has another one. They fail in
// their places and the folders below, as a package, as a file, and as a declared type, function,
// method, field, constant or variable. Parameters and local variables are free.
var avoided = []struct {
	places  string // folders; empty for all
	names   string
	instead string
	left    int // declarations that remain; only ever lowered
}{
	{"", "door doors doorway entrance entrances", "endpoint, handler", 0},
	{"", "couldNotLook unable", "indeterminate, error", 0},
	{"", "journey planned", "batch, object evaluation", 0},
	{"", "nobody somebody anybody whoever", "none, other, any", 0},
	{"", "harbor newHarbor harbour newHarbour", "env", 0},
	{"", "trier inquiry asking newAsking newInquiry", "dry run, request, pending request, claim query", 0},
	{"", "estate salvage salvaged paper papers goodbye goodbyeTimeout linger lingers crowd", "key material, partial parse, document, drain timeout, grace period, connection limit", 0},
	{"", "glass roads newRoads lanes calm newCalm", "break glass, transports, limiter, pacer", 0},
	{"gateway policy/rollout policy/catalog cmd/quaymaster/gateway", "held inForce ledger standing besides guard", "rollout, effective version, approval store, rollout check", 1},
	{"scan gateway cmd/quaymaster/gateway", "trial try trying", "dry run, impact analysis", 0},
	{"gate", "work works task tasks few deepen question questions exchange", "image evaluation, a map, claim query", 0},
	{"gate", "lasts last gone silent", "stale cache, last known good, negative entry, unresponsive", 1},
	{"gate", "place places home later placeless way ways", "evidence repository, primary, fallbacks, mirror plan", 0},
	{"gate", "former standing slipped spared firm byLast wanting", "old object, skipped, exempt, enforced, from stale cache, incomplete", 0},
	{"gate report", "recall recalls remember remembers forget", "restore, backfill, cache, evict", 1},
	{"report gateway cmd/quaymaster/gateway policy/convert", "said told untold tell teller word words", "writer, verdict, reported, status reporter, publish", 2},
	{"policy", "hearing party", "evaluation, image input", 0},
	{"policy/lang/cel", "worlds world trend contact late", "count range, monotonicity, library context, dynamic call", 0},
	{"policy verify", "price effort", "cost, limits, precheck", 0},
	{"policy/decide", "tally", "matching", 0},
	{"internal", "fair place places lane waiting", "fair queue, seats, wait time", 1},
	{"registry", "allowance book ticket width care turns sent home", "rate limit, limiter, permit, concurrency, round tripper, origin", 1},
	{"registry webhook", "ask question exchange", "request", 0},
	{"webhook", "deepen fold unfold", "reserve, release", 0},
	{"cluster gate", "patience", "release timeout, drain timeout", 0},
	{"policy/suite", "given staging bench", "fixtures, signing, evaluation", 0},
	{"cmd/quaymaster/gateway", "surroundings inTheCluster keeping duty sorter front reach certify rely read dial observe keep snapshots report show furnish", "dependencies, webhook state, leader task, router, server, and verb and object for a step", 0},
}

// TestNames holds the list of names that are not used.
func TestNames(t *testing.T) {
	declared := declarations(t)
	for _, row := range avoided {
		names := strings.Fields(row.names)
		for _, folder := range strings.Fields(row.places) {
			if entry, err := os.Stat(folder); err != nil || !entry.IsDir() {
				t.Errorf("the row of %q names the folder %s, which does not exist: %v", row.names, folder, err)
			}
		}
		var found []string
		for _, d := range declared {
			if row.places != "" && !slices.ContainsFunc(strings.Fields(row.places), d.below) {
				continue
			}
			if slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, d.name) }) {
				found = append(found, d.folder+": "+d.name)
			}
		}
		if len(found) < row.left {
			t.Errorf("%d declarations have a name of %q in %q: lower the bound %d", len(found), row.names, row.places, row.left)
		}
		if len(found) > row.left {
			t.Errorf("%d declarations have a name of %q in %q, want at most %d; better are: %s\n\t%s",
				len(found), row.names, row.places, row.left, row.instead, strings.Join(found, "\n\t"))
		}
	}
}

type declaration struct{ folder, name string }

func (d declaration) below(folder string) bool {
	return d.folder == folder || strings.HasPrefix(d.folder, folder+"/")
}

// declarations are the packages, files and declared names of the measured files.
func declarations(t *testing.T) []declaration {
	t.Helper()
	var all []declaration
	folders := map[string]bool{}
	for _, file := range load(t).files {
		folder := file.pkg()
		add := func(names ...*ast.Ident) {
			for _, name := range names {
				all = append(all, declaration{folder, name.Name})
			}
		}
		if !folders[folder] {
			folders[folder] = true
			all = append(all, declaration{folder, path.Base(folder)})
		}
		if base := strings.TrimSuffix(path.Base(file.path), ".go"); base != path.Base(folder) {
			all = append(all, declaration{folder, base})
		}
		for _, d := range file.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				add(d.Name)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.TypeSpec:
						add(s.Name)
					case *ast.ValueSpec:
						add(s.Names...)
					}
				}
			}
		}
		ast.Inspect(file.ast, func(n ast.Node) bool {
			var fields *ast.FieldList
			switch n := n.(type) {
			case *ast.StructType:
				fields = n.Fields
			case *ast.InterfaceType:
				fields = n.Methods
			default:
				return true
			}
			for _, field := range fields.List {
				add(field.Names...)
			}
			return true
		})
	}
	return all
}
