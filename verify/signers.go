package verify

import (
	"cmp"
	"slices"
)

// Counted assigns signers to members, each of which is met by any of its facts: one signer counts
// for one member, however many accept it. It returns for each member the position of the fact that
// counts, -1 for none, and the number of counted members, which is the greatest possible.
func Counted(members [][]Fact) (positions []int, count int) {
	signers := signersOf(members)
	owner := map[int]int{} // by signer
	for member := range members {
		if assign(member, signers, owner, map[int]bool{}) {
			count++
		}
	}
	positions = make([]int, len(members))
	for member, list := range signers {
		positions[member] = slices.IndexFunc(list, func(signer int) bool {
			by, taken := owner[signer]
			return taken && by == member
		})
	}
	return positions, count
}

// assign finds a signer for a member by an augmenting path.
func assign(member int, signers [][]int, owner map[int]int, tried map[int]bool) bool {
	for _, signer := range signers[member] {
		if tried[signer] {
			continue
		}
		tried[signer] = true
		if other, taken := owner[signer]; !taken || assign(other, signers, owner, tried) {
			owner[signer] = member
			return true
		}
	}
	return false
}

// signersOf numbers the signers of facts. Facts with a common name are of one signer: a key may have
// several certificates, and an identity several keys.
func signersOf(members [][]Fact) [][]int {
	var parent []int
	root := func(n int) int {
		for parent[n] != n {
			n = parent[n]
		}
		return n
	}
	first := map[string]int{} // by name
	signers := make([][]int, len(members))
	for i, facts := range members {
		for _, fact := range facts {
			n := len(parent)
			parent = append(parent, n)
			for _, name := range fact.Signer.names() {
				if known, ok := first[name]; ok {
					parent[root(n)] = root(known)
				} else {
					first[name] = n
				}
			}
			signers[i] = append(signers[i], n)
		}
	}
	for _, list := range signers {
		for i, n := range list {
			list[i] = root(n)
		}
	}
	return signers
}

// names are the key and the identity; at least one.
func (s Signer) names() []string {
	key, identity := cmp.Or(s.Key, s.KeyFingerprint), s.ID
	if identity == "" && s.Issuer+s.Subject != "" || key == "" {
		identity = cmp.Or(s.ID, s.Issuer+"\x00"+s.Subject)
	}
	var names []string
	if key != "" {
		names = append(names, "key "+key)
	}
	if identity != "" {
		names = append(names, "identity "+identity)
	}
	return names
}

// sameSigner reports whether two signers have a common name.
func sameSigner(a, b Signer) bool {
	others := b.names()
	return slices.ContainsFunc(a.names(), func(name string) bool { return slices.Contains(others, name) })
}
