package inventory

import (
	"errors"
	"slices"
	"strings"
)

// DecisionQuery selects decisions, the latest first. Empty fields select everything.
type DecisionQuery struct {
	// Text is searched in names, images, users and messages, case-insensitively.
	Text      string
	Verdict   Verdict
	Namespace string
	Page      Page
}

// DecisionPage is a page of the retained decisions.
type DecisionPage struct {
	Total    int        `json:"total"`
	Verdicts Tally      `json:"verdicts"`
	Offset   int        `json:"offset"`
	Items    []Decision `json:"items"`
}

// Decisions returns the matching decisions, or an error for an invalid query. A query
// for denials or errors reaches further back.
func (i *Inventory) Decisions(q DecisionQuery) (DecisionPage, error) {
	if err := errors.Join(q.Page.check(), oneOf("verdict", q.Verdict, append(Verdicts(), ""))); err != nil {
		return DecisionPage{}, err
	}
	q.Text = strings.ToLower(q.Text)
	page := DecisionPage{Offset: q.Page.Offset, Items: []Decision{}}
	i.mu.RLock()
	defer i.mu.RUnlock()
	from := &i.recent.decisions
	if q.Verdict == Denied || q.Verdict == Errored {
		from = &i.recent.refusals
	}
	from.latest(func(d *Decision) bool {
		if !q.asksFor(d) {
			return true
		}
		page.Verdicts.Add(d.Verdict)
		if q.Verdict != "" && d.Verdict != q.Verdict {
			return true
		}
		page.Total++
		if page.Total > q.Page.Offset && len(page.Items) < q.Page.Limit {
			page.Items = append(page.Items, *d)
		}
		return true
	})
	return page, nil
}

func (q *DecisionQuery) asksFor(d *Decision) bool {
	if q.Namespace != "" && d.Resource.Namespace != q.Namespace {
		return false
	}
	has := func(text string) bool { return strings.Contains(strings.ToLower(text), q.Text) }
	return q.Text == "" || has(d.Resource.Namespace+"/"+d.Resource.Name) || has(d.Resource.Kind) ||
		has(d.User) || has(d.Code) || has(d.Message) || d.UID == q.Text ||
		slices.ContainsFunc(d.Images, func(image DecidedImage) bool { return has(image.Written) })
}
