package apply

import (
	"errors"
	"fmt"
	"strings"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/manifest"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/suite/fixtures"
	"github.com/quaymaster/quaymaster/policy/suite/trial"
	"github.com/quaymaster/quaymaster/workload"
)

// advice says how flags give what is missing.
func advice() trial.Advice {
	return trial.Advice{Missing: "no file has it", Object: "give it with -r FILE", Value: "set the value that the rule reads with --set or --values-file"}
}

// given reads the values that replace look-ups, and the requesting user.
func (f *applyFlags) given() (*fixtures.Values, *policy.User, error) {
	values := &fixtures.Values{}
	if f.values != "" {
		var err error
		values, err = fixtures.LoadValues(f.values, nil)
		if err != nil {
			return nil, nil, fmt.Errorf("--values-file: %w", err)
		}
	}
	for _, pair := range f.set {
		for one := range strings.SplitSeq(pair, ",") {
			if err := values.Set(one); err != nil {
				return nil, nil, fmt.Errorf("--set: %w", err)
			}
		}
	}
	if f.user == "" {
		return values, nil, nil
	}
	user, err := fixtures.LoadUser(f.user, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("--userinfo: %w", err)
	}
	return values, &user, nil
}

// read reads policies and objects.
func (f *applyFlags) read(t command.Terminal, policies []string) (*trial.Input, error) {
	from := trial.NewInput(advice())
	for _, name := range policies {
		objects, err := manifest.ReadPolicies(name, t.In)
		if err != nil {
			from.Unread = append(from.Unread, fmt.Errorf("%s: %w", name, err))
		}
		for _, object := range objects {
			if err := from.AddPolicy(object); err != nil {
				return nil, err
			}
		}
	}
	if err := from.CheckDefinitions(); err != nil {
		return nil, err
	}
	if len(from.Policies) == 0 {
		if err := errors.Join(from.Unread...); err != nil {
			return nil, err
		}
		if len(from.Exceptions) > 0 {
			return nil, fmt.Errorf("%s: only exceptions in it; pass them with --exception", strings.Join(policies, ", "))
		}
		return nil, fmt.Errorf("%s: no policy in it", strings.Join(policies, ", "))
	}
	for _, name := range f.exceptions {
		objects, err := manifest.ReadPolicies(name, nil)
		if err != nil {
			return nil, fmt.Errorf("--exception %s: %w", name, err)
		}
		from.Exceptions = append(from.Exceptions, objects...)
	}
	return from, f.objects(t, from)
}

// objects reads the evaluated objects.
func (f *applyFlags) objects(t command.Terminal, from *trial.Input) error {
	var all []workload.Object
	for _, name := range f.resources {
		objects, err := manifest.Read(name, t.In)
		if err != nil {
			return fmt.Errorf("-r %s: %w", name, err)
		}
		if len(objects) == 0 {
			from.Warnings = append(from.Warnings, "-r "+name+": no objects in it")
		}
		all = append(all, objects...)
	}
	if len(all) == 0 && !f.cluster {
		return fmt.Errorf("-r %s: no objects in it", strings.Join(f.resources, ", "))
	}
	if err := from.SetObjects(all, f.namespace); err != nil {
		return fmt.Errorf("-r: %w", err)
	}
	return from.KnowObjects()
}
