package policy

import "github.com/quaymaster/quaymaster/verify"

// tally counts members of a requirement that are met by different signers: one
// signer counts for one member, however many of them would believe it, and one
// member counts once, however many signers it has.
type tally struct {
	members [][]verify.Fact // the facts of each met member
	sets    int             // nested sets, which count as themselves
	setUsed []verify.Fact
}

func newTally() *tally { return &tally{} }

func (t *tally) addAuthority(facts []verify.Fact) { t.members = append(t.members, facts) }

func (t *tally) addSet(facts []verify.Fact) {
	t.sets++
	t.setUsed = append(t.setUsed, facts...)
}

// count returns the greatest number of members with a signer of their own.
func (t *tally) count() int { return t.sets + len(t.match()) }

// facts returns one fact for each counted member.
func (t *tally) facts() []verify.Fact {
	var facts []verify.Fact
	matched := t.match()
	for i, member := range t.members {
		for _, fact := range member {
			if owner, ok := matched[signerID(fact)]; ok && owner == i {
				facts = append(facts, fact)
				break
			}
		}
	}
	return append(facts, t.setUsed...)
}

// match returns a largest matching of signers to members, by augmenting paths.
func (t *tally) match() map[string]int {
	owner := map[string]int{}
	for i := range t.members {
		t.assign(i, owner, map[string]bool{})
	}
	return owner
}

func (t *tally) assign(i int, owner map[string]int, tried map[string]bool) bool {
	for _, fact := range t.members[i] {
		id := signerID(fact)
		if tried[id] {
			continue
		}
		tried[id] = true
		if other, taken := owner[id]; !taken || t.assign(other, owner, tried) {
			owner[id] = i
			return true
		}
	}
	return false
}

func signerID(f verify.Fact) string {
	return f.Signer.KeyFingerprint + "\x00" + f.Signer.Issuer + "\x00" + f.Signer.Subject
}
