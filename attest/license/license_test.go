package license_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/attest/license"
	"github.com/quaymaster/quaymaster/internal/testkit"
)

func ExampleList_Suffices() {
	allowed, _ := license.ParseList([]string{"MIT", "Apache-2.0"})
	choice, _ := license.Parse("MIT OR GPL-3.0-only")
	both, _ := license.Parse("MIT AND GPL-3.0-only")
	fmt.Println(allowed.Suffices(choice))
	fmt.Println(allowed.Suffices(both))
	// Output:
	// true <nil>
	// false <nil>
}

// answers are those of Suffices and Required.
type answers struct{ suffices, required string }

func asked(t *testing.T, list license.List, text string) answers {
	t.Helper()
	e := testkit.Must(license.Parse(text))(t)
	word := func(holds bool, err error) string {
		if err != nil && !errors.Is(err, license.ErrUnknown) {
			t.Errorf("%s: %v", text, err)
		}
		return map[bool]string{true: "unknown", false: fmt.Sprint(holds)}[err != nil]
	}
	return answers{word(list.Suffices(e)), word(list.Required(e))}
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		reason, list, text string
		want               answers
	}{
		{"listed", "MIT", "MIT", answers{"true", "true"}},
		{"not listed", "MIT", "Apache-2.0", answers{"false", "false"}},
		{"in another case", "MIT", "mit", answers{"true", "true"}},
		{"an empty list", "", "MIT", answers{"false", "false"}},
		{"an alternative that is listed", "MIT", "MIT OR GPL-3.0-only", answers{"true", "false"}},
		{"a part that is listed", "GPL-3.0-only", "MIT AND GPL-3.0-only", answers{"false", "true"}},
		{"every part", "MIT, GPL-3.0-only", "MIT AND GPL-3.0-only", answers{"true", "true"}},
		{"every alternative", "MIT, GPL-3.0-only", "MIT OR GPL-3.0-only", answers{"true", "true"}},
		{"AND binds closer than OR", "MIT", "MIT OR GPL-3.0-only AND ISC", answers{"true", "false"}},
		{"parentheses", "MIT", "(MIT OR GPL-3.0-only) AND ISC", answers{"false", "false"}},
		{"lower case operators", "MIT, ISC", "(mit or gpl-3.0-only) and isc", answers{"true", "true"}},
		{"or later, of one that is listed", "GPL-2.0-only", "GPL-2.0-or-later", answers{"true", "false"}},
		{"or later, of a later one that is listed", "GPL-3.0-only", "GPL-2.0-or-later", answers{"true", "false"}},
		{"or later, of every version", "GPL-2.0-only, GPL-3.0-only", "GPL-2.0-or-later", answers{"true", "true"}},
		{"or later, of the last version", "GPL-3.0-only", "GPL-3.0-or-later", answers{"true", "true"}},
		{"or later, of an earlier one that is listed", "GPL-2.0-only", "GPL-3.0-or-later", answers{"false", "false"}},
		{"or later in the list", "GPL-2.0-or-later", "GPL-3.0-only", answers{"true", "true"}},
		{"or later in both", "GPL-2.0-or-later", "GPL-3.0+", answers{"true", "true"}},
		{"or later in the list, of a later one", "GPL-3.0-or-later", "GPL-2.0-only", answers{"false", "false"}},
		{"or later in both, of an earlier one", "GPL-3.0-or-later", "GPL-2.0-or-later", answers{"true", "false"}},
		{"or later of another licence", "GPL-2.0-or-later", "LGPL-3.0-only", answers{"false", "false"}},
		{"a plus", "Apache-2.0", "Apache-1.1+", answers{"true", "false"}},
		{"a deprecated name", "GPL-2.0-only", "GPL-2.0", answers{"true", "true"}},
		{"a deprecated name with a plus", "GPL-2.0-or-later", "GPL-2.0+", answers{"true", "true"}},
		{"an exception that is listed", "GPL-2.0-only WITH Classpath-exception-2.0", "GPL-2.0-only WITH Classpath-exception-2.0", answers{"true", "true"}},
		{"an exception that is not listed", "GPL-2.0-only", "GPL-2.0-only WITH Classpath-exception-2.0", answers{"false", "true"}},
		{"no exception where one is listed", "GPL-2.0-only WITH Classpath-exception-2.0", "GPL-2.0-only", answers{"false", "false"}},
		{"an unknown exception", "MIT", "GPL-2.0-only WITH Odd-exception", answers{"unknown", "unknown"}},
		{"a deprecated name with an exception", "GPL-2.0-only", "GPL-2.0-with-classpath-exception", answers{"unknown", "unknown"}},
		{"no assertion", "MIT", "NOASSERTION", answers{"unknown", "unknown"}},
		{"none", "MIT", "NONE", answers{"unknown", "unknown"}},
		{"an unknown name", "MIT", "GPLv3", answers{"unknown", "unknown"}},
		{"an unknown alternative", "MIT", "MIT OR GPLv3", answers{"true", "unknown"}},
		{"an unknown part", "MIT", "MIT AND GPLv3", answers{"unknown", "true"}},
		{"an unknown part and one that is not listed", "MIT", "ISC AND GPLv3", answers{"false", "unknown"}},
		{"an unknown alternative and one that is not listed", "MIT", "ISC OR GPLv3", answers{"unknown", "false"}},
		{"a reference that is listed", "LicenseRef-Own", "LicenseRef-Own", answers{"true", "true"}},
		{"a reference that is not listed", "MIT", "LicenseRef-Own", answers{"unknown", "unknown"}},
	} {
		var names []string
		if c.list != "" {
			names = strings.Split(c.list, ", ")
		}
		if got := asked(t, testkit.Must(license.ParseList(names))(t), c.text); got != c.want {
			t.Errorf("%s: %s in [%s]: %+v, want %+v", c.reason, c.text, c.list, got, c.want)
		}
	}
	if _, err := testkit.Must(license.ParseList([]string{"MIT"}))(t).Suffices(license.Expression{}); !errors.Is(err, license.ErrUnknown) {
		t.Errorf("no licence: %v", err)
	}
}

func TestAll(t *testing.T) {
	list := testkit.Must(license.ParseList([]string{"MIT"}))(t)
	mit, gpl := testkit.Must(license.Parse("MIT"))(t), testkit.Must(license.Parse("GPL-3.0-only OR ISC"))(t)
	if holds, err := list.Suffices(license.All([]license.Expression{mit})); !holds || err != nil {
		t.Errorf("one: %v, %v", holds, err)
	}
	if holds, err := list.Suffices(license.All([]license.Expression{mit, gpl})); holds || err != nil {
		t.Errorf("two: %v, %v", holds, err)
	}
}

func TestRefused(t *testing.T) {
	for reason, text := range map[string]string{
		"nothing": "", "no part": "MIT AND", "no operator": "MIT ISC", "only an operator": "OR", "no end": "(MIT", "an end too many": "MIT)", "no exception": "MIT WITH",
		"an expression as an exception": "MIT WITH (ISC)", "prose": "The MIT License, see COPYING", "mixed case": "MIT And ISC",
		"too long": strings.Repeat("MIT AND ", license.MaxLength/8) + "MIT", "too deep": strings.Repeat("(", 65) + "MIT" + strings.Repeat(")", 65),
	} {
		if e, err := license.Parse(text); err == nil {
			t.Errorf("%s: %+v", reason, e)
		}
	}
	for reason, list := range map[string][]string{
		"an unknown licence": {"MIT", "GPLv3"}, "an expression": {"MIT OR ISC"}, "nothing": {""}, "too many": make([]string, license.MaxEntries+1),
		"a deprecated name with an exception": {"GPL-2.0-with-classpath-exception"}, "an unknown exception": {"MIT WITH Odd"},
	} {
		if got, err := license.ParseList(list); err == nil {
			t.Errorf("a list with %s: %+v", reason, got)
		}
	}
	deep := strings.Repeat("(", 64) + "MIT" + strings.Repeat(")", 64)
	if _, err := license.Parse(deep); err != nil {
		t.Errorf("as deep as the bound: %v", err)
	}
}

func FuzzAnswers(f *testing.F) {
	f.Add("MIT OR (GPL-2.0+ WITH Classpath-exception-2.0 AND LicenseRef-a)")
	f.Add("mit and isc or NOASSERTION")
	list, err := license.ParseList([]string{"MIT", "GPL-2.0-or-later", "LicenseRef-a"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := license.Parse(text)
		if err != nil {
			return
		}
		first, err := list.Suffices(e)
		if again, other := list.Suffices(license.All([]license.Expression{e, e})); again != first || (err == nil) != (other == nil) {
			t.Errorf("%q: %v, %v, and twice %v, %v", text, first, err, again, other)
		}
		_, _ = list.Required(e) // must end, without a panic
	})
}
