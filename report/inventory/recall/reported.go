package recall

import (
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/result"
	"github.com/quaymaster/quaymaster/verify"
)

// ReportedKey is the number of characters of a key's fingerprint in a report.
const ReportedKey = 16

// Reported gathers the image results of a cluster's reports; those of one image may be in several
// reports. Its zero value is empty. It is not safe for concurrent use.
type Reported struct {
	objects map[string]*reported
	order   []*reported
}

// reported holds the image results of one object.
type reported struct {
	about  report.Resource
	images []report.Image
}

// Add adds results. Results without an image are ignored. Of two results with the same key the
// first is used, since the reports of two APIs repeat each other.
func (r *Reported) Add(results []result.Result) {
	for _, each := range results {
		if each.Image == nil {
			continue
		}
		of := r.object(each.Resource)
		at := slices.IndexFunc(of.images, func(i report.Image) bool {
			return i.Container == each.Image.Container && i.Written == each.Image.Written && i.Digest.String() == each.Image.Digest
		})
		if at < 0 {
			of.images = append(of.images, reportedImage(each.Image))
			at = len(of.images) - 1
		}
		said := &of.images[at]
		decision := reportedDecision(&each)
		if !slices.ContainsFunc(said.Decisions, func(d report.Decision) bool { return d.Policy == decision.Policy && d.Rule == decision.Rule }) {
			said.Decisions = append(said.Decisions, decision)
		}
	}
}

func (r *Reported) object(about report.Resource) *reported {
	key := strings.Join([]string{about.APIVersion, about.Kind, about.Namespace, about.Name, about.UID}, "\x00")
	if of := r.objects[key]; of != nil {
		return of
	}
	if r.objects == nil {
		r.objects = map[string]*reported{}
	}
	of := &reported{about: about}
	r.objects[key], r.order = of, append(r.order, of)
	return of
}

// Fill adds the gathered results to an inventory as the result of a scan at the given time.
// Unchanged reports are not rewritten, so their own times may be old. Reports do not record which
// failures deny, so all failures are warnings.
func (r *Reported) Fill(known Inventory, at time.Time) {
	for _, of := range r.order {
		known.Add(report.Occasion{Time: at, Process: report.ProcessScan, Allowed: true}, report.Record{
			Object: report.Object{APIVersion: of.about.APIVersion, Kind: of.about.Kind, Namespace: of.about.Namespace, Name: of.about.Name},
			Result: gate.Allow, Images: of.images,
		}, of.about)
	}
}

func reportedImage(i *result.Image) report.Image {
	made := report.Image{Container: i.Container, Written: i.Written, Reference: i.Written, Result: gate.Allow, Matched: true}
	if ref, err := image.Parse(i.Written); err == nil {
		made.Reference = ref.String()
	}
	if digest, err := image.ParseDigest(i.Digest); err == nil {
		made.Digest = digest
	}
	return made
}

func reportedDecision(r *result.Result) report.Decision {
	made := report.Decision{
		Policy: report.Policy{Kind: r.Policy.Kind, Namespace: r.Policy.Namespace, Name: r.Policy.Name, Hash: r.Policy.Hash},
		Rule:   r.Rule, Result: policy.Pass, Effect: report.EffectAllow,
	}
	switch r.Status {
	case result.Pass:
	case result.Skip:
		made.Result = policy.Skipped
	case result.Error:
		made.Result, made.Effect = policy.Indeterminate, report.EffectWarn
	case result.Fail, result.Warn:
		made.Result, made.Effect = policy.Fail, report.EffectWarn
	}
	if r.Code != "" || r.Message != "" {
		made.Reasons = []policy.Reason{{Code: r.Code, Message: r.Message}}
	}
	if r.Image.Signer != "" {
		made.Proofs = []report.Proof{{Signer: reportedSigner(r.Image.Signer), Found: reportedPlace(r.Image.Evidence)}}
	}
	return made
}

// reportedSigner parses the output of verify.Signer's String.
func reportedSigner(text string) verify.Signer {
	if key, ok := strings.CutPrefix(text, "key "); ok {
		if _, err := hex.DecodeString(key); err == nil {
			return verify.Signer{KeyFingerprint: key}
		}
	}
	if begin := strings.LastIndex(text, " ("); begin > 0 && strings.HasSuffix(text, ")") {
		return verify.Signer{Subject: text[:begin], Issuer: text[begin+2 : len(text)-1]}
	}
	return verify.Signer{Subject: text}
}

// reportedPlace parses the output of report.Found's String for a manifest.
func reportedPlace(text string) report.Found {
	repository, digest, _ := strings.Cut(text, "@")
	manifest, err := image.ParseDigest(digest)
	if err != nil {
		return report.Found{Repository: text}
	}
	return report.Found{Repository: repository, Manifest: manifest}
}
