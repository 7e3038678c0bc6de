package policies

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/catalog"
)

// Loaded is the document of a policy, or a policy that a setting of the gateway makes.
type Loaded struct {
	// Entry is zero for a policy without a document, and Text is that of its document.
	Entry catalog.Entry
	Text  []byte
	// Policy is the version in force, which may be another than the document's; nil for a document
	// that is left alone.
	Policy    *policy.Policy
	Condition metav1.Condition
}

// Loaded returns the documents of policies, and the policies without one. Exceptions, overrides and
// trusted roots are left out.
func (p *Policies) Loaded() []Loaded {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.Catalog.Snapshot()
	texts := map[string][]byte{}
	p.Catalog.Texts(func(entry catalog.Entry, text []byte) { texts[entry.Key] = text })
	active := map[string]*policy.Policy{}
	for _, each := range now.Set.Policies() {
		active[each.ID()] = each
	}
	var list []Loaded
	for _, entry := range now.Entries {
		if entry.Exception != nil || entry.Override != nil || entry.Root != nil || entry.Policy == nil && entry.State == catalog.Ours {
			continue
		}
		made := Loaded{Entry: entry, Text: texts[entry.Key], Policy: entry.Policy, Condition: p.Reporter.Condition(entry, p.objects[entry.Key])}
		if entry.Policy != nil {
			id := entry.Policy.ID()
			if version := active[id]; version != nil {
				made.Policy = version
			}
			delete(active, id)
		}
		list = append(list, made)
	}
	for _, derived := range active {
		condition := p.Reporter.Condition(catalog.Entry{State: catalog.Ours, Policy: derived}, p.objects[""])
		list = append(list, Loaded{Policy: derived, Condition: condition})
	}
	return list
}

// Definition returns the text of a policy's document, by its ID; false if there is none.
func (p *Policies) Definition(id string) (text []byte, ok bool) {
	p.Catalog.Texts(func(entry catalog.Entry, written []byte) {
		if entry.Policy.ID() == id {
			text, ok = written, true
		}
	})
	return text, ok
}
