package differential

import (
	"math/rand/v2"
	"testing"
)

// drawn is how many recipes must bring up every word at least once.
const drawn = 20_000

// TestEverythingIsDrawn holds that no fault, edit or question is in a list alone.
func TestEverythingIsDrawn(t *testing.T) {
	seen := map[string]int{}
	for i := range uint64(drawn) {
		r := draw(rand.New(rand.NewPCG(usualSeed, i)))
		for _, word := range []string{
			string(r.Format), "writer " + r.Writer, "key " + r.Key, "log " + r.Log, "fault " + r.Fault, "beside " + r.Beside, "by " + r.Ask.By,
			"annotation " + r.Ask.Annotation, "attestation " + r.Ask.Attestation,
		} {
			seen[word]++
		}
		for word, is := range map[string]bool{
			"plain": r.isPlain(), "wrongly": r.wrongly(), "odd": len(r.Oddities) > 0, "damaged": len(r.Damages) > 0, "bent": len(r.Bent) > 0,
			"moved": r.Ask.Moved, "stamped": r.Stamped, "without a log": r.Ask.IgnoreLog, "other hash": r.OtherHash,
		} {
			if is {
				seen[word]++
			}
		}
	}
	want := []string{"plain", "wrongly", "odd", "damaged", "bent", "moved", "stamped", "without a log", "other hash",
		"annotation right", "annotation value", "annotation name", "attestation own", "attestation other", "writer " + cosign2, "writer " + cosign3}
	for _, f := range allFormats {
		want = append(want, string(f))
	}
	for _, name := range keyKinds {
		want = append(want, "key "+name)
	}
	for _, name := range logs {
		want = append(want, "log "+name)
	}
	for name := range faults() {
		want = append(want, "fault "+name)
	}
	for _, name := range companions {
		want = append(want, "beside "+name)
	}
	for _, by := range []string{byKey, byStranger, byLeaf, byIdentity, byExpression, byPart, bySubject, byIssuer, byAuthority, byOther} {
		want = append(want, "by "+by)
	}
	for _, word := range want {
		if seen[word] == 0 {
			t.Errorf("%q is never drawn in %d recipes", word, drawn)
		}
	}
	if share := 100 * seen["plain"] / drawn; share < 20 || share > 60 {
		t.Errorf("nothing is wrong in %d%% of the recipes, want 20%% to 60%%", share)
	}
}

// TestEdits holds that each edit can do something.
func TestEdits(t *testing.T) {
	const text = `{"payload": "eyJfdHlwZSI6ICJ4IiwgImFCIjogWzEsIDJdfQ==", "signatureValue": {"a": "bcdefghijklmnopqrst", "b": 12}, "list": ["x", "y"]}`
	for what := range treeEdits() {
		done := false
		for at := range uint64(40) {
			root, err := parse([]byte(text))
			check(t, err)
			donor, err := parse([]byte(`{"payload": "eyJhIjogMX0=", "signatureValue": {"a": "other", "b": 13}, "list": ["z"]}`))
			check(t, err)
			for _, where := range root.paths("") {
				tree := root.clone()
				if applyTree(change{What: what, Where: where, At: at}, tree, donor) != "" && string(tree.text()) != string(root.text()) {
					done = true
				}
			}
		}
		if !done {
			t.Errorf("the edit %q changes nothing anywhere", what)
		}
	}
}

// TestTree holds that an unchanged document is written as it was read.
func TestTree(t *testing.T) {
	const text = `{"b":"<&>","a":1,"a":[true,null,{"c":1.50}],"d":{}}`
	tree, err := parse([]byte(text))
	check(t, err)
	if got := string(tree.text()); got != text {
		t.Errorf("%s became %s", text, got)
	}
	if n := tree.at("a.2.c"); n != nil { // the first member of the name counts
		t.Errorf("found %s below a number", n.text())
	}
	if _, err := parse([]byte(text + "{}")); err == nil {
		t.Error("two values are one document")
	}
}
