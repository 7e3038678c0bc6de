package decide

import "github.com/quaymaster/quaymaster/verify"

// matching counts members of a requirement that are met by different signers. One signer counts for
// one member, however many members accept it; one member counts once, however many signers match
// it. A nested set is a member like any other: it uses up one of its signers.
type matching struct {
	members []met
}

// met is a member that is met, by the facts of an authority or of a nested set.
type met struct {
	// facts are all that meet the member; any of them may count for it.
	facts []verify.Fact
	// set are the facts by which a nested set is met; nil for an authority.
	set []verify.Fact
}

func (t *matching) add(m met) { t.members = append(t.members, m) }

// all returns the facts of every member. Each of them may count for the set in another set: which
// ones are left over depends on the other members of that.
func (t *matching) all() []verify.Fact {
	if len(t.members) == 1 {
		return t.members[0].facts
	}
	var facts []verify.Fact
	for _, m := range t.members {
		facts = append(facts, m.facts...)
	}
	return facts
}

// isOne reports whether one member is all that is met, as nearly always: it has a
// signer of its own.
func (t *matching) isOne() bool { return len(t.members) == 1 && len(t.members[0].facts) > 0 }

// count returns the greatest number of members with a signer of their own.
func (t *matching) count() int {
	if t.isOne() {
		return 1
	}
	_, count := t.match()
	return count
}

// facts returns one fact for each counted authority, and all of a counted set's.
func (t *matching) facts() []verify.Fact {
	switch {
	case t.isOne() && t.members[0].set != nil:
		return t.members[0].set
	case t.isOne():
		return t.members[0].facts[:1:1]
	}
	var facts []verify.Fact
	positions, _ := t.match()
	for i, at := range positions {
		switch member := t.members[i]; {
		case at < 0:
		case member.set != nil:
			facts = append(facts, member.set...)
		default:
			facts = append(facts, member.facts[at])
		}
	}
	return facts
}

// match returns for each member the position of the fact that counts, -1 for none, and their number.
func (t *matching) match() (positions []int, count int) {
	members := make([][]verify.Fact, len(t.members))
	for i, member := range t.members {
		members[i] = member.facts
	}
	return verify.Counted(members)
}
