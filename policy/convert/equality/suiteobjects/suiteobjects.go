// Package suiteobjects reads the requests of test suites (cli.kyverno.io/v1alpha1 Test, Kyverno 1.19) for the comparison
// of two forms of a policy: the objects with the operations, users, namespaces and values of the requests.
package suiteobjects

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/convert/equality"
	"github.com/quaymaster/quaymaster/policy/suite"
	"github.com/quaymaster/quaymaster/policy/suite/document"
	"github.com/quaymaster/quaymaster/policy/suite/evaluation"
	"github.com/quaymaster/quaymaster/policy/suite/fixtures"
	"github.com/quaymaster/quaymaster/workload"
)

// maxFile bounds a file of objects.
const maxFile = 16 << 20

// Read returns the requests of the suites in folders and files. Notes name what is left out: values of rules that take
// the place of look-ups, which CEL does not read.
func Read(paths []string) (all []equality.Given, notes []string, err error) {
	files, err := suite.Find(paths, suite.FileName)
	if err != nil {
		return nil, nil, err
	}
	if len(files) == 0 {
		return nil, nil, fmt.Errorf("%s: no suite (%s) in it", strings.Join(paths, ", "), suite.FileName)
	}
	for _, file := range files {
		documents, err := document.Documents(file)
		if err != nil {
			return nil, nil, err
		}
		for _, d := range documents {
			s := reader{folder: filepath.Dir(file)}
			if err := s.read(d); err != nil {
				return nil, nil, fmt.Errorf("%s: %w", d.Source(), err)
			}
			all, notes = append(all, s.given...), append(notes, s.notes...)
		}
	}
	return all, notes, nil
}

// reader reads one suite.
type reader struct {
	folder string
	suite  *document.Suite
	values *fixtures.Values
	user   policy.User
	given  []equality.Given
	notes  []string
}

func (s *reader) read(d workload.Object) error {
	var unknown fixtures.Unknown
	var err error
	s.suite, err = document.Parse(d.JSON(), &unknown)
	if err != nil {
		return err
	}
	s.values, s.user = cmp.Or(s.suite.Values, &fixtures.Values{}), policy.User{RolesKnown: true}
	if s.suite.Variables != "" {
		s.values, err = fixtures.LoadValues(filepath.Join(s.folder, s.suite.Variables), &unknown)
		if err != nil {
			return fmt.Errorf("variables: %w", err)
		}
	}
	if s.suite.UserInfo != "" {
		s.user, err = fixtures.LoadUser(filepath.Join(s.folder, s.suite.UserInfo), &unknown)
		if err != nil {
			return fmt.Errorf("userinfo: %w", err)
		}
	}
	objects, err := s.objects(s.suite.Resources)
	if err != nil {
		return err
	}
	existing, err := s.objects(slices.Concat(s.suite.ClusterResources, s.suite.TargetResources))
	if err != nil {
		return err
	}
	existing = slices.DeleteFunc(existing, func(o workload.Object) bool { return o.Group() == "cli.kyverno.io" })
	for _, name := range s.policies() {
		for _, object := range objects {
			if err := s.add(name, object, existing); err != nil {
				return err
			}
		}
	}
	return nil
}

// policies are the names of the policies of the suite's results.
func (s *reader) policies() []string {
	names := map[string]bool{}
	for i := range s.suite.Results {
		names[s.suite.Results[i].Policy] = true
	}
	return slices.Sorted(maps.Keys(names))
}

func (s *reader) objects(names []string) (all []workload.Object, err error) {
	for _, name := range names {
		path := filepath.Join(s.folder, name)
		text, err := limit.ReadRegular(path, maxFile, path)
		if err != nil {
			return nil, err
		}
		objects, err := workload.Read(bytes.NewReader(text), path)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return evaluation.InNamespace(all, "default", constraint.Known()), nil
}

// add adds the requests about an object with the values of a policy, for each operation that results name.
func (s *reader) add(name string, object workload.Object, existing []workload.Object) error {
	if len(s.values.Looked(name, object.Name())) > 0 {
		s.notes = append(s.notes, fmt.Sprintf("%s for %s is left out: the suite has values of %s in place of look-ups",
			object, name, strings.Join(s.values.Looked(name, object.Name()), ", ")))
		return nil
	}
	operations := map[string]bool{}
	for i := range s.suite.Results {
		row := &s.suite.Results[i]
		if row.Policy == name && (!row.Names() || slices.ContainsFunc(row.Resources, func(r string) bool { return strings.HasSuffix(r, object.Name()) })) {
			operations[row.Operation] = true
		}
	}
	if len(operations) == 0 {
		operations[""] = true
	}
	for _, operation := range slices.Sorted(maps.Keys(operations)) {
		request := gate.Request{Object: object}
		request.Subject.Operation, request.Subject.User = operation, s.user
		request, err := fixtures.Apply(request, s.values.Request(name, object.Name()), nil)
		if err != nil {
			return fmt.Errorf("the values for %s: %w", object, err)
		}
		_, bare, _ := cutLast(name)
		one := equality.Given{Policy: bare, Request: request, Existing: existing}
		one.NamespaceLabels, _ = s.values.NamespaceLabels(cmp.Or(request.Subject.Namespace, object.Namespace()))
		s.given = append(s.given, one)
	}
	return nil
}

// cutLast cuts a namespace from the name of a policy.
func cutLast(name string) (namespace, bare string, found bool) {
	at := strings.LastIndex(name, "/")
	if at < 0 {
		return "", name, false
	}
	return name[:at], name[at+1:], true
}
