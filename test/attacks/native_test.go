package attacks

import (
	"maps"
	"strings"

	"github.com/quaymaster/quaymaster/gateway/native/record"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
)

// native has a form for the API server.
const native = "{apiVersion: policies.kyverno.io/v1, kind: ValidatingPolicy, metadata: {name: no-host-network, uid: UID, generation: 1}, spec: {" +
	"matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}, " +
	"validations: [{expression: '!object.spec.?hostNetwork.orValue(false)'}]}}"

// stored compiles a document of a policy.
func (s *scene) stored(document string) *policy.Policy {
	s.t.Helper()
	s.policies(document)
	all := testkit.Must(s.wire().state.Snapshot(s.t.Context()))(s.t).Policies.Policies()
	if len(all) != 1 {
		s.t.Fatalf("%d policies", len(all))
	}
	return all[0]
}

// leftOut counts whether a record has the webhooks leave a policy out.
func (s *scene) leftOut(data map[string]string, p *policy.Policy, want bool, why string) {
	s.t.Helper()
	states, err := record.DecodeStates(data)
	got := err == nil && states.Enforces(p.ID(), p.Hash)
	if got != want {
		s.t.Errorf("%s: left out of the webhooks: %t (%v)", why, got, err)
	}
	if got {
		s.admissions++
	} else {
		s.refusals++
	}
}

func nativeAttacks() []attack {
	row := func(name, what, source string, play func(*scene)) attack {
		return attack{name, what, source, only(library), play}
	}
	return []attack{
		row("native-record-of-another-document", "The API server evaluates a policy, and the webhooks leave it out. It is deleted and created again, or changed: the native form of the earlier one is no reason to leave this one out. It has its webhook.", "records by name", func(s *scene) {
			first := s.stored(strings.Replace(native, "UID", "u1", 1))
			data := testkit.Must(record.States{first.ID(): {Hash: first.Hash, Native: true, Objects: "o"}}.Encode())(s.t)
			s.leftOut(data, first, true, "the policy that is native")
			again := s.stored(strings.Replace(native, "UID", "u2", 1))
			s.leftOut(data, again, false, "created again, with the same text")
			changed := s.stored(strings.NewReplacer("UID", "u1", "generation: 1", "generation: 2", "hostNetwork", "hostPID").Replace(native))
			s.leftOut(data, changed, false, "changed")
		}),
		row("native-record-that-is-ambiguous", "A record says twice which side enforces a policy, says that it is native and why it is not, or has fields that this version does not know. Nothing of it is believed: every policy has its webhook.", "records that readers understand differently", func(s *scene) {
			p := s.stored(native)
			state := `{"hash": "` + p.Hash + `", "native": true, "objects": "o"}`
			data := map[string]string{record.Key: `{"` + p.ID() + `": ` + state + `}`}
			s.leftOut(data, p, true, "a record")
			for why, text := range map[string]string{
				"twice":            `{"` + p.ID() + `": ` + state + `, "` + p.ID() + `": ` + state + `}`,
				"both":             `{"` + p.ID() + `": ` + strings.Replace(state, `"objects"`, `"reason": "an exception", "objects"`, 1) + `}`,
				"another field":    `{"` + p.ID() + `": ` + strings.Replace(state, `"objects"`, `"until": "tomorrow", "objects"`, 1) + `}`,
				"of nothing":       `{"` + p.ID() + `": ` + strings.Replace(state, `"o"`, `""`, 1) + `}`,
				"and more":         `{"` + p.ID() + `": ` + state + `}{}`,
				"beside a bad one": `{"` + p.ID() + `": ` + state + `, "ValidatingPolicy/other": {"native": true}}`,
			} {
				forged := maps.Clone(data)
				forged[record.Key] = text
				s.leftOut(forged, p, false, why)
			}
		}),
	}
}
