package cue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	cueerrors "cuelang.org/go/cue/errors"
)

// The bounds.
const (
	// maxPolicy is far above hand-written policies.
	maxPolicy = 64 << 10
	// maxData is the size of a large SBOM, in bytes of JSON.
	maxData = 4 << 20
	// maxTime is most of the time of an admission.
	maxTime = 2 * time.Second
	// maxRunning bounds concurrent evaluations of one policy, including those past their time.
	maxRunning = 4
	// maxWhy bounds the words of a failure.
	maxWhy = 500
)

// Options are the options of a compilation.
type Options struct {
	// Absent are members of the documents that are not in the input. A policy that refers to
	// one is refused: it would compare it with nothing.
	Absent []string
	// AbsentWhy is the reason, for messages.
	AbsentWhy string
	// Members are all that the documents may have; none means any. A field at the top
	// with another name that nothing uses, and that uses none of them, is refused: it
	// is misspelt, and would hold for everything.
	Members []string
	// Time bounds one evaluation; zero means 2 s.
	Time time.Duration
}

// Condition is a compiled policy. It is safe for concurrent use.
type Condition struct {
	text    string
	limit   time.Duration
	running chan struct{}
	// loops is the nesting depth of loops over independent lists; widest is the length of the
	// longest list in the policy, and splits means that it splits texts.
	loops, widest int
	splits        bool
	// declared are its declarations; hides means that some below the top are hidden.
	declared *cost
	hides    bool
	// names are its fields and the names that it refers to.
	names map[string]bool
}

// Compile refuses text that is no CUE, contradicts itself, imports a forbidden package or
// refers to an absent member.
func Compile(text string, options Options) (*Condition, error) {
	if len(text) > maxPolicy {
		return nil, fmt.Errorf("the policy of %d bytes exceeds the bound of %d", len(text), maxPolicy)
	}
	c := &Condition{text: text, limit: options.Time, running: make(chan struct{}, maxRunning)}
	if err := c.check(options); err != nil {
		return nil, err
	}
	if c.limit <= 0 {
		c.limit = maxTime
	}
	_, _, err := c.bounded(func() (bool, string, error) {
		return true, "", words(cuecontext.New().CompileString(text).Err())
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Reads reports whether the policy has a field of a name, at any depth, or refers to one.
func (c *Condition) Reads(name string) bool { return c.names[name] }

// Holds reports whether the policy holds for the data, decoded JSON. When it does
// not, why names the first thing that is missing or contradicts.
func (c *Condition) Holds(data any) (holds bool, why string, err error) {
	members, ok := data.(map[string]any)
	if !ok {
		return false, "", errors.New("the data is no object")
	}
	if err := c.affordable(data); err != nil {
		return false, "", err
	}
	text, err := json.Marshal(members)
	if err != nil {
		return false, "", err
	}
	if len(text) > maxData {
		return false, "", fmt.Errorf("the data of %d bytes exceeds the bound of %d", len(text), maxData)
	}
	return c.bounded(func() (bool, string, error) { return c.evaluate(text) })
}

// evaluate uses a context of its own, which keeps all that was ever evaluated in
// it.
func (c *Condition) evaluate(text []byte) (bool, string, error) {
	one := cuecontext.New()
	wanted, given := one.CompileString(c.text), one.CompileBytes(text)
	if err := errors.Join(words(wanted.Err()), words(given.Err())); err != nil {
		return false, "", err
	}
	unified := wanted.Unify(given)
	if err := unified.Validate(); err != nil {
		return false, words(err).Error(), nil
	}
	var data map[string]any
	if err := json.Unmarshal(text, &data); err != nil {
		return false, "", err
	}
	if err := c.checkAbsent(unified, data); err != nil {
		return false, words(err).Error(), nil
	}
	for name, value := range data {
		said, err := unified.LookupPath(cue.MakePath(cue.Str(name))).MarshalJSON()
		if err != nil { // something is left open
			return false, name + ": " + words(err).Error(), nil
		}
		var all any
		if err := json.Unmarshal(said, &all); err != nil {
			return false, "", err
		}
		if at := added(all, value, name); at != "" {
			return false, at + " is missing, and the policy names it", nil
		}
	}
	return true, "", nil
}

// added returns the path of something that the data does not have, or "".
func added(all, data any, path string) string {
	switch a := all.(type) {
	case map[string]any:
		d, ok := data.(map[string]any)
		if !ok {
			return path
		}
		for _, name := range sorted(a) {
			below, has := d[name]
			if !has {
				return path + "." + name
			}
			if at := added(a[name], below, path+"."+name); at != "" {
				return at
			}
		}
	case []any:
		d, ok := data.([]any)
		if !ok || len(d) != len(a) {
			return path
		}
		for i := range a {
			if at := added(a[i], d[i], path+"["+strconv.Itoa(i)+"]"); at != "" {
				return at
			}
		}
	default:
		if !reflect.DeepEqual(all, data) {
			return path
		}
	}
	return ""
}

func sorted(m map[string]any) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// outcome is the result of an evaluation.
type outcome struct {
	holds bool
	why   string
	err   error
}

// bounded waits for an evaluation as long as it may take.
func (c *Condition) bounded(evaluate func() (bool, string, error)) (bool, string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), c.limit)
	defer cancel()
	select {
	case c.running <- struct{}{}:
	case <-ctx.Done():
		return false, "", fmt.Errorf("%d evaluations of the policy in CUE are still going on", maxRunning)
	}
	done := make(chan outcome, 1)
	go func() {
		defer func() {
			<-c.running
			if defect := recover(); defect != nil {
				done <- outcome{err: fmt.Errorf("CUE: %v", defect)}
			}
		}()
		var out outcome
		out.holds, out.why, out.err = evaluate()
		done <- out
	}()
	select {
	case out := <-done:
		return out.holds, out.why, out.err
	case <-ctx.Done():
		return false, "", fmt.Errorf("the policy in CUE took longer than %s: %w", c.limit, ctx.Err())
	}
}

// words puts CUE's errors into one line.
func words(err error) error {
	if err == nil {
		return nil
	}
	var list []string
	for _, one := range cueerrors.Errors(err) {
		list = append(list, one.Error())
	}
	text := strings.Join(list, "; ")
	if len(text) > maxWhy {
		text = strings.ToValidUTF8(text[:maxWhy], "") + "..."
	}
	return errors.New(text)
}
