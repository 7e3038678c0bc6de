package rulecontext

// PodTemplate is the path of the pod template in an object of a generated rule; nil for the
// object itself.
type PodTemplate []string

// View returns the object in the form for pod rules: with the pod template's specification and
// metadata in place of its own, as Kyverno does by rewriting the rule's variables. The namespace
// is the object's, never the template's: pods run in the namespace of their controller.
func (t PodTemplate) View(object map[string]any) map[string]any {
	if len(t) == 0 || object == nil {
		return object
	}
	var at any = object
	for _, key := range t {
		step, _ := at.(map[string]any)
		at = step[key]
	}
	template, ok := at.(map[string]any)
	if !ok {
		return object
	}
	changed := make(map[string]any, len(object))
	for key, value := range object {
		changed[key] = value
	}
	changed["spec"] = template["spec"]
	meta := map[string]any{}
	if templates, ok := template["metadata"].(map[string]any); ok {
		for key, value := range templates {
			meta[key] = value
		}
	}
	// Deleted last, because the author of a template may write any namespace into it.
	delete(meta, "namespace")
	if own, ok := object["metadata"].(map[string]any); ok && own["namespace"] != nil {
		meta["namespace"] = own["namespace"]
	}
	changed["metadata"] = meta
	return changed
}
