package claims

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/verify"
)

// maxShared bounds one answer between replicas in bytes. An SBOM of megabytes is sooner read
// from the registry than carried between replicas.
const maxShared = 1 << 20

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
	By          sharedSigner      `json:"by"`
	Signer      verify.Signer     `json:"signer"`
	Statement   *sharedStatement  `json:"statement,omitempty"`
	Signatures  []string          `json:"signatures,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Entries     []verify.LogEntry `json:"entries,omitempty"`
	sharedTimes
	Notes      []string     `json:"notes,omitempty"`
	Repository string       `json:"repository,omitempty"`
	Via        string       `json:"via,omitempty"`
	Manifest   image.Digest `json:"manifest,omitzero"`
}

// sharedTimes are the times of a fact.
type sharedTimes struct {
	SignedAt   time.Time         `json:"signedAt,omitzero"`
	TimeSource verify.TimeSource `json:"timeSource,omitempty"`
	Expires    time.Time         `json:"expires,omitzero"`
}

// sharedSigner holds the fields of a signer that reports do not show.
type sharedSigner struct {
	ID    string   `json:"id,omitempty"`
	Key   string   `json:"key,omitempty"`
	Names []string `json:"names,omitempty"`
}

// sharedStatement keeps the predicate's bytes as they were signed.
type sharedStatement struct {
	Type          string           `json:"type"`
	Subjects      []attest.Subject `json:"subjects,omitempty"`
	PredicateType string           `json:"predicateType"`
	Predicate     []byte           `json:"predicate,omitempty"`
}

// encode encodes an answer for peers. Only answers with facts are shared.
func encode(key Key, answer Entry, now time.Time) ([]byte, error) {
	if costOf(answer.Answer) > maxShared {
		return nil, fmt.Errorf("the answer is larger than %d bytes", maxShared)
	}
	out := shared{Key: key.String(), Age: int64(max(0, passed(answer.At, now)))}
	if out.Key == "" || len(answer.Answer.Facts) == 0 {
		return nil, errors.New("there is nothing to share")
	}
	for _, fact := range answer.Answer.Facts {
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
		Subject: fact.Subject, Format: fact.Format, Role: fact.Role, Signer: fact.Signer,
		Signatures:  fact.Signatures,
		By:          sharedSigner{ID: fact.Signer.ID, Key: fact.Signer.Key, Names: fact.Signer.Names},
		Annotations: fact.Annotations, Entries: fact.Entries, Notes: fact.Notes,
		sharedTimes: sharedTimes{SignedAt: fact.SignedAt, TimeSource: fact.TimeSource, Expires: fact.Expires},
		Via:         fact.Origin.Via, Manifest: fact.Origin.Manifest,
	}
	if !fact.Origin.Repository.IsZero() {
		out.Repository = fact.Origin.Repository.String()
	}
	if s := fact.Statement; s != nil {
		out.Statement = &sharedStatement{Type: s.Type, Subjects: s.Subjects, PredicateType: s.PredicateType, Predicate: s.Predicate}
	}
	return out
}

// decode decodes a peer's answer to a key. An answer to another key, or an expired
// one, is an error: the caller then asks the registry.
func decode(raw []byte, key Key, now time.Time) (Entry, error) {
	if len(raw) > maxShared {
		return Entry{}, fmt.Errorf("a peer's answer is larger than %d bytes", maxShared)
	}
	var in shared
	if err := json.Unmarshal(raw, &in, json.RejectUnknownMembers(true)); err != nil {
		return Entry{}, fmt.Errorf("a peer's answer: %w", err)
	}
	switch {
	case in.Key == "" || in.Key != key.String():
		return Entry{}, errors.New("a peer's answer is to another question")
	case in.Age < 0:
		return Entry{}, errors.New("a peer's answer is from the future")
	case len(in.Facts) == 0:
		return Entry{}, errors.New("a peer's answer has no facts")
	}
	out := Entry{At: now.Add(-time.Duration(in.Age))}
	for _, one := range in.Facts {
		fact, err := one.fact()
		if err == nil {
			err = key.confirm(fact, now)
		}
		if err != nil {
			return Entry{}, fmt.Errorf("a peer's answer: %w", err)
		}
		out.Answer.Facts = append(out.Answer.Facts, fact)
	}
	return out, nil
}

func (s sharedFact) fact() (verify.Fact, error) {
	fact := verify.Fact{
		Subject: s.Subject, Format: s.Format, Role: s.Role, Signer: s.Signer, Signatures: s.Signatures,
		Annotations: s.Annotations, Entries: s.Entries, SignedAt: s.SignedAt, TimeSource: s.TimeSource,
		Expires: s.Expires, Notes: s.Notes,
		Origin: attest.Origin{Via: s.Via, Manifest: s.Manifest},
	}
	fact.Signer.ID, fact.Signer.Key, fact.Signer.Names = s.By.ID, s.By.Key, s.By.Names
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

// kept is an entry of a store: an answer in the peers' format, and the time of its
// verification. The replica that sealed it may have a different clock; the store's own
// expiry bounds the entry in any case.
type kept struct {
	At     int64          `json:"at"` // nanoseconds since 1970
	Answer jsontext.Value `json:"answer"`
}

// share stores the facts verified here, for as long as they are cached here.
func (c *Config) share(key Key, found Entry, age time.Duration) {
	if c.Store == nil || age <= 0 {
		return
	}
	answer, err := encode(key, found, found.At)
	if err != nil {
		return
	}
	if entry, err := json.Marshal(kept{At: found.At.UnixNano(), Answer: answer}); err == nil {
		c.Store.Keep(key.String(), entry, age)
	}
}

// decodeKept reads an entry of the store for a key.
func decodeKept(raw []byte, key Key, now time.Time) (Entry, error) {
	if len(raw) > maxKept {
		return Entry{}, fmt.Errorf("an entry of the store is larger than %d bytes", maxKept)
	}
	var entry kept
	if err := json.Unmarshal(raw, &entry, json.RejectUnknownMembers(true)); err != nil {
		return Entry{}, fmt.Errorf("an entry of the store: %w", err)
	}
	found, err := decode(entry.Answer, key, now)
	if err != nil {
		return Entry{}, err
	}
	if at := time.Unix(0, entry.At); at.Before(found.At) {
		found.At = at
	}
	return found, nil
}

// maxKept bounds one entry of a store in bytes.
const maxKept = maxShared + 64
