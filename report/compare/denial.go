package compare

import (
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/report"
)

// claim is the part of a denial for one policy.
type claim struct {
	policy, rule, image, message string
	verdict                      Verdict
}

// denial parses the text in which the API server reports a webhook's denial or failure. The
// webhooks of unknown engines are left out.
func (c *Collector) denial(text string, of report.Resource, at time.Time, where Place) {
	text = cut(text, maxDenial)
	about := engineVerdict{object: of, at: at, where: where}
	if _, rest, ok := strings.Cut(text, `failed calling webhook "`); ok {
		name, why, _ := strings.Cut(rest, `"`)
		about.verdict, about.message = Error, "the webhook gave no answer"+cut(why, maxMessage)
		c.claims(about, name, nil)
		return
	}
	_, rest, ok := strings.Cut(text, `admission webhook "`)
	name, rest, named := strings.Cut(rest, `"`)
	message, denied := strings.CutPrefix(rest, " denied the request")
	if !ok || !named || !denied {
		return
	}
	message = strings.TrimSpace(strings.TrimPrefix(message, ":"))
	about.verdict, about.message = Deny, message
	c.claims(about, name, claimsOf(message))
}

// claims adds each policy that a denial names, or the denial itself where it names none.
func (c *Collector) claims(about engineVerdict, webhook string, claims []claim) {
	engine, known := engineOf(webhook)
	if !known || engine == Quaymaster {
		return
	}
	about.engine = engine
	if len(claims) == 0 {
		c.take(about)
	}
	for _, one := range claims {
		s := about
		s.policy.name, s.rule, s.written, s.message, s.verdict = one.policy, one.rule, one.image, one.message, one.verdict
		if engine == PolicyController {
			s.policy.kind = "ClusterImagePolicy"
		}
		c.take(s)
	}
}

// claimsOf parses the messages of the engines: a list of policies and rules of Kyverno's
// policies, "Policy NAME failed: ..." of its newer ones, and policy-controller's.
func claimsOf(message string) []claim {
	switch {
	case strings.Contains(message, "was blocked due to the following policies"):
		_, list, _ := strings.Cut(message, "following policies")
		return ruleClaims(list)
	case strings.HasPrefix(message, "Policy "):
		return policyClaims(message)
	case strings.HasPrefix(message, "validation failed: "):
		return imageClaims(strings.TrimPrefix(message, "validation failed: "))
	}
	return nil
}

// ruleClaims parses a YAML mapping of policies to rules to messages. An event may truncate it, so
// each line is parsed by its indentation.
func ruleClaims(list string) []claim {
	var all []claim
	policy := ""
	for line := range strings.Lines(list) {
		text := strings.TrimRight(line, "\r\n ")
		bare := strings.TrimLeft(text, " ")
		indent := len(text) - len(bare)
		switch {
		case bare == "":
		case indent == 0 && strings.HasSuffix(bare, ":"):
			policy = unquoted(strings.TrimSuffix(bare, ":"))
		case indent == 2 && policy != "" && len(all) < maxClaims:
			rule, message, ok := strings.Cut(bare, ":")
			if ok {
				all = append(all, claim{policy: policy, rule: unquoted(rule), message: unquoted(strings.Trim(message, " |>-")), verdict: Deny})
			}
		case indent > 2 && len(all) > 0:
			last := &all[len(all)-1]
			last.message = unquoted(strings.TrimSpace(cut(last.message+" "+bare, maxMessage)))
		}
	}
	return all
}

func unquoted(text string) string { return strings.Trim(strings.TrimSpace(text), `'"`) }

// policyClaims parses "Policy NAME failed: message", joined by "; ".
func policyClaims(message string) []claim {
	var all []claim
	for part := range strings.SplitSeq(message, "; Policy ") {
		part = strings.TrimPrefix(part, "Policy ")
		name, rest, _ := strings.Cut(part, " ")
		did, why, ok := strings.Cut(rest, ": ")
		word, known := map[string]Verdict{"failed": Deny, "error": Error}[did]
		if ok && known && len(all) < maxClaims {
			all = append(all, claim{policy: name, message: why, verdict: word})
		}
	}
	return all
}

// imageClaims parses policy-controller's errors: "failed policy: NAME: paths", with the image and
// its error on the next line; "invalid value: IMAGE must be an image digest: paths"; and "no
// matching policies: paths", with the image on the next line.
func imageClaims(errors string) []claim {
	var all []claim
	for line := range strings.Lines(errors) {
		line = strings.TrimSpace(line)
		switch {
		case len(all) >= maxClaims:
		case strings.HasPrefix(line, "failed policy: "):
			name, _, _ := strings.Cut(strings.TrimPrefix(line, "failed policy: "), ": ")
			all = append(all, claim{policy: name, message: line, verdict: Deny})
		case strings.HasPrefix(line, "invalid value: ") && strings.Contains(line, " must be an image digest"):
			image, _, _ := strings.Cut(strings.TrimPrefix(line, "invalid value: "), " ")
			all = append(all, claim{image: image, message: line, verdict: Deny})
		case strings.HasPrefix(line, "no matching policies"):
			all = append(all, claim{message: line, verdict: Deny})
		case len(all) > 0 && all[len(all)-1].image == "":
			last := &all[len(all)-1]
			image, why, _ := strings.Cut(line, " ")
			if _, ok := nameOfImage(image); ok {
				last.image = image
			}
			if why != "" {
				last.message, last.verdict = why, wordOfCosign(why)
			}
		}
	}
	return all
}

// wordOfCosign recognizes registry failures by their message: cosign's library has no other
// marker for them.
func wordOfCosign(message string) Verdict {
	for _, sign := range []string{
		"unexpected status code", "dial tcp", "i/o timeout", "context deadline exceeded", "connection refused", "no such host", "UNAUTHORIZED",
		"TOOMANYREQUESTS", "MANIFEST_UNKNOWN", "DENIED:",
	} {
		if strings.Contains(message, sign) {
			return Error
		}
	}
	return Deny
}
