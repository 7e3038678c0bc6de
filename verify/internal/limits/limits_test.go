package limits_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/digitorus/pkcs7"

	"github.com/quaymaster/quaymaster/verify/internal/limits"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// tooLong is one bit beyond the bound.
const tooLong = limits.MaxRSA + 1

// row is one measurement; it passes if no text is given.
type row[T any] struct {
	reason string
	of     T
	says   string
}

func play[T any](t *testing.T, measure func(T) error, rows []row[T]) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.reason, func(t *testing.T) {
			err := measure(r.of)
			switch {
			case r.says == "" && err != nil:
				t.Errorf("refused: %v", err)
			case r.says != "" && err == nil:
				t.Errorf("it passed, want %q", r.says)
			case r.says != "" && !strings.Contains(err.Error(), r.says):
				t.Errorf("got %q, want %q in it", err, r.says)
			}
		})
	}
}

func certificate(bits int) *x509.Certificate {
	return verifytest.Must(verifytest.CertificateOf(verifytest.LongKey(bits)))
}

// named is a certificate of a short key that is as long as one of a long key.
func named(t *testing.T, names int) []byte {
	t.Helper()
	key := verifytest.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	for i := range names {
		template.DNSNames = append(template.DNSNames, fmt.Sprintf("host-%d.example", i))
	}
	return verifytest.Must(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))
}

const longKey = "the RSA key of 8193 bits is longer than the bound of 8192"

// raised is a key of another exponent than the usual one.
func raised(bits, exponent int) *rsa.PublicKey {
	key := verifytest.LongKey(bits)
	key.E = exponent
	return key
}

func TestKey(t *testing.T) {
	curve := verifytest.Must(ecdsa.GenerateKey(elliptic.P521(), rand.Reader))
	play(t, limits.Key, []row[crypto.PublicKey]{
		{"the longest RSA key", verifytest.LongKey(limits.MaxRSA), ""},
		{"one bit more", verifytest.LongKey(tooLong), longKey},
		{"the greatest exponent of a long key", raised(limits.MaxRSA, 1<<16+1), ""},
		{"a greater one", raised(limits.MaxRSA, 1<<16+3), "the RSA key of 8192 bits has the exponent 65539, more than the bound of 65537"},
		{"of the shortest long key", raised(4097, 1<<31-1), "has the exponent 2147483647"},
		{"of a key that is not long", raised(4096, 1<<31-1), ""},
		{"other keys have the length of their curve", curve.Public(), ""},
		{"and so has this one", ed25519.PublicKey(make([]byte, ed25519.PublicKeySize)), ""},
		{"no key", nil, ""},
	})
}

func TestCertificate(t *testing.T) {
	many := named(t, 200)
	if len(many) < 2<<10 {
		t.Fatalf("a certificate of two hundred names has %d bytes", len(many))
	}
	play(t, limits.Certificate, []row[[]byte]{
		{"a usual one", named(t, 1), ""},
		{"a long one of a short key", many, ""},
		{"the longest key", certificate(limits.MaxRSA).Raw, ""},
		{"one bit more", certificate(tooLong).Raw, longKey},
		{"the shortest key that an exponent is too great for", verifytest.Must(verifytest.CertificateOf(raised(4097, 1<<31-1))).Raw, "has the exponent 2147483647"},
		{"the same of the usual exponent", certificate(4097).Raw, ""},
		{"an invalid one, refused by its parser", bytes.Repeat([]byte("junk"), 1<<10), ""},
		{"and so it does what follows one", append(certificate(tooLong).Raw, 0), ""},
		{"none", nil, ""},
	})
}

func TestSigners(t *testing.T) {
	type bag struct {
		certificates []*x509.Certificate
		signers      int
	}
	short, long := certificate(2048), certificate(tooLong)
	measure := func(b bag) error { return limits.Signers(b.certificates, b.signers) }
	of := func(count int, more ...*x509.Certificate) []*x509.Certificate {
		return append(slices.Repeat([]*x509.Certificate{short}, count), more...)
	}
	play(t, measure, []row[bag]{
		{"one signer", bag{of(1), 1}, ""},
		{"two", bag{of(1), 2}, "the timestamp has 2 signers, and RFC 3161 allows one"},
		{"none, which its reader refuses", bag{of(1), 0}, ""},
		{"no certificates: they may come from elsewhere", bag{nil, 1}, ""},
		{"as many certificates as may be", bag{of(limits.MaxCertificates), 1}, ""},
		{"one more", bag{of(limits.MaxCertificates + 1), 1}, "the timestamp brings 11 certificates, more than the bound of 10"},
		{"the last is of the longest key", bag{of(1, certificate(limits.MaxRSA)), 1}, ""},
		{"the last is of a longer key", bag{of(1, long), 1}, "the timestamp: " + longKey},
	})
}

// issued are certificates by their names, each "SUBJECT < ISSUER"; what stands twice
// is two of them.
func issued(names ...string) (all []*x509.Certificate) {
	for i, name := range names {
		subject, issuer, _ := strings.Cut(name, " < ")
		all = append(all, &x509.Certificate{Raw: fmt.Append(nil, i), RawSubject: []byte(subject), RawIssuer: []byte(issuer)})
	}
	return all
}

// TestSearch: crypto/x509 goes from each certificate of a name to each of its issuer's.
func TestSearch(t *testing.T) {
	const toAndFro = "the timestamp brings certificates that have issued one another: a search for a chain would prove more than 16 signatures"
	play(t, func(certificates []*x509.Certificate) error { return limits.Signers(certificates, 1) }, []row[[]*x509.Certificate]{
		{"a chain", issued("leaf < tsa", "tsa < root", "root < root"), ""},
		{"a chain in another order", issued("root < root", "leaf < tsa", "tsa < root"), ""},
		{"as DigiCert sends it: its root, certified by the one before", issued("leaf < tsa", "tsa < root", "root < before"), ""},
		{"that root as both", issued("leaf < tsa", "tsa < root", "root < root", "root < before", "before < before"), ""},
		{"a root that three others certify", issued("leaf < tsa", "tsa < root", "root < root", "root < a", "a < a", "root < b", "b < b", "root < c", "c < c"), ""},
		{"a chain of ten", issued("0 < 1", "1 < 2", "2 < 3", "3 < 4", "4 < 5", "5 < 6", "6 < 7", "7 < 8", "8 < 9", "9 < 9"), ""},
		{"ten times the same one", slices.Repeat(issued("root < root"), 10), ""},
		{"three that have issued one another", issued("leaf < tsa", "tsa < a", "a < a", "a < a", "a < a"), ""},
		{"one more before them", issued("leaf < tsa", "tsa < b", "b < a", "a < a", "a < a", "a < a"), toAndFro},
		{"ten", issued(slices.Repeat([]string{"a < a"}, 10)...), toAndFro},
		{"sixteen signatures", issued("leaf < a", "a < p", "a < p", "p < q", "q < r", "q < r", "r < before", "r < before"), ""},
		{"one more", issued("leaf < a", "a < p", "a < p", "a < before", "p < q", "q < r", "q < r", "r < before", "r < before"), toAndFro},
		{"they stand last, beside a chain", issued("leaf < tsa", "tsa < tsa", "b < c", "c < b", "b < c", "c < b", "b < c", "c < b"), toAndFro},
	})
}

// holder has a certificate, and the key that it is about.
type holder struct {
	*x509.Certificate
	key *ecdsa.PrivateKey
}

// certified is a certificate for a name by an issuer; by itself for none.
func certified(t *testing.T, name string, isCA bool, by *holder) *holder {
	t.Helper()
	key := verifytest.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IsCA: isCA, BasicConstraintsValid: true,
	}
	made := &holder{key: key}
	if by == nil {
		by = &holder{template, key}
	}
	made.Certificate = verifytest.Must(x509.ParseCertificate(verifytest.Must(x509.CreateCertificate(rand.Reader, template, by.Certificate, key.Public(), by.key))))
	return made
}

// TestCertified: a certificate that the trusted ones have not certified, by name and key, is
// not theirs, and neither is one certified by it.
func TestCertified(t *testing.T) {
	root := certified(t, "root", true, nil)
	tsa := certified(t, "tsa", true, root)
	leaf := certified(t, "leaf", false, tsa)
	namesake := certified(t, "root", true, nil)
	renamed := &holder{&x509.Certificate{Subject: pkix.Name{CommonName: "renamed"}}, root.key}
	for _, row := range []struct {
		reason                 string
		carried, trusted, want []*holder
	}{
		{"a chain", []*holder{leaf, tsa, root}, []*holder{root}, []*holder{tsa, root, leaf}},
		{"in another order", []*holder{tsa, leaf}, []*holder{root}, []*holder{tsa, leaf}},
		{"below the second that is trusted", []*holder{leaf}, []*holder{root, tsa}, []*holder{leaf}},
		{"below one that is not there", []*holder{leaf}, []*holder{root}, nil},
		{"below one of the trusted one's name", []*holder{certified(t, "tsa", true, namesake), namesake}, []*holder{root}, nil},
		{"below a namesake of a certificate that it trusts", []*holder{certified(t, "leaf", false, certified(t, "tsa", true, namesake)), tsa}, []*holder{root}, []*holder{tsa}},
		{"by the trusted one's key, under another name", []*holder{certified(t, "tsa", true, renamed)}, []*holder{root}, nil},
		{"below one that is no authority", []*holder{leaf, certified(t, "below", false, leaf)}, []*holder{tsa}, []*holder{leaf}},
		{"none is trusted", []*holder{root, tsa}, nil, nil},
		{"nothing is carried", nil, []*holder{root}, nil},
	} {
		of := func(holders []*holder) (all []*x509.Certificate) {
			for _, h := range holders {
				all = append(all, h.Certificate)
			}
			return all
		}
		if got, want := limits.Certified(of(row.carried), of(row.trusted)), of(row.want); !slices.Equal(got, want) {
			t.Errorf("%s: got %d of %d, want %d", row.reason, len(got), len(row.carried), len(want))
		}
	}
}

// carried is what a bundle of a claim carries beside its signature.
type carried struct {
	Material struct {
		Entries []struct {
			Body []byte `json:"canonicalizedBody"`
		} `json:"tlogEntries"`
		Timestamps struct {
			List []struct {
				Response []byte `json:"signedTimestamp"`
			} `json:"rfc3161Timestamps"`
		} `json:"timestampVerificationData"`
	} `json:"verificationMaterial"`
}

func made(s *verifytest.Sigstore, claim verifytest.Claim) carried {
	var c carried
	if err := json.Unmarshal(verifytest.Must(s.Bundle(claim)), &c); err != nil {
		panic(err)
	}
	return c
}

// genuine are entries and timestamps as logs and authorities write them.
func genuine() (entries map[string][]byte, stamps map[string][]byte) {
	s := verifytest.Must(verifytest.New(verifytest.Options{}))
	keyless := verifytest.Must(s.Keyless(verifytest.Identity{Email: "dev@example.org", Issuer: "https://token.example"}))
	key := verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{Algorithm: verifytest.RSA3072}))
	statement := verifytest.CosignSignature("sha256:"+strings.Repeat("0", 64), nil)
	entries, stamps = map[string][]byte{}, map[string][]byte{}
	for reason, claim := range map[string]verifytest.Claim{
		"hashedrekord by a certificate": {Signer: keyless, Artifact: []byte("artifact")},
		"hashedrekord by a key":         {Signer: key, Artifact: []byte("artifact")},
		"dsse by a certificate":         {Signer: keyless, Statement: statement, Records: []verifytest.Record{{Kind: "dsse"}}},
		"dsse by a key":                 {Signer: key, Statement: statement, Records: []verifytest.Record{{Kind: "dsse"}}},
		"intoto by a certificate":       {Signer: keyless, Statement: statement, Records: []verifytest.Record{{Kind: "intoto"}}},
		"intoto by a key":               {Signer: key, Statement: statement, Records: []verifytest.Record{{Kind: "intoto"}}},
		"intoto with its payload":       {Signer: keyless, Statement: statement, Records: []verifytest.Record{{Kind: "intoto", Payload: true}}},
		"hashedrekord of Rekor v2":      {Signer: keyless, Statement: statement, Records: []verifytest.Record{{Log: s.Rekor2}}},
	} {
		entries[reason] = made(s, claim).Material.Entries[0].Body
	}
	for reason, stamp := range map[string]verifytest.Stamp{
		"with certificates": {}, "without certificates": {NoCertificate: true},
		"with one more certificate": {Beside: certificate(limits.MaxRSA)},
	} {
		stamps[reason] = made(s, verifytest.Claim{Signer: key, Statement: statement, Stamps: []verifytest.Stamp{stamp}}).Material.Timestamps.List[0].Response
	}
	return entries, stamps
}

// response wraps a token as an authority does.
func response(token []byte) []byte {
	return verifytest.Must(asn1.Marshal(struct {
		Status []int
		Token  asn1.RawValue
	}{[]int{0}, asn1.RawValue{FullBytes: token}}))
}

// token is one that signers sign and certificates travel in.
func token(signers int, certificates ...*x509.Certificate) []byte {
	data := verifytest.Must(pkcs7.NewSignedData([]byte("time")))
	for i := range signers {
		key := verifytest.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
		template := &x509.Certificate{SerialNumber: big.NewInt(int64(i + 1)), Subject: pkix.Name{CommonName: "timestamps"}, NotAfter: time.Now().Add(time.Hour)}
		own := verifytest.Must(x509.ParseCertificate(verifytest.Must(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))))
		if err := data.AddSigner(own, key, pkcs7.SignerInfoConfig{}); err != nil {
			panic(err)
		}
	}
	for _, c := range certificates {
		data.AddCertificate(c)
	}
	return verifytest.Must(data.Finish())
}

// sequences nests elements.
func sequences(depth int) []byte {
	var inner []byte
	for range depth {
		inner = verifytest.Must(asn1.Marshal(asn1.RawValue{Tag: asn1.TagSequence, IsCompound: true, Bytes: inner}))
	}
	return inner
}

// exceeding is elements that each declare an end before their content's, which a
// BER parser reads twice for each.
func exceeding(levels int) []byte {
	var inner []byte
	for i := range levels {
		inner = append(inner, 0x30, 2, 0x30, byte(4*(levels-i)-2))
	}
	inner = append(inner, asn1.TagNull, 0)
	return append([]byte{0x30, byte(len(inner))}, inner...)
}

func TestTimestamp(t *testing.T) {
	_, stamps := genuine()
	one := stamps["with certificates"]
	const notDER = "the timestamp: its token is not in DER, as RFC 3161, 3.4, has it"
	rows := []row[[]byte]{
		{"one signer", response(token(1)), ""},
		{"two signers", response(token(2)), "2 signers"},
		{"a key that may be, among the certificates", response(token(1, certificate(limits.MaxRSA))), ""},
		{"a longer one", response(token(1, certificate(tooLong))), longKey},
		{"ten certificates", response(token(1, slices.Repeat([]*x509.Certificate{certificate(1024)}, 9)...)), ""},
		{"eleven", response(token(1, slices.Repeat([]*x509.Certificate{certificate(1024)}, 10)...)), "11 certificates"},
		{"a rejection has no token", verifytest.Must(asn1.Marshal([][]int{{2}})), ""},
		{"an invalid response, refused by its parser", []byte("junk"), ""},
		{"nothing", nil, ""},
		{"a token of no kind, its reader refuses", response(sequences(1)), ""},
		{"as deep as may be", response(sequences(32)), ""},
		{"one deeper", response(sequences(33)), "the timestamp: its elements are more than 32 deep"},
		{"elements that exceed their own would be read for years", response(exceeding(30)), notDER},
		{"an indefinite length (BER)", response([]byte{0x30, 6, 0x30, 0x80, 5, 0, 0, 0}), notDER},
		{"the same with a definite length", response([]byte{0x30, 4, 0x30, 2, 5, 0}), ""},
		{"as long as may be", append(bytes.Clone(one), make([]byte, 64<<10-len(one))...), ""},
		{"one byte more", append(bytes.Clone(one), make([]byte, 64<<10-len(one)+1)...), "the timestamp has 65537 bytes, more than the bound of 65536"},
	}
	for reason, stamp := range stamps {
		rows = append(rows, row[[]byte]{"genuine, " + reason, stamp, ""})
	}
	play(t, limits.Timestamp, rows)
}

func block(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func encoded(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func TestEntry(t *testing.T) {
	entries, _ := genuine()
	pkix := func(bits int) []byte { return verifytest.Must(x509.MarshalPKIXPublicKey(verifytest.LongKey(bits))) }
	good, long := block("PUBLIC KEY", pkix(limits.MaxRSA)), block("PUBLIC KEY", pkix(tooLong))
	in := func(text string) string {
		return `{"apiVersion":"0.0.1","kind":"hashedrekord","spec":{"signature":{"content":"AA==","publicKey":{"content":"` + text + `"}}}}`
	}
	member := func(name, value string) string {
		return `{"spec":{"content":{"first":["1",{"a":[]}],` + strings.NewReplacer("N", name, "V", value).Replace(`"N":V}}}`)
	}
	one := block("CERTIFICATE", certificate(2048).Raw)
	const proposal = "which only a proposal has"
	rows := []row[string]{
		{"the longest key", in(encoded(good)), ""},
		{"a longer key", in(encoded(long)), "the log entry: " + longKey},
		{"in the second block", in(encoded(good + long)), longKey},
		{"with text before it", in(encoded("text\n" + long)), longKey},
		{"the longest key's certificate", in(encoded(block("CERTIFICATE", certificate(limits.MaxRSA).Raw))), ""},
		{"a longer key's certificate", in(encoded(block("CERTIFICATE", certificate(tooLong).Raw))), longKey},
		{"the longest key as PKCS #1", in(encoded(block("RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(verifytest.LongKey(limits.MaxRSA))))), ""},
		{"a greater exponent as PKCS #1", in(encoded(block("RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(raised(4097, 1<<31-1))))), "the log entry: the RSA key of 4097 bits has the exponent 2147483647"},
		{"a longer key as PKCS #1", in(encoded(block("RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(verifytest.LongKey(tooLong))))), longKey},
		{"the longest key in DER", in(encoded(string(pkix(limits.MaxRSA)))), ""},
		{"a longer key in DER", in(encoded(string(pkix(tooLong)))), longKey},
		{"the longest key as it is", in(strings.ReplaceAll(good, "\n", `\n`)), ""},
		{"a longer key as it is", in(strings.ReplaceAll(long, "\n", `\n`)), longKey},
		{"a long key in a list", `{"keys":["` + encoded(long) + `"]}`, longKey},
		{"a short one in a list", `{"keys":["` + encoded(good) + `"]}`, ""},
		{"a long text that is no key", in(encoded(strings.Repeat("text", 1<<10))), ""},

		{"three certificates: a signer, an intermediate and a root", in(encoded(strings.Repeat(one, 3))), ""},
		{"four", in(encoded(strings.Repeat(one, 4))), "it has a chain of more than 3 certificates"},

		{"names twice, and the last is fine", `{"Key":"` + encoded(long) + `","Key":"AA=="}`, longKey},
		{"names twice, and both are", `{"Key":"` + encoded(good) + `","Key":"AA=="}`, ""},
		{"a number that no float holds does not end the reading", `{"a":1e999,"key":"` + encoded(long) + `"}`, longKey},
		{"the same with a fine key", `{"a":1e999,"key":"` + encoded(good) + `"}`, ""},
		{"a second document, which Rekor does not read", `{} {"key":"` + encoded(long) + `"}`, longKey},

		{"another member", member("proposed", `{}`), ""},
		{"a proposal", member("proposedContent", `{}`), proposal},
		{"in other case", member("PROPOSEDcontent", `{}`), "a member PROPOSEDcontent, " + proposal},
		{"its name as a text is none", member("kind", `"proposedContent"`), ""},
		{"an escaped name", member(`propo\u0073edContent`, `null`), proposal},
		{"the envelope's members", member("envelope", `{"payloadType":"a","signatures":[]}`), ""},
		{"the envelope itself", member("envelope", `"{}"`), "the log entry has a text as its envelope, " + proposal},
		{"no envelope", member("envelope", `""`), ""},
		{"an envelope in other case", member("Envelope", `"{}"`), proposal},
		{"a payload", member("envelope", `{"payload":"AA=="}`), ""},
		{"no payload", member("envelope", `{"payload":""}`), ""},
		{"a payload that is null", member("envelope", `{"payload":null}`), ""},
		{"a payload after one that is null", member("envelope", `{"payload":null,"PAYLOAD":"AA=="}`), ""},
		{"two payloads, which parsers choose between", member("envelope", `{"payload":"AA==","PAYLOAD":"AA=="}`), "the log entry has 2 payloads"},
		{"a second payload after an object", `{"payload":"AA==","a":{"b":{}},"payload":"AA=="}`, "the log entry has 2 payloads"},
		{"a second payload within lists", `{"payload":"AA==","a":[[],[{"payload":"AA=="}]]}`, "the log entry has 2 payloads"},
		{"a payload with a signature", member("envelope", `{"payload":"AA==","signatures":[{"publicKey":"AA==","sig":"AA=="}]}`), ""},
		{"two signatures without a payload", member("envelope", `{"signatures":[{"publicKey":"AA==","sig":"AA=="},{"publicKey":"AA==","sig":"AA=="}]}`), ""},
		{"a payload with two signatures: each would be verified with each key", member("envelope", `{"payload":"AA==","signatures":[{"sig":"AA=="},{"SIG":"AA=="}]}`), "the log entry has a payload and 2 signatures of 0 keys"},
		{"a payload with two keys", member("envelope", `{"signatures":[{"publicKey":"AA=="},{"publickey":"AA=="}],"payload":"AA=="}`), "the log entry has a payload and 0 signatures of 2 keys"},
		{"a payload as long as two keys is none", member("payload", `"`+encoded(long+long)+`"`), ""},
		{"a text in a list is no payload", `{"payload":["AA=="]}`, ""},
		{"a payload's hash", member("payloadHash", `{"algorithm":"sha256","value":"00"}`), ""},

		{"a number", member("a", `1`), ""},
		{"a list of numbers", member("a", `[1]`), "the log entry has a list of numbers, which may be read as bytes"},
		{"a list of texts, and a number", member("a", `["1"],"b":2`), ""},
		{"a number after texts in a list", member("a", `["1",2]`), "a list of numbers"},
		{"a truth in a list", member("a", `[true,null]`), ""},

		{"damaged JSON, its reader refuses", in(encoded(good))[1:], ""},
		{"it ends too early", in(encoded(good))[:40], ""},
		{"a bracket that nothing opened", `]`, ""},
		{"nothing", "", ""},
		{"as long as may be", `{}` + strings.Repeat(" ", 64<<10-2), ""},
		{"one byte more", `{}` + strings.Repeat(" ", 64<<10-1), "the log entry has 65537 bytes without its payload, more than the bound of 65536"},
		{"a payload counts apart", member("payload", `"`+strings.Repeat("A", 256<<10)+`"`), ""},
		{"another text does not", member("other", `"`+strings.Repeat("A", 256<<10)+`"`), "more than the bound of 65536"},
		{"a long text after a payload of invalid bytes, which grow as they are read", member("payload", `"`+strings.Repeat("\xff", 64<<10)+`","other":"`+strings.Repeat("A", 80<<10)+`"`), "more than the bound of 65536"},
		{"a long list", member("other", `[`+strings.Repeat(`{},`, 32<<10)+`{}]`), "more than the bound of 65536"},
		{"a long name", member(strings.Repeat("A", 80<<10), `1`), "more than the bound of 65536"},
	}
	for reason, body := range entries {
		rows = append(rows, row[string]{"genuine, " + reason, string(body), ""})
	}
	play(t, func(text string) error { return limits.Entry([]byte(text)) }, rows)
}

func TestCheckpoint(t *testing.T) {
	play(t, limits.Checkpoint, []row[string]{
		{"a usual one", "rekor.example\n1\nAA==\n\n\u2014 rekor.example AA==\n", ""},
		{"as long as may be", strings.Repeat("a", 16<<10), ""},
		{"one byte more", strings.Repeat("a", 16<<10+1), "the checkpoint has 16385 bytes, more than the bound of 16384"},
		{"none", "", ""},
	})
}

// FuzzEntry: foreign bytes never end in a panic, and white space around them makes
// nothing pass.
func FuzzEntry(f *testing.F) {
	entries, _ := genuine()
	for _, body := range entries {
		f.Add(body)
	}
	f.Add([]byte(`{"a":1e999,"payload":"AA==","list":[1],"proposedContent":{}}`))
	f.Add([]byte(`{"payload":"AA==","signatures":[{"sig":"AA==","publicKey":"AA=="}]}`))
	f.Add([]byte(`]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		err := limits.Entry(body)
		if around := limits.Entry(append(append([]byte("\t\n"), body...), " \r"...)); err != nil && around == nil {
			t.Errorf("white space around it made it pass; without: %v", err)
		}
		if long := limits.Entry(append(body[:len(body):len(body)], make([]byte, 64<<10+1)...)); long == nil {
			t.Error("one beyond the bound passed")
		}
	})
}

// FuzzTimestamp: foreign bytes never end in a panic, and what follows them makes nothing
// pass.
func FuzzTimestamp(f *testing.F) {
	_, stamps := genuine()
	for _, stamp := range stamps {
		f.Add(stamp)
	}
	f.Add(response(token(2)))
	f.Add(response(exceeding(30)))
	f.Add(response([]byte{0x30, 6, 0x30, 0x80, 5, 0, 0, 0}))
	f.Fuzz(func(t *testing.T, stamp []byte) {
		err := limits.Timestamp(stamp)
		if after := limits.Timestamp(append(stamp[:len(stamp):len(stamp)], ' ')); err != nil && after == nil {
			t.Errorf("a byte after it made it pass; without: %v", err)
		}
		if long := limits.Timestamp(append(stamp[:len(stamp):len(stamp)], make([]byte, 64<<10+1)...)); long == nil {
			t.Error("one beyond the bound passed")
		}
	})
}

func ExampleEntry() {
	key, err := x509.MarshalPKIXPublicKey(verifytest.LongKey(20 << 13)) // 20 KiB
	if err != nil {
		panic(err)
	}
	text := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: key}))
	fmt.Println(limits.Entry([]byte(`{"kind": "hashedrekord", "spec": {"signature": {"publicKey": {"content": "` + text + `"}}}}`)))
	// Output: the log entry: the RSA key of 163840 bits is longer than the bound of 8192
}

func TestDocument(t *testing.T) {
	encoded := func(bits int) string {
		der := verifytest.Must(x509.MarshalPKIXPublicKey(verifytest.LongKey(bits)))
		return string(verifytest.Must(json.Marshal(string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})))))
	}
	list := func(n int, of string) string { return "[" + strings.TrimSuffix(strings.Repeat(of+",", n), ",") + "]" }
	const many, ids = "more than 20000 values", "more than 128 key identifiers"
	play(t, func(text string) error { return limits.Document([]byte(text)) }, []row[string]{
		{"most values", list(19_998, "1"), ""},
		{"one more", list(19_999, "1"), many},
		{"one more, and a large number before", `[1e9999,` + list(19_998, "1")[1:], many},
		{"values that are empty", list(10_000, "{}"), many},
		{"no end", list(19_998, "1")[:100], ""},
		{"the longest key", `{"public":` + encoded(8192) + `}`, ""},
		{"one bit more", `{"public":` + encoded(8193) + `}`, longKey},
		{"one bit more, at any depth and behind a large number", `[1e9999,{"a":[[{"b":` + encoded(8193) + `}]]}]`, longKey},
		{"most identifiers", `{"keyids":` + list(128, `"a"`) + `}`, ""},
		{"one more", `{"keyids":` + list(129, `"a"`) + `}`, ids},
		{"one more, in another case", `{"KeyIDs":` + list(129, `"a"`) + `}`, ids},
		{"one more, which are null", `{"keyids":` + list(129, `null`) + `}`, ids},
		{"one more, in two lists", `[{"keyids":` + list(64, `"a"`) + `},{"keyids":` + list(65, `"a"`) + `}]`, ids},
		{"a list of another name", `{"paths":` + list(129, `"a"`) + `}`, ""},
	})
}
