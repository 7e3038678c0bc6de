package converttest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/quaymaster/quaymaster/policy/convert"
)

// Golden converts a policy of a detectable format, and compares the result with the golden
// file next to it; update rewrites that file.
func Golden(file string, format convert.Format, update bool) error {
	filled, err := Read(file)
	if err != nil {
		return err
	}
	got, err := convert.Convert(filled, Options())
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	options := Options()
	options.From = format
	again, err := convert.Convert(filled, options)
	if err != nil {
		return fmt.Errorf("%s: the format that was recognised is not %s: %w", file, format, err)
	}
	if !bytes.Equal(got, again) {
		return fmt.Errorf("%s: the format that was recognised is not %s, or the output is not stable", file, format)
	}
	golden := strings.TrimSuffix(file, filepath.Ext(file)) + ".golden.yaml"
	if update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			return err
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("%s: got\n%s\nwant\n%s", file, got, want)
	}
	return nil
}

// Exchange is one replacement in a policy: the old text, the new text, and an expected
// part of the result, a refusal or a policy.
type Exchange [3]string

// Refused converts a policy, and then refuses it with one thing exchanged at a time,
// by path. The error is everything that went otherwise.
func Refused(base string, rows []Exchange) error {
	filled, err := Fill(base)
	if err != nil {
		return err
	}
	if _, err := convert.Convert(filled, Options()); err != nil {
		return fmt.Errorf("the base is refused: %w\n%s", err, base)
	}
	var wrong []error
	for _, row := range rows {
		wrong = append(wrong, row.refused(base))
	}
	return errors.Join(wrong...)
}

// Accepted converts a policy with one replacement at a time, and expects the last part of
// each row in the result, or, after "without: ", not in it. The error lists all
// deviations.
func Accepted(base string, rows []Exchange) error {
	var wrong []error
	for _, row := range rows {
		wrong = append(wrong, row.accepted(base))
	}
	return errors.Join(wrong...)
}

// ExpectRefusal expects a text to be refused for exactly the given problems, in the order of
// reading, and not for consequences of them: each part matches one problem, and each
// problem one part.
func ExpectRefusal(text string, parts ...string) error {
	filled, err := Fill(text)
	if err != nil {
		return err
	}
	refusal := new(convert.Refusal)
	if out, err := convert.Convert(filled, Options()); !errors.As(err, &refusal) {
		return fmt.Errorf("%s: no refusal, but %d bytes and %w", parts[0], len(out), err)
	}
	for i, part := range parts {
		if len(refusal.Problems) != len(parts) || !strings.Contains(refusal.Problems[i].Error(), part) {
			return fmt.Errorf("want %q in\n%w", parts, refusal)
		}
	}
	return nil
}

// convert converts the base with the exchange made.
func (e Exchange) convert(base string) ([]byte, error) {
	if !strings.Contains(base, e[0]) {
		return nil, fmt.Errorf("the base has no %q", e[0])
	}
	filled, err := Fill(strings.Replace(base, e[0], e[1], 1))
	if err != nil {
		return nil, err
	}
	return convert.Convert(filled, Options())
}

func (e Exchange) accepted(base string) error {
	out, err := e.convert(base)
	if err != nil {
		return fmt.Errorf("%s: %w", e[2], err)
	}
	comments := regexp.MustCompile(`\n *# `).ReplaceAllString(string(out), " ") // in one line each
	if part, without := strings.CutPrefix(e[2], "without: "); (strings.Contains(string(out), part) || strings.Contains(comments, part)) == without {
		return fmt.Errorf("%s: with %q instead of %q there is written\n%s", e[2], e[1], e[0], out)
	}
	return nil
}

func (e Exchange) refused(base string) error {
	problem := e[2]
	out, err := e.convert(base)
	refusal := new(convert.Refusal)
	switch {
	case err == nil:
		return fmt.Errorf("%s: no refusal, but %d bytes", problem, len(out))
	case !errors.As(err, &refusal) || len(out) > 0:
		return fmt.Errorf("%s: no refusal, but %d bytes and %w", problem, len(out), err)
	}
	found := false
	for _, p := range refusal.Problems {
		found = found || strings.Contains(p.Error(), problem)
		if p.Found == "" || p.Do == "" {
			return fmt.Errorf("%s: the finding or the fix is missing in %q", problem, p.Error())
		}
	}
	if !found {
		return fmt.Errorf("want %q in\n%w", problem, err)
	}
	return nil
}
