package mirror

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/quaymaster/quaymaster/image/mirror/internal/mapping"
)

// OpenShift's versions.
const (
	configVersion   = "config.openshift.io/v1"
	operatorVersion = "operator.openshift.io/v1alpha1"
)

// openshiftMirror is an entry of OpenShift's kinds.
type openshiftMirror struct {
	Source             string   `json:"source"`
	Mirrors            []string `json:"mirrors"`
	MirrorSourcePolicy string   `json:"mirrorSourcePolicy"`
}

func readDigestMirrors(d *Document, body []byte) ([]entrySpec, error) {
	var spec struct {
		Mirrors []openshiftMirror `json:"imageDigestMirrors"`
	}
	if err := decode(body, &spec, "spec"); err != nil {
		return nil, err
	}
	return readOpenShift(d, spec.Mirrors, "spec.imageDigestMirrors", ByDigest)
}

func readTagMirrors(d *Document, body []byte) ([]entrySpec, error) {
	var spec struct {
		Mirrors []openshiftMirror `json:"imageTagMirrors"`
	}
	if err := decode(body, &spec, "spec"); err != nil {
		return nil, err
	}
	return readOpenShift(d, spec.Mirrors, "spec.imageTagMirrors", ByTagOnly)
}

// readContentSources parses the predecessor of ImageDigestMirrorSet, which has no policy for the
// source.
func readContentSources(d *Document, body []byte) ([]entrySpec, error) {
	type mirror struct {
		Source  string   `json:"source"`
		Mirrors []string `json:"mirrors"`
	}
	var spec struct {
		Mirrors []mirror `json:"repositoryDigestMirrors"`
	}
	if err := decode(body, &spec, "spec"); err != nil {
		return nil, err
	}
	var same []openshiftMirror
	for _, m := range spec.Mirrors {
		same = append(same, openshiftMirror{Source: m.Source, Mirrors: m.Mirrors})
	}
	return readOpenShift(d, same, "spec.repositoryDigestMirrors", ByDigest)
}

// readOpenShift follows a node's behaviour at the pull. The mirror replaces the source, without
// prior verification (Present). A digest is the same from any server; a tag resolves at the
// mirror. A source that must not be contacted is not used for tags, evidence or pulls.
func readOpenShift(d *Document, mirrors []openshiftMirror, path string, pulls Pulls) ([]entrySpec, error) {
	if len(mirrors) == 0 {
		return nil, fmt.Errorf("%s: want at least one entry", path)
	}
	var specs []entrySpec
	var f faults
	for i, m := range mirrors {
		here := fmt.Sprintf("%s[%d]", path, i)
		e := entrySpec{
			Sources: []string{m.Source}, When: Present, Resolve: Source, Evidence: sides(Source, Target), pulls: pulls,
			name: fmt.Sprintf("%s/%s[%d]", d.Kind, d.Name, i), path: here, sourcePath: here + ".source",
			targetPath: func(i int) string { return fmt.Sprintf("%s.mirrors[%d]", here, i) },
		}
		if pulls == ByTagOnly {
			e.Resolve, e.Evidence = Target, sides(Target, Source)
		}
		switch m.MirrorSourcePolicy {
		case "", "AllowContactingSource":
		case "NeverContactSource":
			e.Otherwise, e.Resolve, e.Evidence = Deny, Target, sides(Target)
		default:
			f.add(here+".mirrorSourcePolicy", "%q is not known: want AllowContactingSource or NeverContactSource", m.MirrorSourcePolicy)
		}
		if len(m.Mirrors) == 0 || len(m.Mirrors) > maxTargets {
			f.add(here+".mirrors", "want 1 to %d of them, found %d", maxTargets, len(m.Mirrors))
		}
		for _, location := range m.Mirrors {
			e.Targets = append(e.Targets, targetSpec{Location: location, Path: replacePrefix})
		}
		specs = append(specs, e)
	}
	return specs, errors.Join(f.errs...)
}

func sides(all ...Side) []json.RawMessage {
	var raw []json.RawMessage
	for _, side := range all {
		raw = append(raw, json.RawMessage(`"`+side+`"`))
	}
	return raw
}

// readPairs parses a ConfigMap of pairs "registry: host/prefix". The whole path is kept, as in
// other programs with this format. Pairs do not require verification (Present), and the source is
// used where the mirror does not serve the image.
func readPairs(d *Document, body []byte) ([]entrySpec, error) {
	var pairs map[string]string
	if err := json.Unmarshal(body, &pairs); err != nil {
		return nil, fmt.Errorf("data: want pairs registry: host/prefix: %w", err)
	}
	keys := slices.Sorted(maps.Keys(pairs))
	if !slices.ContainsFunc(keys, mapping.IsRegistry) {
		return nil, fmt.Errorf("data: %w", ErrNoMapping)
	}
	var specs []entrySpec
	for _, key := range keys {
		here := fmt.Sprintf("data[%s]", key)
		specs = append(specs, entrySpec{
			Sources: []string{key}, Targets: []targetSpec{{Location: pairs[key], Path: keep}}, When: Present,
			name: fmt.Sprintf("%s/%s[%s]", d.Kind, d.Name, key), path: here, sourcePath: here,
			targetPath: func(int) string { return here },
		})
	}
	return specs, nil
}
