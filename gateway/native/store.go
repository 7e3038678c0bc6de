package native

import (
	"context"
	"fmt"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/quaymaster/quaymaster/gateway/native/record"
)

// store reads and writes the ConfigMaps of package record.
type store struct {
	client    typed.ConfigMapsGetter
	namespace string
}

// states reads what this component recorded. Malformed states are none: nothing is then native.
func (s store) states(ctx context.Context) (record.States, *core.ConfigMap, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	have, err := s.client.ConfigMaps(s.namespace).Get(ctx, record.Enforced, meta.GetOptions{})
	if apierrors.IsNotFound(err) {
		return record.States{}, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the ConfigMap %s: %w", record.Enforced, err)
	}
	states, err := record.DecodeStates(have.Data)
	if err != nil {
		return record.States{}, have, nil
	}
	return states, have, nil
}

// save records the states in place of the ConfigMap that was read, nil for none.
func (s store) save(ctx context.Context, states record.States, have *core.ConfigMap) (*core.ConfigMap, error) {
	data, err := states.Encode()
	if err != nil {
		return have, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if have == nil {
		have, err = s.client.ConfigMaps(s.namespace).Create(ctx, &core.ConfigMap{
			ObjectMeta: meta.ObjectMeta{Namespace: s.namespace, Name: record.Enforced, Labels: map[string]string{"app.kubernetes.io/name": "quaymaster"}}, Data: data,
		}, meta.CreateOptions{})
	} else {
		have = have.DeepCopy()
		have.Data = data
		have, err = s.client.ConfigMaps(s.namespace).Update(ctx, have, meta.UpdateOptions{})
	}
	if err != nil {
		return nil, fmt.Errorf("write the ConfigMap %s: %w", record.Enforced, err)
	}
	return have, nil
}

// coverage reads which policies the webhooks enforce. A malformed record is none: the next states have it written anew.
func (s store) coverage(ctx context.Context) (coverage record.Coverage, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	have, err := s.client.ConfigMaps(s.namespace).Get(ctx, record.Covered, meta.GetOptions{})
	if apierrors.IsNotFound(err) {
		return coverage, nil
	}
	if err != nil {
		return coverage, fmt.Errorf("read the ConfigMap %s: %w", record.Covered, err)
	}
	coverage, err = record.DecodeCoverage(have.Data)
	if err != nil {
		return record.Coverage{}, nil
	}
	return coverage, nil
}
