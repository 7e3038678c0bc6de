package imagevalidating

import (
	"strings"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/imagevalidating/internal/pointer"
)

// placesOf returns the possible places of the images of an expression. Locate selects the images
// among these values. None means that the places are unknown.
func placesOf(name, expression string) ([]policy.Extractor, error) {
	paths, err := pointer.OfList(expression)
	if err != nil {
		return nil, err
	}
	list := make([]policy.Extractor, len(paths))
	for i, path := range paths {
		list[i] = policy.Extractor{Name: name, Path: path}
	}
	return list, nil
}

// podSpec is where the kinds of Kubernetes keep their pod specification.
func podSpec(group, kind string) (string, bool) {
	switch group + "/" + kind {
	case "/Pod":
		return "/spec", true
	case "/PodTemplate":
		return "/template/spec", true
	case "/ReplicationController", "apps/Deployment", "apps/StatefulSet", "apps/DaemonSet", "apps/ReplicaSet", "batch/Job":
		return "/spec/template/spec", true
	case "batch/CronJob":
		return "/spec/jobTemplate/spec/template/spec", true
	}
	return "", false
}

// standardPlaces are the places of a pod specification, as extractors.
func standardPlaces(spec string) []policy.Extractor {
	list := []policy.Extractor{{Name: "imageVolumes", Path: spec + "/volumes/*/image", Value: "reference"}}
	for _, name := range []string{"containers", "initContainers", "ephemeralContainers"} {
		list = append(list, policy.Extractor{Name: name, Path: spec + "/" + name + "/*", Value: "image", Key: "name"})
	}
	return list
}

// isStandard reports whether a place is one of a pod specification.
func isStandard(place policy.Extractor, spec string) bool {
	rest, ok := strings.CutPrefix(place.Path, spec)
	if !ok || spec == "" {
		return false
	}
	switch rest {
	case "/containers/*/image", "/initContainers/*/image", "/ephemeralContainers/*/image", "/volumes/*/image/reference":
		return true
	}
	return false
}

// places returns where a rule's images are in objects of a kind, if they are
// elsewhere than in a pod specification; the places of that are then among them.
func (p *program) places(group, kind string, t kyvernocel.Template) []policy.Extractor {
	spec, hasSpec := podSpec(group, kind)
	var own []policy.Extractor
	for _, e := range p.extractors {
		for _, place := range e.places {
			place.Path = t.Pointer(place.Path)
			if !isStandard(place, spec) {
				own = append(own, place)
			}
		}
	}
	if len(own) == 0 || !hasSpec {
		return own
	}
	return append(standardPlaces(spec), own...)
}
