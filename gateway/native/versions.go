package native

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"

	convert "github.com/quaymaster/quaymaster/policy/convert/native"
)

// served reads which versions of the kinds the API server serves, and its own version.
func served(api discovery.DiscoveryInterface) (versions, error) {
	info, err := api.ServerVersion()
	if err != nil {
		return versions{}, fmt.Errorf("the version of the API server: %w", err)
	}
	own, err := version.ParseGeneric(info.GitVersion)
	if err != nil {
		return versions{}, fmt.Errorf("the version of the API server: %w", err)
	}
	// Later versions are treated as the newest one that is known here.
	known := version.MustParseGeneric(convert.Newest)
	if own.GreaterThan(known) {
		own = known
	}
	found := versions{kubernetes: fmt.Sprintf("%d.%d", own.Major(), own.Minor())}
	for _, in := range []string{"v1beta1", "v1"} {
		list, err := api.ServerResourcesForGroupVersion(group + "/" + in)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return versions{}, fmt.Errorf("the resources of %s/%s: %w", group, in, err)
		}
		for _, r := range list.APIResources {
			switch resource(r.Name) {
			case validatingPolicies:
				found.validating = in
			case mutatingPolicies:
				found.mutating = in
			}
		}
	}
	return found, nil
}
