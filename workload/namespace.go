package workload

// namespaceLabel is the label with its own name that the API server sets on every Namespace.
const namespaceLabel = "kubernetes.io/metadata.name"

// labelled returns a Namespace of a file with the label that the API server sets on it before
// admission, so that selectors and expressions read the same labels as there. A generated name is
// not known yet, and labels that are no object are left as they are, since the API server refuses
// them.
func (o Object) labelled() (Object, error) {
	if o.Kind() != "Namespace" || o.APIVersion() != "v1" || o.Name() == "" {
		return o, nil
	}
	labels := o.Root().Member("metadata").Member("labels")
	if !labels.IsNull() && !labels.IsObject() || labels.Member(namespaceLabel).Text() == o.Name() {
		return o, nil
	}
	content := o.Root().decodedObject()
	meta, _ := content["metadata"].(map[string]any) // it holds the name
	own, _ := meta["labels"].(map[string]any)
	if own == nil {
		own = map[string]any{}
	}
	own[namespaceLabel], meta["labels"] = o.Name(), own
	return o.With(content)
}
