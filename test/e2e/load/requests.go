package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// patience is the time between two polls, so that polling is no load.
const patience = 100 * time.Millisecond

// refusal is the gateway's denial of an unsigned image, and no failure.
type refusal struct{ said string }

func (r *refusal) Error() string { return r.said }

// errUnpinned: admission by the gateway is by digest.
var errUnpinned = errors.New("the image came back without a digest")

// encode returns a pod; an empty scheduler leaves it pending.
func encode(image, scheduler string) []byte {
	if scheduler == "" {
		scheduler = "nobody"
	}
	body, err := json.Marshal(core.Pod{
		TypeMeta:   meta.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: meta.ObjectMeta{GenerateName: "web-", Labels: map[string]string{"app": "web", "team": "shop"}},
		Spec:       template(image, scheduler),
	})
	if err != nil {
		panic(err) // a struct of Kubernetes' can be encoded
	}
	return body
}

// create creates a pod, for good, and returns its name. In a namespace that the gateway looks
// at the image has to come back by digest.
func (s *stand) create(ctx context.Context, namespace string, body []byte) (name string, err error) {
	url := s.plane.Admin().Host + "/api/v1/namespaces/" + namespace + "/pods"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := s.http.Do(request)
	if err != nil {
		return "", err
	}
	answer, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusCreated {
		said := response.Status + ": " + strings.TrimSpace(string(answer))
		if strings.Contains(said, "[unsigned]") {
			return "", &refusal{said}
		}
		return "", errors.New(said)
	}
	var made core.Pod
	if err := json.Unmarshal(answer, &made); err != nil {
		return "", err
	}
	if namespace != pairNamespace && !strings.Contains(made.Spec.Containers[0].Image, "@sha256:") {
		return "", errUnpinned
	}
	return made.Name, nil
}

// clear deletes the pods of a namespace, and returns when they are gone.
func (s *stand) clear(ctx context.Context, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	pods, now := s.client.CoreV1().Pods(namespace), new(int64)
	if err := pods.DeleteCollection(ctx, meta.DeleteOptions{GracePeriodSeconds: now}, meta.ListOptions{}); err != nil {
		return err
	}
	return patiently(ctx, func(ctx context.Context) error {
		left, err := pods.List(ctx, meta.ListOptions{Limit: 1})
		if err == nil && len(left.Items) > 0 {
			err = fmt.Errorf("pods are left in %s", namespace)
		}
		return err
	})
}

// patiently calls check until it returns nil or ctx ends.
func patiently(ctx context.Context, check func(context.Context) error) error {
	tick := time.NewTicker(patience)
	defer tick.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}
