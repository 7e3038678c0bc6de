package guard

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// NextPage reads the address of the next page from Link headers (RFC 8288),
// relative to the page at current. No next page is nil. The next page must be
// of the same origin and path: a list continues where it began.
func NextPage(current *url.URL, headers []string) (*url.URL, error) {
	for _, header := range headers {
		target, ok := nextLink(header)
		if !ok {
			continue
		}
		next, err := current.Parse(target)
		if err != nil {
			return nil, errors.New("its Link to the next page is no address")
		}
		if !SameOrigin(current, next) || next.User != nil {
			return nil, fmt.Errorf("its Link leads to another host, %.100q", next.Host)
		}
		if next.Path != current.Path {
			return nil, errors.New("its Link leads out of the list")
		}
		next.Fragment = ""
		return next, nil
	}
	return nil, nil
}

// nextLink finds the target of the link with rel="next" in one header, which
// may hold several, separated by commas.
func nextLink(header string) (string, bool) {
	for rest := header; ; {
		_, after, ok := strings.Cut(rest, "<")
		if !ok {
			return "", false
		}
		target, parameters, ok := strings.Cut(after, ">")
		if !ok {
			return "", false
		}
		own, following, _ := strings.Cut(parameters, "<")
		if isNext(own) {
			return target, true
		}
		if following == "" {
			return "", false
		}
		rest = "<" + following
	}
}

// isNext reports whether the parameters of a link say rel=next; a link without
// any is taken for it, as some registries write it so.
func isNext(parameters string) bool {
	named := false
	for parameter := range strings.SplitSeq(parameters, ";") {
		name, value, ok := strings.Cut(strings.Trim(parameter, " ,\t"), "=")
		if !ok || !strings.EqualFold(strings.TrimSpace(name), "rel") {
			continue
		}
		named = true
		for rel := range strings.FieldsSeq(strings.Trim(strings.TrimSpace(value), `"`)) {
			if strings.EqualFold(rel, "next") {
				return true
			}
		}
	}
	return !named
}
