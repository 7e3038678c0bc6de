package packages_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"

	"github.com/quaymaster/quaymaster/attest/document"
	"github.com/quaymaster/quaymaster/attest/sbom"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/policy/lang/cel/packages"
)

// bill has a package of each sort that functions distinguish.
const bill = `{"bomFormat":"CycloneDX","specVersion":"1.6","components":[
	{"name":"lodash","version":"4.17.20","purl":"pkg:npm/lodash@4.17.20","licenses":[{"expression":"MIT"}]},
	{"name":"copyleft","version":"1.0.0","purl":"pkg:npm/copyleft@1.0.0","licenses":[{"expression":"GPL-3.0-only AND MIT"}]},
	{"name":"unnamed"}]}`

// evaluate evaluates an expression with the packages of a document.
func evaluate(t testing.TB, text, document string) (bool, *packages.Evaluation, error) {
	t.Helper()
	program, err := compile(t, text)
	if err != nil {
		t.Fatal(err)
	}
	e := packages.NewEvaluation()
	holds, err := program(e, read(t, document))
	return holds, e, err
}

func read(t testing.TB, text string) ref.Val {
	t.Helper()
	parsed := testkit.Must(sbom.Parse(testkit.Must(document.Decode([]byte(text)))(t)))(t)
	var list []*sbom.Package
	for i := range parsed.Packages {
		list = append(list, &parsed.Packages[i])
	}
	return packages.List(list)
}

// compile compiles an expression, and checks its calls.
func compile(t testing.TB, text string) (func(*packages.Evaluation, ref.Val) (bool, error), error) {
	t.Helper()
	env := testkit.Must(cel.NewEnv(cel.Options{Functions: packages.Functions()}))(t)
	scope := testkit.Must(env.NewScope())(t)
	program := testkit.Must(scope.Compile("test", text, celgo.BoolType))(t)
	return func(e *packages.Evaluation, list ref.Val) (bool, error) {
		calls := e.Calls()
		calls[packages.Name] = func(context.Context, []ref.Val) (any, error) { return list, nil }
		return program.Bool(t.Context(), scope.NewActivation(cel.Inputs{Functions: calls}))
	}, packages.Check(program)
}

func TestFunctions(t *testing.T) {
	const all = `packages("image", "sbom", [])`
	for _, c := range []struct{ reason, text, want, notes string }{
		{"the fields", all + `.map(p, p.name + " " + p.version + " " + p.purl + " " + p.license)[0] == "lodash 4.17.20 pkg:npm/lodash@4.17.20 MIT"`, "true", ""},
		{"no such field", all + `[0].group == ""`, "no such key", ""},
		{"a field that may be missing", `has(` + all + `[0].name) && !has(` + all + `[0].group)`, "true", ""},
		{"equality", all + `[0] == ` + all + `[0] && ` + all + `[0] != ` + all + `[1] && "name" in ` + all + `[0]`, "true", ""},
		{"as a map", all + `[0].size() == 4 && ` + all + `[0].exists(k, k == "license")`, "true", ""},
		{"the number", `size(` + all + `) == 3`, "true", ""},
		{"a package", all + `.exists(p, isPackage(p, "pkg:npm/lodash"))`, "true", "lodash 4.17.20 is pkg:npm/lodash"},
		{"a package with a range", all + `.exists(p, isPackage(p, "pkg:npm/lodash", ">=4.0.0|<4.17.21"))`, "true", "lodash 4.17.20 is pkg:npm/lodash >=4.0.0|<4.17.21"},
		{"a package with a range in the address", all + `.exists(p, isPackage(p, "pkg:npm/lodash?vers=vers:npm/<4.17.21"))`, "true", "lodash 4.17.20 is pkg:npm/lodash?vers=vers:npm/<4.17.21"},
		{"no such package", all + `.exists(p, isPackage(p, "pkg:npm/express"))`, "false", ""},
		{"no such version", all + `.exists(p, isPackage(p, "pkg:npm/lodash", "<4.17.20"))`, "false", ""},
		{"a package that may be meant", all + `.exists(p, isPackage(p, "pkg:npm/unnamed"))`, "no package URL", ""},
		{"a package that may be meant, in the other polarity", all + `.all(p, !isPackage(p, "pkg:npm/unnamed"))`, "no package URL", ""},
		{"a wrong address", all + `.exists(p, isPackage(p, "npm/" + p.name))`, "package URL", ""},
		{"a licence that suffices", `isLicensed(` + all + `[0], ["MIT"])`, "true", ""},
		{"a licence that does not suffice", `isLicensed(` + all + `[1], ["MIT"])`, "false", "copyleft 1.0.0: GPL-3.0-only AND MIT is not allowed"},
		{"no licence", `isLicensed(` + all + `[2], ["MIT"])`, "has no licence", ""},
		{"no licence, in the other polarity", `!isLicensed(` + all + `[2], ["MIT"])`, "has no licence", ""},
		{"a licence that is required", `requiresLicense(` + all + `[1], ["GPL-3.0-or-later"])`, "true", "copyleft 1.0.0: GPL-3.0-only AND MIT"},
		{"a licence that is not required", `requiresLicense(` + all + `[0], ["GPL-3.0-or-later"])`, "false", ""},
		{"a licence that is not known", `requiresLicense(` + all + `[2], ["GPL-3.0-or-later"])`, "has no licence", ""},
		{"a wrong licence in the list", `isLicensed(` + all + `[0], ["MIT", "GPLv3"])`, "is not in the SPDX licence list", ""},
		{"a list of other values", `isLicensed(` + all + `[0], [1])`, "as texts", ""},
		{"a map of the expression's own", `isLicensed({"name": "a", "license": "MIT"}, ["MIT"])`, "must be an element of packages()", ""},
		{"another map of the expression's own", `isPackage({"name": "lodash"}, "pkg:npm/lodash")`, "must be an element of packages()", ""},
	} {
		holds, e, err := evaluate(t, c.text, bill)
		if err != nil && !strings.Contains(err.Error(), c.want) || err == nil && fmt.Sprint(holds) != c.want {
			t.Errorf("%s: %v, %v; want %s", c.reason, holds, err, c.want)
		}
		if notes := strings.Join(e.Notes(), "; "); notes != c.notes {
			t.Errorf("%s: noted %q, want %q", c.reason, notes, c.notes)
		}
		e.Forget()
		if len(e.Notes()) > 0 {
			t.Errorf("%s: notes are kept", c.reason)
		}
	}
}

func TestCheck(t *testing.T) {
	for text, word := range map[string]string{
		`packages("i", "s", []).exists(p, isPackage(p, "pkg:npm/a"))`:                  "",
		`packages("i", "s", []).exists(p, isPackage(p, "pkg:npm/" + p.name))`:          "",
		`packages("i", "s", []).exists(p, isPackage(p, "pkg:npm/a", "<2"))`:            "",
		`packages("i", "s", []).exists(p, isPackage(p, "npm/a"))`:                      "package URL",
		`packages("i", "s", []).exists(p, isPackage(p, "pkg:npm/a@1", "<2"))`:          "it has a version",
		`packages("i", "s", []).exists(p, isPackage(p, "pkg:npm/a", "2||3"))`:          "range",
		`packages("i", "s", []).exists(p, isPackage(p, "pkg:generic/a", "<1"))`:        "order",
		`packages("i", "s", []).exists(p, !isPackage(p, "pkg:gem/a?vers=vers:npm/*"))`: "range",
	} {
		_, err := compile(t, text)
		if word == "" && err != nil || word != "" && (err == nil || !strings.Contains(err.Error(), word)) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestManyNotes: the notes of a document at the bound are bounded.
func TestManyNotes(t *testing.T) {
	holds, e, err := evaluate(t, `packages("i", "s", []).filter(p, isPackage(p, "pkg:npm/p")).size() == 10000`, atBound())
	if notes := e.Notes(); !holds || err != nil || len(notes) != 1000 || slices.Contains(notes[1:], notes[0]) {
		t.Errorf("%v, %v, %d notes", holds, err, len(notes))
	}
}

// atBound is a document with as many packages as the bound permits.
func atBound() string {
	list := make([]string, document.MaxEntries)
	for i := range list {
		list[i] = fmt.Sprintf(`{"name":"p","version":"1.%d.0","purl":"pkg:npm/p@1.%d.0","licenses":[{"expression":"MIT OR (Apache-2.0 AND BSD-%d-Clause)"}]}`, i, i, i%2+2)
	}
	return `{"bomFormat":"CycloneDX","specVersion":"1.6","components":[` + strings.Join(list, ",") + `]}`
}

// BenchmarkEvaluate evaluates conditions on every package of a document at the bound, which is parsed before.
func BenchmarkEvaluate(b *testing.B) {
	list := read(b, atBound())
	for name, text := range map[string]string{
		"package":  `!packages("i", "s", []).exists(p, isPackage(p, "pkg:npm/q"))`,
		"range":    `!packages("i", "s", []).exists(p, isPackage(p, "pkg:npm/p", ">=2.0.0"))`,
		"licences": `packages("i", "s", []).all(p, isLicensed(p, ["MIT", "ISC"]) && !requiresLicense(p, ["GPL-3.0-or-later"]))`,
	} {
		program := testkit.Must(compile(b, text))(b)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if holds, err := program(packages.NewEvaluation(), list); !holds || err != nil {
					b.Fatal(holds, err)
				}
			}
		})
	}
}
