package differential

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/test/peers"
)

// tables plays the example of each row: a difference that no longer exists, or
// has no reason, has no place in a table.
func (c *crowd) tables(t *testing.T) {
	for name, table := range map[string][]difference{"accepted": exceptions(), "refused": stricter()} {
		for i, row := range table {
			t.Run(row.What, func(t *testing.T) {
				if len(row.Why) < 20 || len(row.Who) == 0 || (name == "refused") != (row.Code != "") || name == "accepted" && len(row.Says) == 0 {
					t.Errorf("the row is not complete: %+v", row)
				}
				c.shows(t, fmt.Sprintf("%s-%d", name, i), &row)
			})
		}
	}
}

// shows holds that a row's examples show its difference with each program that it names.
func (c *crowd) shows(t *testing.T, name string, row *difference) {
	shown := map[string]bool{}
	for n, example := range append([]recipe{row.Example}, row.Others...) {
		s := newScene(t, c, fmt.Sprintf("%s-%d", name, n), &example)
		p := s.ask(s.play())
		for _, who := range row.Who {
			if _, asked := p.theirs[who]; !asked {
				continue
			}
			shown[who] = true
			if !row.explains(p, who) {
				t.Errorf("the example does not show the difference with %s:\n%s%s", who, p, s.shown())
			}
		}
	}
	for _, who := range row.Who {
		if !shown[who] {
			t.Errorf("no example asks %s", who)
		}
	}
}

var update = flag.Bool("update", false, "write docs/engineering/differential.md")

const opening = `# Differences from cosign and notation

Images are signed, damaged and verified at random, and every case goes to
cosign 2, cosign 3 or notation, and to quaymaster: no image that one of them
refuses is accepted here, and none that all of them accept is refused, except for
these tables. They are written from the test, which fails for a
difference without a row, and for a row without a difference.

The target ` + "`make differential CASES=1000 SEED=7`" + ` runs more cases than the tests do. Without numbers it draws a seed and prints it. A failure prints the case, the
content of the registry, and the command that repeats it.

A case draws a format (cosign's tags, bundles as referrers, notation's JWS and
COSE), signatures or attestations, keys (ECDSA on P-256, P-384 and P-521, RSA,
Ed25519) alone or with a certificate, log entries of both Rekors, timestamps,
annotations, now and then cosign itself as the writer; then one of %d ways of
signing wrongly, or edits (%d kinds) of the document before it is signed, of
the stored blob, or of its manifest; and then the trusted signers and the required claims.
A difference after several edits is explained by the effect of each of them alone.
`

// thePage is docs/engineering/differential.md.
func thePage() string {
	var b strings.Builder
	fmt.Fprintf(&b, opening, len(faults()), len(treeEdits())+len(textEdits())+len(pemEdits()))
	b.WriteString("\n## Accepted here, refused there\n\n| What | Refused by | Why it is accepted |\n|---|---|---|\n")
	for _, row := range exceptions() {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", row.What, people(row.Who), row.Why)
	}
	b.WriteString("\n## Refused here, accepted there\n\n| What | Accepted by | Code | Why it is refused |\n|---|---|---|---|\n")
	for _, row := range stricter() {
		fmt.Fprintf(&b, "| %s | %s | `%s` | %s |\n", row.What, people(row.Who), row.Code, row.Why)
	}
	return b.String()
}

// people names programs for a reader.
func people(programs []string) string {
	names := make([]string, len(programs))
	for i, name := range programs {
		names[i] = strings.NewReplacer("cosign", "cosign ").Replace(name)
	}
	return strings.Join(names, ", ")
}

// TestPage holds that docs/engineering/differential.md lists the tables as they are.
func TestPage(t *testing.T) {
	folder, err := peers.Checkout()
	check(t, err)
	path, want := filepath.Join(folder, "docs", "engineering", "differential.md"), thePage()
	if *update {
		check(t, os.WriteFile(path, []byte(want), 0o644))
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%s differs from the tables; run: go test ./differential -run TestPage -update (%v)", path, err)
	}
}
