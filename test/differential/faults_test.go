package differential

import (
	"crypto/x509"
	"maps"
	"slices"
	"time"

	"github.com/notaryproject/notation-core-go/signature"

	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// making is what a signer and a log are about to do.
type making struct {
	at       *scene
	claim    verifytest.Claim
	identity verifytest.Identity
	notation notarial
}

// record is the claim's only log entry.
func (m *making) record() *verifytest.Record {
	if len(m.claim.Records) == 0 {
		m.claim.Records = []verifytest.Record{{}}
	}
	return &m.claim.Records[0]
}

func (m *making) stamp() *verifytest.Stamp {
	if len(m.claim.Stamps) == 0 {
		m.claim.Stamps = []verifytest.Stamp{{}}
	}
	return &m.claim.Stamps[0]
}

// fault is one mistake, or one unusual step, in
// signing. The result is genuine.
type fault struct {
	fits func(r *recipe) bool
	do   func(m *making)
}

func logged(r *recipe) bool    { return r.Log != "none" }
func promised(r *recipe) bool  { return r.Log == "rekor" || r.Log == "rekor with intoto" }
func bundled(r *recipe) bool   { return r.Format == bundles }
func certified(r *recipe) bool { return r.Certified && !r.Format.isNotation() }
func stamped(r *recipe) bool   { return r.Stamped && !r.Format.isNotation() }
func enveloped(r *recipe) bool { return r.Format == bundles || r.Format == tags && r.Attests }
func notated(r *recipe) bool   { return r.Format.isNotation() }

func both(a, b func(*recipe) bool) func(*recipe) bool {
	return func(r *recipe) bool { return a(r) && b(r) }
}

func onRecord(do func(m *making, r *verifytest.Record)) func(*making) {
	return func(m *making) { do(m, m.record()) }
}

func logFault(f verifytest.LogFault) func(*making) {
	return func(m *making) { m.record().Fault = f }
}

func onIdentity(do func(m *making, id *verifytest.Identity)) func(*making) {
	return func(m *making) { do(m, &m.identity) }
}

func onStamp(do func(m *making, s *verifytest.Stamp)) func(*making) {
	return func(m *making) { do(m, m.stamp()) }
}

// faults are all of them by name.
func faults() map[string]fault {
	all := map[string]fault{}
	for _, some := range []map[string]fault{logFaults(), certificateFaults(), timeFaults(), contentFaults(), notationFaults()} {
		maps.Copy(all, some)
	}
	return all
}

func logFaults() map[string]fault {
	return map[string]fault{
		"an entry of a foreign log": {logged, onRecord(func(m *making, r *verifytest.Record) {
			r.Log = m.at.foreign.Rekor
			if m.at.recipe.Log == "rekor2" {
				r.Log = m.at.foreign.Rekor2
			}
		})},
		"a foreign entry that names our log": {promised, onRecord(func(m *making, r *verifytest.Record) {
			r.Log, r.As = m.at.foreign.Rekor, m.at.home.Rekor
		})},
		"our entry that names a foreign log": {promised, onRecord(func(m *making, r *verifytest.Record) { r.As = m.at.foreign.Rekor })},
		"a promise over something else":      {promised, logFault(verifytest.WrongPromise)},
		"a wrong inclusion proof":            {both(logged, bundled), logFault(verifytest.WrongProof)},
		"a wrong checkpoint":                 {both(logged, bundled), logFault(verifytest.WrongCheckpoint)},
		"an old checkpoint":                  {both(logged, bundled), logFault(verifytest.OldCheckpoint)},
		"an entry of another signature":      {logged, logFault(verifytest.OtherSignature)},
		"an entry twice":                     {both(logged, bundled), logFault(verifytest.Repeated)},
		withoutPromise:                       {both(promised, bundled), onRecord(func(_ *making, r *verifytest.Record) { r.NoPromise = true })},
		"an entry without a proof":           {both(promised, bundled), onRecord(func(_ *making, r *verifytest.Record) { r.NoProof = true })},
		"an entry of an hour ago":            {promised, onRecord(func(m *making, r *verifytest.Record) { r.Time = m.at.now.Add(-time.Hour) })},
		"an entry of tomorrow":               {promised, onRecord(func(m *making, r *verifytest.Record) { r.Time = m.at.now.Add(24 * time.Hour) })},
		"entries of two logs": {both(promised, bundled), func(m *making) {
			m.record()
			m.claim.Records = append(m.claim.Records, verifytest.Record{Log: m.at.foreign.Rekor})
		}},
		"a good entry and a bad one": {both(promised, bundled), func(m *making) {
			m.record()
			m.claim.Records = append(m.claim.Records, verifytest.Record{Fault: verifytest.WrongPromise})
		}},
		"entries of both Rekors": {both(promised, bundled), func(m *making) {
			m.record()
			m.claim.Records = append(m.claim.Records, verifytest.Record{Log: m.at.home.Rekor2})
		}},
	}
}

// Faults that a table names.
const (
	newIssuer = "a certificate with a new issuer"
	noStamp   = "no timestamp where one is looked for"

	withoutPromise = "an entry without a promise"
)

func certificateFaults() map[string]fault {
	return map[string]fault{
		"a foreign certificate authority": {certified, onIdentity(func(m *making, id *verifytest.Identity) { id.CA = m.at.foreign.CA })},
		"a foreign certificate log":       {certified, onIdentity(func(m *making, id *verifytest.Identity) { id.CTLog = m.at.foreign.CTLog })},
		"no certificate timestamp":        {certified, onIdentity(func(_ *making, id *verifytest.Identity) { id.NoSCT = true })},
		"a wrong certificate timestamp":   {certified, onIdentity(func(_ *making, id *verifytest.Identity) { id.WrongSCT = true })},
		"a certificate of a server": {certified, onIdentity(func(_ *making, id *verifytest.Identity) {
			id.Usage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		})},
		"a certificate of two uses": {certified, onIdentity(func(_ *making, id *verifytest.Identity) {
			id.Usage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageCodeSigning}
		})},
		"a certificate of an hour ago":     {certified, onIdentity(func(m *making, id *verifytest.Identity) { id.NotBefore = m.at.now.Add(-time.Hour) })},
		"a certificate of tomorrow":        {certified, onIdentity(func(m *making, id *verifytest.Identity) { id.NotBefore = m.at.now.Add(24 * time.Hour) })},
		"a certificate without a name":     {certified, onIdentity(func(_ *making, id *verifytest.Identity) { id.URI, id.NoSAN = "", true })},
		"a certificate of a person":        {certified, onIdentity(func(_ *making, id *verifytest.Identity) { id.URI, id.Email = "", "release@example.com" })},
		"a certificate of a user name":     {certified, onIdentity(func(_ *making, id *verifytest.Identity) { id.URI, id.Username = "", subject })},
		"a certificate with an old issuer": {certified, onIdentity(func(_ *making, id *verifytest.Identity) { id.OnlyOldIssuer = true })},
		newIssuer:                          {certified, onIdentity(func(_ *making, id *verifytest.Identity) { id.OnlyNewIssuer = true })},
		"no issuers beside a certificate":  {certified, func(m *making) { m.claim.NoChain = true }},
	}
}

func timeFaults() map[string]fault {
	return map[string]fault{
		"a foreign timestamp authority":         {stamped, onStamp(func(m *making, s *verifytest.Stamp) { s.TSA = m.at.foreign.TSA })},
		"a timestamp of an hour ago":            {stamped, onStamp(func(m *making, s *verifytest.Stamp) { s.Time = m.at.now.Add(-time.Hour) })},
		"a timestamp of tomorrow":               {stamped, onStamp(func(m *making, s *verifytest.Stamp) { s.Time = m.at.now.Add(24 * time.Hour) })},
		"a timestamp of another signature":      {stamped, onStamp(func(_ *making, s *verifytest.Stamp) { s.OtherSignature = true })},
		"a timestamp without its certificates":  {stamped, onStamp(func(_ *making, s *verifytest.Stamp) { s.NoCertificate = true })},
		noStamp:                                 {stamped, func(m *making) { m.claim.Stamps = nil }},
		"a good timestamp and a foreign one":    {both(stamped, bundled), moreStamps(func(m *making) verifytest.Stamp { return verifytest.Stamp{TSA: m.at.foreign.TSA} })},
		"a good timestamp and one of yesterday": {both(stamped, bundled), moreStamps(func(m *making) verifytest.Stamp { return verifytest.Stamp{Time: m.at.now.Add(-24 * time.Hour)} })},
		"a timestamp twice":                     {both(stamped, bundled), moreStamps(func(*making) verifytest.Stamp { return verifytest.Stamp{} })},
	}
}

func moreStamps(another func(m *making) verifytest.Stamp) func(*making) {
	return func(m *making) {
		m.stamp()
		m.claim.Stamps = append(m.claim.Stamps, another(m))
	}
}

func contentFaults() map[string]fault {
	sigstores := func(r *recipe) bool { return !r.Format.isNotation() }
	return map[string]fault{
		"a signature over something else":   {sigstores, func(m *making) { m.claim.WrongSignature = true }},
		"no signatures":                     {enveloped, func(m *making) { m.claim.NoSignatures = true }},
		"a second signature by another key": {enveloped, func(m *making) { m.claim.CoSigner = m.at.stranger }},
		"a bundle of version 0.1":           {bundled, func(m *making) { m.claim.Version = "0.1" }},
		"a bundle of version 0.2":           {bundled, func(m *making) { m.claim.Version = "0.2" }},
		"another payload type":              {enveloped, func(m *making) { m.claim.PayloadType = "application/json" }},
		"a payload type in capitals":        {enveloped, func(m *making) { m.claim.PayloadType = "application/vnd.in-toto+JSON" }},
		"a message in place of an envelope": {func(r *recipe) bool {
			return bundled(r) && r.Key != "ed25519" && !r.Attests && r.Log != "rekor with intoto"
		}, func(m *making) {
			m.claim.Statement, m.claim.Payload, m.claim.Artifact = nil, nil, m.at.manifest
		}},
	}
}

func notationFaults() map[string]fault {
	return map[string]fault{
		"a signature that expired":     {notated, func(m *making) { m.notation.Time, m.notation.Expiry = m.at.now.Add(-2*time.Hour), time.Hour }},
		"a signature that will expire": {notated, func(m *making) { m.notation.Expiry = time.Hour }},
		"a verification plugin":        {notated, func(m *making) { m.notation.Plugin = "com.example.plugin" }},
		"a critical attribute": {notated, func(m *making) {
			m.notation.attribute = &signature.Attribute{Key: "com.example.rule", Critical: true, Value: "x"}
		}},
		"an attribute":                         {notated, func(m *making) { m.notation.attribute = &signature.Attribute{Key: "com.example.rule", Value: "x"} }},
		"a notation over something else":       {notated, func(m *making) { m.notation.WrongSignature = true }},
		"a payload of another type":            {notated, func(m *making) { m.notation.PayloadType = "application/json" }},
		"a signing authority":                  {notated, func(m *making) { m.notation.SigningAuthority = true }},
		"a signer with an expired certificate": {notated, func(m *making) { m.notation.who, m.notation.Time = over, m.at.now.AddDate(-1, 0, 0) }},
		"a signer of today alone":              {notated, func(m *making) { m.notation.who = alone }},
		"a target of another size":             {notated, func(m *making) { m.notation.Target.Size++ }},
		"a target of another type":             {notated, func(m *making) { m.notation.Target.MediaType = "application/vnd.oci.image.index.v1+json" }},
		"a timestamp beside notation":          {notated, func(m *making) { m.notation.TSA = m.at.home.TSA }},
		"a wrong timestamp beside notation":    {notated, func(m *making) { m.notation.TSA, m.notation.OtherTimestamp = m.at.home.TSA, true }},
	}
}

// faultsOf lists the names of what can be done wrong with a recipe, in order.
func faultsOf(r *recipe) []string {
	if r.Writer != ours {
		return nil
	}
	var names []string
	for name, f := range faults() {
		if f.fits(r) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
