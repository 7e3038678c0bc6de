package ratify

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy/convert/internal/images"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	"github.com/quaymaster/quaymaster/policy/lang/reference"
)

// scopes returns the images of each trust policy. Scopes that overlap are
// refused, as Ratify refuses them.
func (c reader) scopes(list []trustPolicy, at string) (named [][]images.Test, global int) {
	named, global = make([][]images.Test, len(list)), -1
	var before []string
	for i, policy := range list {
		path := source.Index(at, i) + ".scopes"
		if len(policy.Scopes) == 0 {
			c.Refuse(path, "is empty", `set the images, or "*" for all others`)
		}
		for j, text := range policy.Scopes {
			place := source.Index(path, j)
			prefix, wild := strings.CutSuffix(text, "*")
			switch {
			case text == "*" && (global >= 0 || len(policy.Scopes) > 1):
				c.Refuse(place, `"*" is combined with other scopes, or occurs twice`, "give it one trust policy of its own")
			case text == "*":
				global = i
			case !regexp.MustCompile(`^[a-z0-9.:@/_-]+$`).MatchString(prefix):
				c.Refuse(place, fmt.Sprintf("%q", text), "want an image, or its beginning and a * at the end, in lower case")
			case slices.ContainsFunc(before, func(other string) bool { return overlap(text, other) }):
				c.Refuse(place, fmt.Sprintf("%q overlaps another scope", text), "write scopes that do not overlap, as Ratify requires")
			case wild && !reference.HasRegistry(prefix):
				c.Refuse(place, fmt.Sprintf("%q has no registry", text), "write docker.io/library/"+prefix+"* or docker.io/"+prefix+"* for images of Docker Hub")
			case images.Unmatched(text) != "":
				c.Refuse(place, fmt.Sprintf("%q matches nothing here", text), images.Unmatched(text))
			case wild:
				named[i] = append(named[i], images.Pattern("^"+regexp.QuoteMeta(images.Hub(prefix))))
			case !images.Scope(text).Exact():
				c.Refuse(place, fmt.Sprintf("%q names a repository without tag or digest, which Ratify compares with whole references", text),
					"write "+text+":* and "+text+"@*")
			default:
				named[i] = append(named[i], images.Scope(text).Test())
			}
			if text != "*" {
				before = append(before, text)
			}
		}
	}
	return named, global
}

func overlap(a, b string) bool {
	shortA, wildA := strings.CutSuffix(a, "*")
	shortB, wildB := strings.CutSuffix(b, "*")
	return a == b || wildA && strings.HasPrefix(shortB, shortA) || wildB && strings.HasPrefix(shortA, shortB)
}
