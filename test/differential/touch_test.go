package differential

import (
	"slices"
	"strings"
	"testing"
)

// touch is one change: its kind, and its place.
type touch struct{ what, where string }

// asTouch reads what applyTree and damage say of a change: "null at config.digest",
// "body > null at payload", "predicateType > byte after", "media type > application/cose".
func asTouch(said string) touch {
	place, rest, isDamage := strings.Cut(said, " > ")
	if !isDamage {
		place, rest = "", said
	}
	what, where, hasPath := strings.Cut(rest, " at ")
	switch {
	case !isDamage:
		return touch{what, where}
	case hasPath:
		return touch{what, place + " > " + where}
	default:
		return touch{what, place}
	}
}

// touches reports whether something was changed, and every change fits.
func (p *played) touches(fits func(touch) bool) bool {
	some := false
	for _, said := range p.did {
		if said == "" { // nothing there could be changed so
			continue
		}
		some = true
		if !fits(asTouch(said)) {
			return false
		}
	}
	return some
}

// bentAt holds where the manifest was changed at some places, and at no others. A
// place that ends with a star matches all that begin so.
func bentAt(places ...string) func(*played) bool {
	return func(p *played) bool {
		return len(p.recipe.Bent) > 0 && p.touches(func(t touch) bool { return isAt(t.where, places) })
	}
}

// damagedAt holds where the stored content was changed at some places alone.
func damagedAt(places ...string) func(*played) bool {
	return func(p *played) bool {
		return len(p.recipe.Damages) > 0 && p.touches(func(t touch) bool { return isAt(t.where, places) })
	}
}

// oddAt holds where the document was changed at some places alone before it was signed.
func oddAt(places ...string) func(*played) bool {
	return func(p *played) bool {
		return len(p.recipe.Oddities) > 0 && p.touches(func(t touch) bool { return isAt(t.where, places) })
	}
}

// done holds where nothing but these was done, wherever.
func done(what ...string) func(*played) bool {
	return func(p *played) bool {
		return p.touches(func(t touch) bool { return slices.Contains(what, t.what) })
	}
}

func isAt(where string, places []string) bool {
	return slices.ContainsFunc(places, func(place string) bool {
		if before, all := strings.CutSuffix(place, "*"); all {
			return strings.HasPrefix(where, before)
		}
		return where == place
	})
}

// at least one of them holds.
func or(all ...func(*played) bool) func(*played) bool {
	return func(p *played) bool {
		return slices.ContainsFunc(all, func(one func(*played) bool) bool { return one(p) })
	}
}

// and holds where all do.
func and(all ...func(*played) bool) func(*played) bool {
	return func(p *played) bool {
		return !slices.ContainsFunc(all, func(one func(*played) bool) bool { return !one(p) })
	}
}

func not(one func(*played) bool) func(*played) bool {
	return func(p *played) bool { return !one(p) }
}

func ofNotation(p *played) bool { return p.recipe.Format.isNotation() }

func attests(p *played) bool { return p.recipe.Attests }

func asksSignature(p *played) bool { return p.recipe.Ask.Attestation == "" }

func asksAnnotation(p *played) bool { return p.recipe.Ask.Annotation != "" }

func logIgnored(p *played) bool { return p.recipe.Ask.IgnoreLog }

// stampedInLog holds where a timestamp and a log entry travel along.
func stampedInLog(p *played) bool { return p.recipe.Stamped && p.recipe.Log != "none" }

func asksStamps(p *played) bool { return p.recipe.Ask.Stamps }

// noStamps holds where no timestamp travels along any more.
func noStamps(p *played) bool {
	const at = "body > verificationMaterial.timestampVerificationData"
	return or(hasFault(noStamp), and(damagedAt(at, at+".rfc3161Timestamps", at+".rfc3161Timestamps.0"), done("null", "empty", "left out")))(p)
}

// noPromise holds where a log entry has no promise any more.
func noPromise(p *played) bool {
	const at = "body > verificationMaterial.tlogEntries.0.inclusionPromise"
	return or(hasFault(withoutPromise), and(damagedAt(at, at+".signedEntryTimestamp"), done("null", "left out")))(p)
}

func asksBy(who string) func(*played) bool {
	return func(p *played) bool { return p.recipe.Ask.By == who }
}

func isBeside(which string) func(*played) bool {
	return func(p *played) bool { return p.recipe.Beside == which }
}

// hasFault holds for some faults.
func hasFault(names ...string) func(*played) bool {
	return func(p *played) bool { return slices.Contains(names, p.recipe.Fault) }
}

func isFormat(f format) func(*played) bool {
	return func(p *played) bool { return p.recipe.Format == f }
}

// TestTouch holds that a row which names a place explains no change elsewhere.
func TestTouch(t *testing.T) {
	for said, want := range map[string]touch{
		"null at config.digest":                 {"null", "config.digest"},
		"body > null at payload":                {"null", "body > payload"},
		"predicateType > byte after":            {"byte after", "predicateType"},
		"media type > application/cose":         {"application/cose", "media type"},
		"body > twice":                          {"twice", "body"},
		"in capitals, beside at subject.0.name": {"in capitals, beside", "subject.0.name"},
	} {
		if got := asTouch(said); got != want {
			t.Errorf("%q is %+v, want %+v", said, got, want)
		}
	}
	bent := &played{recipe: &recipe{Bent: []change{{}, {}}}}
	for _, row := range []struct {
		reason string
		did    []string
		want   bool
	}{
		{"one of the places", []string{"null at config.digest"}, true},
		{"both, the second at the other", []string{"null at config.digest", "empty at schemaVersion"}, true},
		{"the second came to nothing", []string{"null at config.digest", ""}, true},
		{"another place", []string{"null at layers.0.digest"}, false},
		{"one that begins with the name of a place", []string{"null at schemaVersionOfOurs"}, false},
		{"the second elsewhere", []string{"null at config.digest", "null at layers"}, false},
		{"the same name within the stored content", []string{"body > null at config.digest"}, false},
		{"nothing was changed", []string{""}, false},
	} {
		bent.did = row.did
		if got := bentAt("config*", "schemaVersion")(bent); got != row.want {
			t.Errorf("%s: %t, want %t", row.reason, got, row.want)
		}
	}
	bent.did = []string{"null at config.digest"}
	if damagedAt("config*")(bent) || oddAt("config*")(bent) {
		t.Error("a bent manifest is taken for a damaged or odd document")
	}
}
