// Package node answers containerd as an image verifier, with the files that a node's settings name.
package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster-node/imageverifier"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/authority"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/setup"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/policy"
)

// Verify handles a request of containerd and returns the exit status. It is called if the
// arguments are containerd's (imageverifier.IsAsked), which contain no command.
func Verify(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := imageverifier.Process{In: stdin, Out: stdout, Err: stderr, Env: os.Getenv}
	look := func(ctx context.Context, settings *imageverifier.Settings, question imageverifier.Question) (imageverifier.Verdict, error) {
		return lookLocally(ctx, settings, question, command.Terminal{In: stdin, Out: stdout, Err: stderr, Env: os.Getenv})
	}
	return imageverifier.Run(ctx, args, p, look)
}

// lookLocally verifies an image with the files that a node's settings name.
func lookLocally(ctx context.Context, settings *imageverifier.Settings, question imageverifier.Question, t command.Terminal) (imageverifier.Verdict, error) {
	local := settings.Local
	if local == nil {
		return imageverifier.Verdict{}, errors.New("the settings have no section local; quaymaster-node asks a gateway")
	}
	for _, name := range local.Mirrors {
		if err := limit.CheckRegular(name); err != nil {
			return imageverifier.Verdict{}, fmt.Errorf("local.mirrors: %w", err)
		}
	}
	request, err := gate.ForImage(question.Image, settings.Namespace)
	if err != nil {
		return imageverifier.Verdict{}, err
	}
	// containerd names an image and no workload.
	request.Anonymous, request.Subject.Bare = true, true
	inputs := setup.Flags{
		Policies: local.Policies, Resources: local.Resources, Mirrors: local.Mirrors, TrustedRoot: local.TrustedRoot,
		RegistryCA: local.RegistryCA, PlainHTTP: local.PlainHTTP, Timeout: time.Minute, // ctx ends before
	}
	authorities := authority.OfKeys(local.Keys, local.IgnoreTlog)
	requests := []gate.Request{request}
	wired, err := inputs.NewEngine(ctx, t, authorities, requests)
	if err != nil {
		return imageverifier.Verdict{}, err
	}
	wired.Resources.DescribeNamespaces(requests)
	return nodeVerdict(wired.Gate.Decide(ctx, requests[0]), settings, question)
}

// nodeVerdict accepts an outcome only for exactly the requested image.
func nodeVerdict(o gate.Outcome, settings *imageverifier.Settings, question imageverifier.Question) (imageverifier.Verdict, error) {
	words := map[gate.Result]string{gate.Allow: "allowed", gate.Unchecked: "unchecked", gate.Deny: "denied", gate.Error: "could not be verified"}
	reasons := o.Reasons
	if len(o.Verdicts) == 1 {
		reasons = append(o.Verdicts[0].Reasons, reasons...)
	}
	told := words[o.Result]
	if len(reasons) > 0 {
		told += ": " + reasonText(reasons[0])
	}
	switch {
	case !o.Result.Admits():
		return imageverifier.Verdict{Reason: told}, nil
	case len(o.Verdicts) != 1:
		return imageverifier.Verdict{}, fmt.Errorf("%d images were judged, and one was asked about", len(o.Verdicts))
	}
	v := &o.Verdicts[0]
	switch {
	case v.Image.Ref.Digest() != question.Digest || !v.Pinned.IsZero() && v.Pinned.Digest() != question.Digest:
		return imageverifier.Verdict{}, fmt.Errorf("%s was judged, and %s was asked about", v.Image.Ref, question.Image)
	case settings.RequireMatch && !v.Matched():
		return imageverifier.Verdict{Reason: "no policy matches " + question.Image + ", and requireMatch is set"}, nil
	}
	return imageverifier.Verdict{Allowed: true, Reason: told}, nil
}

func reasonText(r policy.Reason) string { return string(r.Code) + ": " + r.Message }
