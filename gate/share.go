package gate

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/verify"
)

// Bounds of the messages between replicas.
const (
	// maxShared bounds one answer in bytes. An SBOM of megabytes is sooner read
	// from the registry than carried between replicas.
	maxShared = 1 << 20
	// maxFactKey bounds a key: two hashes, a digest, a predicate type, repositories.
	maxFactKey = 4 << 10
)

// shareVersion changes with the meaning of a key or an answer, and whenever verification becomes
// stricter: facts that older rules accepted are verified again, whether a replica, the shared
// store or a snapshot holds them.
const shareVersion = "3"

// String returns the key as peers are asked for it: a JSON array of its parts.
func (k factKey) String() string {
	kind := "statement"
	if k.artifact {
		kind = "artifact"
	}
	parts := []string{shareVersion, k.digest.String(), k.authority, k.generation, string(k.role), k.predicate, kind, k.sources}
	encoded, err := json.Marshal(parts)
	if err != nil { // a part that is not UTF-8: not shared
		return ""
	}
	return string(encoded)
}

// parseFactKey parses the output of String, and nothing else.
func parseFactKey(text string) (factKey, error) {
	if len(text) > maxFactKey {
		return factKey{}, errors.New("the key is too long")
	}
	var parts []string
	if err := json.Unmarshal([]byte(text), &parts); err != nil {
		return factKey{}, fmt.Errorf("key of a fact: %w", err)
	}
	if len(parts) != 8 || parts[0] != shareVersion {
		return factKey{}, errors.New("the key is of another version")
	}
	digest, err := image.ParseDigest(parts[1])
	if err != nil {
		return factKey{}, fmt.Errorf("key of a fact: %w", err)
	}
	key := factKey{
		digest: digest, authority: parts[2], generation: parts[3],
		role: attest.Role(parts[4]), predicate: parts[5], artifact: parts[6] == "artifact", sources: parts[7],
	}
	if key.String() != text {
		return factKey{}, errors.New("the key is not in its canonical form")
	}
	return key, nil
}

// shared is the wire form of a cached answer. It carries its key, so that it cannot be
// used for another query, and its age instead of a time, so that clock differences do not
// extend its lifetime.
type shared struct {
	Key string `json:"key"`
	// Age is how long ago the facts were found, in nanoseconds.
	Age   int64        `json:"age"`
	Facts []sharedFact `json:"facts"`
}

type sharedFact struct {
	Subject     image.Digest      `json:"subject"`
	Format      attest.Format     `json:"format"`
	Role        attest.Role       `json:"role"`
	SignerID    string            `json:"signerID,omitempty"`
	Signer      verify.Signer     `json:"signer"`
	Statement   *sharedStatement  `json:"statement,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Entries     []verify.LogEntry `json:"entries,omitempty"`
	SignedAt    time.Time         `json:"signedAt,omitzero"`
	Expires     time.Time         `json:"expires,omitzero"`
	Notes       []string          `json:"notes,omitempty"`
	Repository  string            `json:"repository,omitempty"`
	Via         string            `json:"via,omitempty"`
	Manifest    image.Digest      `json:"manifest,omitzero"`
}

// sharedStatement keeps the predicate's bytes as they were signed.
type sharedStatement struct {
	Type          string           `json:"type"`
	Subjects      []attest.Subject `json:"subjects,omitempty"`
	PredicateType string           `json:"predicateType"`
	Predicate     []byte           `json:"predicate,omitempty"`
}

// encodeShared encodes an answer for peers. Only answers with facts are shared.
func encodeShared(key factKey, answer proved, now time.Time) ([]byte, error) {
	if costOf(answer.answer) > maxShared {
		return nil, fmt.Errorf("the answer is larger than %d bytes", maxShared)
	}
	out := shared{Key: key.String(), Age: int64(max(0, passed(answer.at, now)))}
	if out.Key == "" || len(answer.answer.Facts) == 0 {
		return nil, errors.New("there is nothing to share")
	}
	for _, fact := range answer.answer.Facts {
		out.Facts = append(out.Facts, shareFact(fact))
	}
	encoded, err := json.Marshal(out) // refuses invalid UTF-8, which JSON would alter
	if err != nil {
		return nil, fmt.Errorf("answer for a peer: %w", err)
	}
	if len(encoded) > maxShared {
		return nil, fmt.Errorf("the answer is larger than %d bytes", maxShared)
	}
	return encoded, nil
}

func shareFact(fact verify.Fact) sharedFact {
	out := sharedFact{
		Subject: fact.Subject, Format: fact.Format, Role: fact.Role, SignerID: fact.Signer.ID, Signer: fact.Signer,
		Annotations: fact.Annotations, Entries: fact.Entries, SignedAt: fact.SignedAt, Expires: fact.Expires, Notes: fact.Notes,
		Via: fact.Origin.Via, Manifest: fact.Origin.Manifest,
	}
	if !fact.Origin.Repository.IsZero() {
		out.Repository = fact.Origin.Repository.String()
	}
	if s := fact.Statement; s != nil {
		out.Statement = &sharedStatement{Type: s.Type, Subjects: s.Subjects, PredicateType: s.PredicateType, Predicate: s.Predicate}
	}
	return out
}

// decodeShared decodes a peer's answer to a key. An answer to another key, or an expired
// one, is an error: the caller then asks the registry.
func decodeShared(raw []byte, key factKey, now time.Time) (proved, error) {
	if len(raw) > maxShared {
		return proved{}, fmt.Errorf("a peer's answer is larger than %d bytes", maxShared)
	}
	var in shared
	if err := json.Unmarshal(raw, &in, json.RejectUnknownMembers(true)); err != nil {
		return proved{}, fmt.Errorf("a peer's answer: %w", err)
	}
	switch {
	case in.Key == "" || in.Key != key.String():
		return proved{}, errors.New("a peer's answer is to another question")
	case in.Age < 0:
		return proved{}, errors.New("a peer's answer is from the future")
	case len(in.Facts) == 0:
		return proved{}, errors.New("a peer's answer has no facts")
	}
	out := proved{at: now.Add(-time.Duration(in.Age))}
	for _, one := range in.Facts {
		fact, err := one.fact()
		if err == nil {
			err = key.confirm(fact, now)
		}
		if err != nil {
			return proved{}, fmt.Errorf("a peer's answer: %w", err)
		}
		out.answer.Facts = append(out.answer.Facts, fact)
	}
	return out, nil
}

func (s sharedFact) fact() (verify.Fact, error) {
	fact := verify.Fact{
		Subject: s.Subject, Format: s.Format, Role: s.Role, Signer: s.Signer,
		Annotations: s.Annotations, Entries: s.Entries, SignedAt: s.SignedAt, Expires: s.Expires, Notes: s.Notes,
		Origin: attest.Origin{Via: s.Via, Manifest: s.Manifest},
	}
	fact.Signer.ID = s.SignerID
	if s.Repository != "" {
		repository, err := image.ParseRepository(s.Repository)
		if err != nil {
			return verify.Fact{}, err
		}
		fact.Origin.Repository = repository
	}
	if st := s.Statement; st != nil {
		fact.Statement = &attest.Statement{Type: st.Type, Subjects: st.Subjects, PredicateType: st.PredicateType, Predicate: slices.Clone(st.Predicate)}
	}
	return fact, nil
}

// confirm checks that a fact matches the key, and has not expired.
func (k factKey) confirm(fact verify.Fact, now time.Time) error {
	switch {
	case fact.Subject != k.digest:
		return errors.New("the fact is about another digest")
	case fact.Role != k.role:
		return errors.New("the fact is of another role")
	case !fact.Expires.IsZero() && !now.Before(fact.Expires):
		return errors.New("the fact has expired")
	case k.role == attest.Signature:
		return nil
	case fact.Statement == nil || fact.Statement.PredicateType != k.predicate:
		return errors.New("the statement is of another type")
	}
	return nil
}
