package converttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	celgo "github.com/google/cel-go/cel"
	"go.yaml.in/yaml/v3"

	"github.com/quaymaster/quaymaster/policy/convert"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// Digest is one that no image has.
const Digest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

// Written holds the fields of a written policy that tests read.
type Written struct {
	Kind     string
	Metadata struct{ Name, Namespace string }
	Spec     struct {
		MatchImageReferences []struct{ Glob, Expression string } `yaml:"matchImageReferences"`
		Validations          []struct{ Expression, Message string }
	}
}

// Policies converts a policy and reads the result.
func Policies(text string, options convert.Options) ([]Written, error) {
	out, err := convert.Convert([]byte(text), options)
	if err != nil {
		return nil, err
	}
	var list []Written
	for decoder := yaml.NewDecoder(bytes.NewReader(out)); ; {
		var one Written
		if err := decoder.Decode(&one); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, fmt.Errorf("%w in\n%s", err, out)
		}
		if one.Kind != "" {
			list = append(list, one)
		}
	}
}

// Matcher evaluates the expressions of matchImageReferences.
type Matcher struct {
	scope    *cel.Scope
	programs map[string]*cel.Program
}

// NewMatcher returns a matcher that has compiled nothing.
func NewMatcher() (*Matcher, error) {
	env, err := cel.NewEnv(cel.Options{Variables: []cel.Variable{{Name: "ref", Type: celgo.StringType}}})
	if err != nil {
		return nil, err
	}
	scope, err := env.NewScope()
	if err != nil {
		return nil, err
	}
	return &Matcher{scope: scope, programs: map[string]*cel.Program{}}, nil
}

// Matches reports whether a policy matches a reference, without normalization.
func (m *Matcher) Matches(p Written, ref string) (bool, error) {
	for _, one := range p.Spec.MatchImageReferences {
		program, known := m.programs[one.Expression]
		if !known {
			var err error
			program, err = m.scope.Compile("expression", one.Expression, celgo.BoolType)
			if err != nil {
				return false, fmt.Errorf("policy %s: %w", p.Metadata.Name, err)
			}
			m.programs[one.Expression] = program
		}
		held, err := program.Bool(context.Background(), m.scope.NewActivation(cel.Inputs{Variables: map[string]any{"ref": ref}}))
		if err != nil {
			return false, fmt.Errorf("policy %s of %s: %w", p.Metadata.Name, ref, err)
		}
		if held {
			return true, nil
		}
	}
	return false, nil
}

// Names returns the names of the policies that match a reference; empty, not nil, if none
// does.
func (m *Matcher) Names(list []Written, ref string) ([]string, error) {
	names := []string{}
	for _, p := range list {
		matched, err := m.Matches(p, ref)
		if err != nil {
			return nil, err
		}
		if matched {
			names = append(names, p.Metadata.Name)
		}
	}
	return names, nil
}

// Chosen converts the policy of a file and compares for each image the names of the
// policies that match it: none where the source admits without verification. The error
// lists all deviations.
func Chosen(file string, want map[string][]string) error {
	text, err := Read(file)
	if err != nil {
		return err
	}
	list, err := Policies(string(text), Options())
	if err != nil {
		return err
	}
	m, err := NewMatcher()
	if err != nil {
		return err
	}
	var wrong []error
	for ref, names := range want {
		got, err := m.Names(list, ref)
		if err == nil && !slices.Equal(got, names) {
			err = fmt.Errorf("%s: the policies %q match %s, want %q", file, got, ref, names)
		}
		wrong = append(wrong, err)
	}
	return errors.Join(wrong...)
}
