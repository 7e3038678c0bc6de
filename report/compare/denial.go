package compare

import (
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/report"
)

// claim is what a denial says of one policy.
type claim struct {
	policy, rule, image, message string
	word                         Word
}

// denial takes in the words with which the API server passes a webhook's denial on, or says
// that it gave no answer; whose webhook it was, and false where that is nobody's we know.
func (c *Collector) denial(text string, of report.Resource, at time.Time, where Place) bool {
	text = cut(text, maxDenial)
	about := said{object: of, at: at, where: where}
	if _, rest, ok := strings.Cut(text, `failed calling webhook "`); ok {
		name, why, _ := strings.Cut(rest, `"`)
		about.word, about.message = Unable, "the webhook gave no answer"+cut(why, maxMessage)
		return c.claims(about, name, nil)
	}
	_, rest, ok := strings.Cut(text, `admission webhook "`)
	name, rest, named := strings.Cut(rest, `"`)
	message, denied := strings.CutPrefix(rest, " denied the request")
	if !ok || !named || !denied {
		return false
	}
	message = strings.TrimSpace(strings.TrimPrefix(message, ":"))
	about.word, about.message = Deny, message
	return c.claims(about, name, claimsOf(message))
}

// claims takes in each policy that a denial names, or the denial as it is.
func (c *Collector) claims(about said, webhook string, claims []claim) bool {
	engine, known := engineOf(webhook)
	if !known || engine == Quaymaster {
		return false
	}
	about.engine = engine
	if len(claims) == 0 {
		c.take(about)
	}
	for _, one := range claims {
		s := about
		s.policy.name, s.rule, s.written, s.message, s.word = one.policy, one.rule, one.image, one.message, one.word
		if engine == PolicyController {
			s.policy.kind = "ClusterImagePolicy"
		}
		c.take(s)
	}
	return true
}

// claimsOf reads the texts of the engines: a list of policies and rules of Kyverno's
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

// ruleClaims reads a YAML mapping of policies to rules to messages, which an event may have
// cut off: line by line, by how far each is indented.
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
				all = append(all, claim{policy: policy, rule: unquoted(rule), message: unquoted(strings.Trim(message, " |>-")), word: Deny})
			}
		case indent > 2 && len(all) > 0:
			last := &all[len(all)-1]
			last.message = unquoted(strings.TrimSpace(cut(last.message+" "+bare, maxMessage)))
		}
	}
	return all
}

func unquoted(text string) string { return strings.Trim(strings.TrimSpace(text), `'"`) }

// policyClaims reads "Policy NAME failed: message", several of which "; " joins.
func policyClaims(message string) []claim {
	var all []claim
	for part := range strings.SplitSeq(message, "; Policy ") {
		part = strings.TrimPrefix(part, "Policy ")
		name, rest, _ := strings.Cut(part, " ")
		did, why, ok := strings.Cut(rest, ": ")
		word, known := map[string]Word{"failed": Deny, "error": Unable}[did]
		if ok && known && len(all) < maxClaims {
			all = append(all, claim{policy: name, message: why, word: word})
		}
	}
	return all
}

// imageClaims reads policy-controller's errors: "failed policy: NAME: paths", with the image
// and what is wrong with it on the next line; "invalid value: IMAGE must be an image digest:
// paths"; and "no matching policies: paths", with the image on the next line.
func imageClaims(errors string) []claim {
	var all []claim
	for line := range strings.Lines(errors) {
		line = strings.TrimSpace(line)
		switch {
		case len(all) >= maxClaims:
		case strings.HasPrefix(line, "failed policy: "):
			name, _, _ := strings.Cut(strings.TrimPrefix(line, "failed policy: "), ": ")
			all = append(all, claim{policy: name, message: line, word: Deny})
		case strings.HasPrefix(line, "invalid value: ") && strings.Contains(line, " must be an image digest"):
			image, _, _ := strings.Cut(strings.TrimPrefix(line, "invalid value: "), " ")
			all = append(all, claim{image: image, message: line, word: Deny})
		case strings.HasPrefix(line, "no matching policies"):
			all = append(all, claim{message: line, word: Deny})
		case len(all) > 0 && all[len(all)-1].image == "":
			last := &all[len(all)-1]
			image, why, _ := strings.Cut(line, " ")
			if _, ok := nameOfImage(image); ok {
				last.image = image
			}
			if why != "" {
				last.message, last.word = why, wordOfCosign(why)
			}
		}
	}
	return all
}

// wordOfCosign tells apart what cosign's library says of a registry that gave no answer: it
// has no other word for it.
func wordOfCosign(message string) Word {
	for _, sign := range []string{
		"unexpected status code", "dial tcp", "i/o timeout", "context deadline exceeded", "connection refused", "no such host", "UNAUTHORIZED",
		"TOOMANYREQUESTS", "MANIFEST_UNKNOWN", "DENIED:",
	} {
		if strings.Contains(message, sign) {
			return Unable
		}
	}
	return Deny
}
