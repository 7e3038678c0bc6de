package suites

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/quaymaster/quaymaster/policy/suite"
	"github.com/quaymaster/quaymaster/policy/suite/document"
	"github.com/quaymaster/quaymaster/policy/suite/evaluation"
	"github.com/quaymaster/quaymaster/policy/suite/result"
)

// Settle runs a converted suite and returns its text with skip in place of pass, and the reverse, where a policy leaves an
// object aside in one form and passes it in the other. Both admit it. Other results remain as they are.
func Settle(ctx context.Context, file string) ([]byte, error) {
	text, err := document.ReadFile(file)
	if err != nil {
		return nil, err
	}
	got := map[string]string{} // by policy and object
	for _, s := range suite.Run(ctx, []string{file}, suite.Options{}).Suites {
		for _, c := range s.Checks {
			admits := []string{evaluation.Pass, evaluation.Skip}
			if c.Outcome == result.Failed && slices.Contains(admits, c.Want) && slices.Contains(admits, c.Got) {
				got[c.Policy+" "+c.Resource] = c.Got
			}
		}
	}
	if len(got) == 0 {
		return text, nil
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var node yaml.Node
		err := decoder.Decode(&node)
		if errors.Is(err, io.EOF) {
			return out.Bytes(), encoder.Close()
		}
		if err != nil {
			return nil, fmt.Errorf("read the suite: %w", err)
		}
		if list := field(node.Content[0], "results"); list != nil {
			list.Content = settled(list.Content, got)
		}
		if err := encoder.Encode(&node); err != nil {
			return nil, fmt.Errorf("write the suite: %w", err)
		}
	}
}

// settled splits rows by the results that their objects have.
func settled(rows []*yaml.Node, got map[string]string) (out []*yaml.Node) {
	other := map[string]string{evaluation.Pass: evaluation.Skip, evaluation.Skip: evaluation.Pass}
	for _, row := range rows {
		instead := other[at(row, "result")]
		differs := func(one *yaml.Node) bool {
			for key, result := range got {
				policy, object, _ := strings.Cut(key, " ")
				if result == instead && policy == at(row, "policy") && strings.HasPrefix(object, at(row, "kind")+"/") && strings.HasSuffix(object, "/"+nameOf(one)) {
					return true
				}
			}
			return false
		}
		list := field(row, "resources")
		if instead == "" || list == nil || !slices.ContainsFunc(list.Content, differs) {
			out = append(out, row)
			continue
		}
		same, moved := *list, *list
		same.Content = slices.DeleteFunc(slices.Clone(list.Content), differs)
		moved.Content = slices.DeleteFunc(slices.Clone(list.Content), func(one *yaml.Node) bool { return !differs(one) })
		if len(same.Content) > 0 {
			out = append(out, set(row, "resources", &same, ""))
		}
		out = append(out, set(set(row, "resources", &moved, ""), "result", scalar(instead), ""))
	}
	return out
}
