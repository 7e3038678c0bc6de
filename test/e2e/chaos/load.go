package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/test/e2e/chaos/checker"
	"github.com/quaymaster/quaymaster/test/e2e/chaos/port"
)

// What pods are wanted in turn: known images by tag and by digest, and new ones.
var mix = []struct {
	truth    checker.Truth
	fresh    bool
	byDigest bool
}{
	{checker.Signed, false, false},
	{checker.Unsigned, false, false},
	{checker.Signed, false, true},
	{checker.Signed, true, false},
	{checker.Foreign, false, false},
	{checker.Signed, false, true},
	{checker.Unsigned, false, true},
	{checker.Signed, false, false},
	{checker.Foreign, false, true},
	{checker.Unsigned, true, false},
}

// prefix begins the names of the namespaces that policies match; the load goes to the
// first of them, in turn.
const prefix, namespaces = "chaos-", 4

// patience is how long an answer of the API server is waited for: the time of both webhooks,
// and some.
const patience = 30 * time.Second

// inFlight bounds the requests at work: what a second fault may find of the first.
const inFlight = 2000

// load wants pods at a steady rate until ctx ends, and returns when all are answered.
func (s *stand) load(ctx context.Context) error {
	tick := time.NewTicker(time.Second / time.Duration(s.settings.rate))
	defer tick.Stop()
	var work sync.WaitGroup
	defer work.Wait()
	places := make(chan struct{}, inFlight)
	for turn := 0; ; turn++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		image, byDigest, err := s.pick(turn)
		if err != nil {
			return err
		}
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		work.Go(func() {
			defer func() { <-places }()
			s.want(context.WithoutCancel(ctx), fmt.Sprint(prefix, (turn+turn/len(mix))%namespaces), image, byDigest)
		})
	}
}

// pick chooses the image of a turn; the registries take turns, too.
func (s *stand) pick(turn int) (image port.Image, byDigest bool, err error) {
	kind, round := mix[turn%len(mix)], turn/len(mix)
	p := s.ports[round%len(s.ports)]
	if kind.fresh {
		image, err = p.New(kind.truth)
		return image, kind.byDigest, err
	}
	return p.Image(kind.truth, round/len(s.ports)), kind.byDigest, nil
}

// want asks for a pod, notes the answer, and takes the pod away.
func (s *stand) want(ctx context.Context, namespace string, image port.Image, byDigest bool) checker.Answer {
	a := checker.Answer{
		Namespace: namespace, Pod: fmt.Sprint("web-", s.wanted.Add(1)), Image: image.Name, Digest: image.Digest,
		Truth: image.Truth, New: image.New, Start: time.Now(),
	}
	if byDigest {
		a.Image = image.ByDigest
	}
	s.record.Begin(&a)
	status, text := s.create(ctx, &a)
	a.End = time.Now()
	a.Outcome, a.Codes = checker.Read(status, text)
	if a.Outcome == checker.Admitted {
		var made core.Pod
		if err := json.Unmarshal([]byte(text), &made); err == nil && len(made.Spec.Containers) == 1 {
			a.Ran = made.Spec.Containers[0].Image
		}
	} else {
		a.Text = text
	}
	s.record.Add(a)
	if a.Outcome == checker.Admitted && a.Truth == checker.Signed { // a wrong pod stays, to be inspected
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		now := new(int64)
		_ = s.client.CoreV1().Pods(namespace).Delete(ctx, a.Pod, meta.DeleteOptions{GracePeriodSeconds: now}) // a pod that is left does no harm
	}
	return a
}

// create returns the API server's answer; status 0: none.
func (s *stand) create(ctx context.Context, a *checker.Answer) (status int, text string) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	pod := core.Pod{
		TypeMeta:   meta.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: meta.ObjectMeta{Name: a.Pod, Labels: map[string]string{"app": "web"}},
		Spec:       core.PodSpec{SchedulerName: "nobody", Containers: []core.Container{{Name: "web", Image: a.Image}}},
	}
	if owner, ok := s.owners[a.Namespace+a.Digest]; ok {
		pod.OwnerReferences = []meta.OwnerReference{owner}
	}
	body, err := json.Marshal(pod)
	if err != nil {
		return 0, err.Error()
	}
	url := s.plane.Admin().Host + "/api/v1/namespaces/" + a.Namespace + "/pods"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := s.http.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	said, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, unquoted(response.StatusCode, said)
}

// unquoted is the message of a refusal, and everything else as it came.
func unquoted(status int, said []byte) string {
	var answer meta.Status
	if status != http.StatusCreated && json.Unmarshal(said, &answer) == nil && answer.Message != "" {
		return answer.Message
	}
	return string(said)
}
