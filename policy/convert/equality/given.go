package equality

import (
	"encoding/json"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy/convert/equality/internal/sampling"
	"github.com/quaymaster/quaymaster/workload"
)

// Given is a request that is evaluated as it is.
type Given struct {
	// Policy is the name of the policy for which it is; empty for all.
	Policy string
	// Request has the object, the former one, the operation and the user.
	Request gate.Request
	// NamespaceLabels are those of the object's namespace.
	NamespaceLabels map[string]string
	// Existing are the other objects.
	Existing []workload.Object
}

// requested are the given requests for the policy.
func (c *Checker) requested() (all []*Sample, err error) {
	for i := range c.options.Requests {
		g := &c.options.Requests[i]
		if g.Policy != "" && g.Policy != c.options.Source[0].Name() || g.Request.Object.IsDocument() {
			continue
		}
		one, err := sampleOf(g)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

func sampleOf(g *Given) (*Sample, error) {
	r := &g.Request
	now, old := r.Object.Content(), r.Old.Content()
	if r.Old.IsZero() && !r.Subject.OldObject.IsZero() {
		old = r.Subject.OldObject.Map()
	}
	if r.Object.IsZero() {
		now = nil
	}
	if len(old) == 0 {
		old = nil
	}
	of := now
	if of == nil {
		of = old
	}
	one := sampling.Creation(of).Unchecked()
	one.Object, one.Old, one.NamespaceLabels = now, old, g.NamespaceLabels
	if r.Subject.Operation != "" {
		one.Operation = r.Subject.Operation
	}
	one.Subresource = r.Subject.Subresource
	if r.Subject.User.Name != "" || len(r.Subject.User.Groups) > 0 {
		one.User = User{Name: r.Subject.User.Name, Groups: r.Subject.User.Groups}
	}
	for _, object := range g.Existing {
		var content map[string]any
		if err := json.Unmarshal(object.JSON(), &content); err != nil {
			return nil, err
		}
		one.Existing = append(one.Existing, content)
	}
	return one, nil
}
