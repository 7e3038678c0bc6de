package claims

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/decide"
	"github.com/quaymaster/quaymaster/verify"
)

func aKey(predicate string) Key {
	key := Key{Digest: image.DigestOf([]byte("image")), Authority: "aa", Generation: "gg", Role: attest.Signature}
	if predicate != "" {
		key.Role, key.Predicate = attest.Attestation, predicate
	}
	return key
}

// aFact is a fact with every field set.
func aFact(key Key, predicate string, now time.Time) verify.Fact {
	repository, _ := image.ParseRepository("registry.example/team/app")
	fact := verify.Fact{
		Subject: key.Digest, Format: attest.Bundle, Role: key.Role,
		Signer:      verify.Signer{ID: "id", Key: "ee", Names: []string{"b@example.com"}, KeyFingerprint: "ff", Subject: "a@example.com", Issuer: "https://issuer.example", Extensions: map[string]string{"x": "<y>"}},
		Annotations: map[string]string{"a": "b"}, Entries: []verify.LogEntry{{LogID: "l", Index: 7, Time: now.Add(-time.Hour).UTC()}},
		SignedAt: now.Add(-time.Hour).UTC(), TimeSource: verify.LogTime, Expires: now.Add(time.Hour).UTC(), Notes: []string{"n"},
		Origin: attest.Origin{Repository: repository, Via: "referrers", Manifest: image.DigestOf([]byte("evidence"))},
	}
	if key.Predicate != "" {
		fact.Signatures = []string{"aa", "bb"}
		fact.Statement = &attest.Statement{
			Type: "https://in-toto.io/Statement/v1", PredicateType: key.Predicate, Predicate: json.RawMessage(predicate),
			Subjects: []attest.Subject{{Name: "app", Digest: map[string]string{"sha256": key.Digest.Hex()}, Annotations: map[string]any{"n": 1.5}}},
		}
	}
	return fact
}

func TestASharedAnswerIsTheSame(t *testing.T) {
	now := time.Now().Round(0)
	for _, predicate := range []string{"", "https://example.test/p"} {
		key := aKey(predicate)
		in := Entry{At: now.Add(-time.Minute), Answer: policy.Answer{Facts: []verify.Fact{
			aFact(key, "{ \"a\" : 1.0, \"b\":\"<&>\\u0041\" }\n", now), {Subject: key.Digest, Role: key.Role, Statement: aFact(key, "null", now).Statement},
		}}}
		raw, err := encode(key, in, now)
		if err != nil {
			t.Fatal(err)
		}
		out, err := decode(raw, key, now)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(in.Answer, out.Answer) || !in.At.Equal(out.At) {
			t.Errorf("in  %+v\nout %+v", in, out)
		}
	}
}

// equals is a condition on one member of a predicate.
type equals struct{ want any }

func (e equals) Holds(data any) (bool, string, error) {
	predicate, _ := data.(map[string]any)
	return reflect.DeepEqual(predicate["v"], e.want), "it differs", nil
}

// TestASharedAnswerDecidesAlike judges random predicates by conditions, before and
// after the way between replicas.
func TestASharedAnswerDecidesAlike(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	values := []any{nil, true, 0.0, 1.0, 1e21, 9007199254740993.0, "", "a", "é", "<>&\u2028", []any{1.0, "x"}, map[string]any{"k": nil}}
	texts := []string{`null`, `true`, `0`, `1.0`, `1e21`, `9007199254740993`, `""`, `"\u0061"`, `"é"`, `"<>&\u2028"`, `[ 1 , "x" ]`, `{"k" : null}`}
	now := time.Now()
	key := aKey("https://example.test/p")
	authority := &verify.Authority{Name: "key", Key: &verify.Key{Ref: "r"}}
	by := []policy.Requirement{{Name: "attestors[0]", Threshold: 1, Members: []policy.Member{{Authority: authority}}}}
	passed := 0
	for range 500 {
		var answer policy.Answer
		for range 1 + random.IntN(3) {
			fact := aFact(key, `{"v": `+texts[random.IntN(len(texts))]+` }`, now)
			fact.Signer.ID = string('a' + rune(random.IntN(2)))
			answer.Facts = append(answer.Facts, fact)
		}
		check := &policy.Check{Entry: "e", Claims: policy.Claims{Attestations: []policy.Attestation{{
			Path: "attestations[0]", PredicateType: key.Predicate, Signers: by, Condition: equals{values[random.IntN(len(values))]},
		}}}}
		raw, err := encode(key, Entry{Answer: answer, At: now}, now)
		if err != nil {
			t.Fatal(err)
		}
		shared, err := decode(raw, key, now)
		if err != nil {
			t.Fatal(err)
		}
		before := decide.Check(check, func(policy.Question) policy.Answer { return answer })
		after := decide.Check(check, func(policy.Question) policy.Answer { return shared.Answer })
		if before.Result != after.Result || !reflect.DeepEqual(before.Reasons, after.Reasons) {
			t.Fatalf("%+v became %+v", before, after)
		}
		if before.Result == policy.Pass {
			passed++
		}
	}
	if passed == 0 || passed == 500 {
		t.Errorf("%d of 500 pass: the test shows nothing", passed)
	}
}

func TestNotShared(t *testing.T) {
	now := time.Now()
	key := aKey("https://example.test/p")
	large := aFact(key, `"`+strings.Repeat("x", maxShared)+`"`, now)
	escapes := aFact(key, `"`+strings.Repeat("x", maxShared*9/10)+`"`, now)
	foreign := aFact(key, `{}`, now)
	foreign.Signer.Subject = "\xff"
	for reason, facts := range map[string][]verify.Fact{
		"nothing was proved": nil, "it is too large": {large}, "it is too large once it is written": {escapes}, "it is no UTF-8 and would change": {foreign},
	} {
		if raw, err := encode(key, Entry{Answer: policy.Answer{Facts: facts}, At: now}, now); err == nil {
			t.Errorf("%s: %d bytes are shared", reason, len(raw))
		}
	}
	expired := aFact(key, `{}`, now)
	raw, err := encode(key, Entry{Answer: policy.Answer{Facts: []verify.Fact{expired}}, At: now}, now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decode(raw, key, now.Add(59*time.Minute)); err != nil {
		t.Error(err)
	}
	if _, err := decode(raw, key, now.Add(61*time.Minute)); err == nil {
		t.Error("a fact that has expired is taken over")
	}
	for name, other := range map[string]func(*Key){
		"digest": func(k *Key) { k.Digest = image.DigestOf([]byte("other")) }, "authority": func(k *Key) { k.Authority = "bb" },
		"generation": func(k *Key) { k.Generation = "hh" }, "predicate": func(k *Key) { k.Predicate = "https://example.test/q" },
		"role": func(k *Key) { k.Role = attest.Signature }, "artifact": func(k *Key) { k.Artifact = true },
		"repository of evidence": func(k *Key) { k.Sources = "registry.example/prod\x00\x01" },
	} {
		asked := key
		other(&asked)
		if _, err := decode(raw, asked, now); err == nil {
			t.Errorf("an answer is taken for one to a question of another %s", name)
		}
		if asked.String() == key.String() {
			t.Errorf("the key does not depend on the %s", name)
		}
		if back, err := ParseKey(asked.String()); err != nil || back != asked {
			t.Errorf("%s: %+v, %v", name, back, err)
		}
	}
}

// TestFactsOfOlderRules: facts that another version of the rules of verification accepted are
// not adopted, from a replica, the shared store or a snapshot. Today's version is the twin.
func TestFactsOfOlderRules(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	key := aKey("https://example.test/p")
	raw, err := encode(key, Entry{Answer: policy.Answer{Facts: []verify.Fact{aFact(key, `{"a":1}`, now)}}, At: now}, now)
	if err != nil {
		t.Fatal(err)
	}
	for version, adopted := range map[string]bool{formatVersion: true, "1": false, "2": false, "4": false, "5": false, "6": false, "7": false, "8": false, "": false, "999": false} {
		other := strings.Replace(key.String(), `["`+formatVersion+`"`, `["`+version+`"`, 1)
		if _, err := ParseKey(other); (err == nil) != adopted {
			t.Errorf("version %q of a key: %v", version, err)
		}
		answer := strings.Replace(string(raw), `[\"`+formatVersion+`\"`, `[\"`+version+`\"`, 1)
		if _, err := decode([]byte(answer), key, now); (err == nil) != adopted {
			t.Errorf("version %q of an answer: %v", version, err)
		}
	}
}

// FuzzDecodeShared: an answer that decodes is about the key alone, and is written and
// read again as the same.
func FuzzDecodeShared(f *testing.F) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	key := aKey("https://example.test/p")
	raw, err := encode(key, Entry{Answer: policy.Answer{Facts: []verify.Fact{aFact(key, `{"a":1}`, now)}}, At: now}, now)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add(bytes.ReplaceAll(raw, []byte(`"id"`), []byte(`"\ud800"`)))
	f.Add([]byte(`{"key":"","age":0,"facts":[]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		out, err := decode(raw, key, now)
		if err != nil {
			return
		}
		for _, fact := range out.Answer.Facts {
			if fact.Subject != key.Digest || fact.Role != key.Role || fact.Statement.PredicateType != key.Predicate {
				t.Fatalf("%+v", fact)
			}
		}
		again, err := encode(key, out, now)
		if err != nil {
			return // larger once it is written in full
		}
		if _, err := decode(again, key, now); err != nil {
			t.Fatalf("%v: %s", err, again)
		}
	})
}

func FuzzParseFactKey(f *testing.F) {
	f.Add(aKey("").String())
	f.Add(aKey("https://example.test/p").String())
	f.Add(`["1"]`)
	f.Fuzz(func(t *testing.T, text string) {
		if key, err := ParseKey(text); err == nil && key.String() != text {
			t.Fatalf("%q reads as %q", text, key)
		}
	})
}
