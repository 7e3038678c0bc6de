package workload

// AddPullSecrets returns the operations that append Secrets to the imagePullSecrets of the
// object's pod specification: existing ones stay, and none is added twice. There are none for an
// object without a pod specification.
func AddPullSecrets(o Object, names []string) []Operation {
	path, ok := podSpecs[o.Group()+"/"+o.Kind()]
	if !ok {
		return nil
	}
	spec, at, err := descend(o.Root(), path)
	if err != nil || !spec.IsObject() {
		return nil
	}
	at = at.child("imagePullSecrets")
	there := spec.Member("imagePullSecrets")
	isList := there.IsList()
	if !isList && !there.IsNull() {
		return nil // the API server refuses this form
	}
	known := map[string]bool{}
	for _, entry := range there.Elements() {
		known[entry.Member("name").Text()] = true
	}
	var operations []Operation
	for _, name := range names {
		if known[name] {
			continue
		}
		known[name] = true
		if !isList {
			operations, isList = append(operations, Operation{Op: "add", Path: string(at), Value: []any{}}), true
		}
		operations = append(operations, Operation{Op: "add", Path: string(at.child("-")), Value: map[string]any{"name": name}})
	}
	return operations
}
