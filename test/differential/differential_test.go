package differential

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"
)

// cases are how many make test plays, and usualSeed is which.
const (
	cases     = 100
	usualSeed = 1
)

// enough is how many cases say something of the generator, and the bounds are what share
// of them everybody must accept, and everybody refuse: one that makes rubbish alone, or
// no harm, would prove nothing.
const (
	enough                       = 80
	fewestAccepted, mostAccepted = 25, 70 // percent
	fewestRefused                = 20
)

// number reads an environment variable.
func number(t *testing.T, name string, unless uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return unless
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%s: want a number", name, text)
	}
	return n
}

// TestDifferential musters the programs once, for that takes a while.
func TestDifferential(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs cosign, which takes minutes")
	}
	c := newCrowd(t, number(t, "SEED", usualSeed))
	t.Run("tables", c.tables)
	t.Run("wrong", c.wrong)
	t.Run("cases", c.cases)
}

// cases draws cases and asks everybody.
func (c *crowd) cases(t *testing.T) {
	from, to := uint64(0), number(t, "CASES", cases)
	if os.Getenv("CASE") != "" {
		from = number(t, "CASE", 0)
		to = from + 1
	}
	harmed := os.Getenv("HARMED") != "" // leaves out what nothing was done to
	t.Logf("SEED=%d: cases %d to %d", c.seed, from, to-1)
	sum, start := &tally{}, time.Now()
	for i := from; i < to; i++ {
		r := draw(rand.New(rand.NewPCG(c.seed, i)))
		if harmed && !r.isHarmed() {
			continue
		}
		s := newScene(t, c, fmt.Sprint(i), r)
		sum.count(s.judge(fmt.Sprintf("SEED=%d CASE=%d go test -count=1 -run TestDifferential/cases ./differential", c.seed, i)))
		s.forget()
		if every := uint64(500); (i+1)%every == 0 {
			t.Logf("%d cases: %s", i+1, sum)
		}
	}
	t.Logf("%d cases in %s: %s", to-from, time.Since(start).Round(time.Second), sum)
	if !harmed {
		sum.check(t)
	}
}

// tally counts how cases ended.
type tally struct {
	accepted, refused int // by everybody
	weWere            int // strict alone
	theyWere          int // one of them, for a reason that we do not share
}

func (s *tally) count(p *played) {
	agree := true
	for who, theirs := range p.theirs {
		if theirs.Accepted == p.mine.Accepted {
			continue
		}
		agree = false
		if p.untold[who] {
			return // an error, and reported
		}
	}
	switch {
	case agree && p.mine.Accepted:
		s.accepted++
	case agree:
		s.refused++
	case p.mine.Accepted:
		s.theyWere++
	default:
		s.weWere++
	}
}

func (s *tally) String() string {
	return fmt.Sprintf("%d accepted by all, %d refused by all, %d refused by us alone, %d accepted by us and not by all",
		s.accepted, s.refused, s.weWere, s.theyWere)
}

// check holds the generator to its shares.
func (s *tally) check(t *testing.T) {
	t.Helper()
	all := s.accepted + s.refused + s.weWere + s.theyWere
	if all < enough {
		return
	}
	if share := 100 * s.accepted / all; share < fewestAccepted || share > mostAccepted {
		t.Errorf("%d%% of the cases are accepted by all, want %d%% to %d%%", share, fewestAccepted, mostAccepted)
	}
	if share := 100 * s.refused / all; share < fewestRefused {
		t.Errorf("%d%% of the cases are refused by all, want %d%% or more", share, fewestRefused)
	}
}

// judge plays a case and holds the answers to the rules.
func (s *scene) judge(replay string) *played {
	s.t.Helper()
	p := s.ask(s.play())
	say := func(rule string, more ...any) {
		s.t.Errorf("%s: %s\n%s\n%s%s", s.name, fmt.Sprintf(rule, more...), replay, p, s.shown())
	}
	for who, theirs := range p.theirs {
		p.untold[who] = theirs.Accepted != p.mine.Accepted && explained(p, who) == nil && !s.comesOfOne(p, who)
		switch {
		case !p.untold[who]:
		case p.mine.Accepted:
			say("WE ACCEPT WHAT %s REFUSES, and no row of the table has a reason", who)
		default:
			say("we refuse what %s accepts, and no row of the table has a reason", who)
		}
		if s.recipe.isPlain() && !theirs.Accepted {
			say("nothing is wrong, and %s refuses", who)
		}
	}
	switch {
	case s.recipe.wrongly() && p.mine.Accepted:
		say("WE ACCEPT A WRONG QUESTION")
	case s.recipe.isPlain() && !p.mine.Accepted:
		say("nothing is wrong, and we refuse")
	}
	return p
}

// ask asks everybody at once.
func (s *scene) ask(image string) *played {
	s.t.Helper()
	p := &played{recipe: s.recipe, did: s.did, theirs: map[string]answer{}, untold: map[string]bool{}}
	var group sync.WaitGroup
	var failure error
	mine := s.asOurs(image)
	group.Go(func() { p.mine, failure = s.judges.ask(s.t.Context(), mine) })
	answers := map[string]*answer{}
	for _, name := range s.recipe.judges() {
		a := &answer{}
		answers[name] = a
		if name == notation {
			*a = s.askNotation(image)
			continue
		}
		args, env := s.asCosign(name, image)
		group.Go(func() { *a = s.judges.cosign(s.t.Context(), name, args, env) })
	}
	group.Wait()
	s.check(failure)
	for name, a := range answers {
		p.theirs[name] = *a
	}
	return p
}

// judges are the other programs that read the format.
func (r *recipe) judges() []string {
	if r.Format.isNotation() {
		return []string{notation}
	}
	return []string{cosign2, cosign3}
}

// String writes the case and all answers.
func (p *played) String() string {
	text := fmt.Sprintf("  %s\n  did %q\n  quaymaster %.600s\n", p.recipe, p.did, p.mine)
	for who, theirs := range p.theirs {
		text += fmt.Sprintf("  %s %.600s\n", who, theirs)
	}
	return text
}

// shown is what lies in the registry.
func (s *scene) shown() string {
	var b strings.Builder
	for _, one := range s.stored {
		text := string(one)
		if !utf8.Valid(one) {
			text = "base64 " + base64.StdEncoding.EncodeToString(one)
		}
		fmt.Fprintf(&b, "  stored: %s\n", text)
	}
	return b.String()
}
