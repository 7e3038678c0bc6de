package podsecurity

import (
	"fmt"
	"slices"

	"k8s.io/pod-security-admission/api"
	upstream "k8s.io/pod-security-admission/policy"

	"github.com/quaymaster/quaymaster/policy/internal/field"
)

// Standard is a compiled validate.podSecurity. It is immutable.
type Standard struct {
	level, version string // as written
	checks         []check
	exclusions     *Exclusions
}

// check is a check of Kubernetes in the revision that a version has.
type check struct {
	id      string
	control string // as policies name it
	run     upstream.CheckPodFn
}

// Compile compiles a standard and a policy's exclusions. Level is privileged, baseline or
// restricted; version is v1.0 or later, latest, or empty for latest. Errors are about
// fields, with paths below podSecurity.
func Compile(level, version string, exclusions []Exclusion) (*Standard, error) {
	l, err := api.ParseLevel(level)
	if err != nil {
		return nil, field.Fail("level", "%q: %w", level, err)
	}
	v := api.LatestVersion()
	if version != "" {
		v, err = api.ParseVersion(version)
		if err != nil {
			return nil, field.Fail("version", "%q: %w", version, err)
		}
	}
	compiled, err := compileExclusions(exclusions, "exclude", l)
	if err != nil {
		return nil, err
	}
	s := &Standard{level: level, version: version, exclusions: compiled}
	for _, c := range upstream.DefaultChecks() {
		if run := revision(c, l, v); run != nil {
			s.checks = append(s.checks, check{id: string(c.ID), control: controlOf(string(c.ID)).name, run: run})
		}
	}
	return s, nil
}

// revision returns a check as a level and version have it; nil if the level does not. A version
// before the check has its first revision, as in Kyverno. Checks of
// restricted that replace baseline's run in addition to them, as in Kyverno: the weaker
// one is met whenever the other is, and an exclusion of one leaves the other.
func revision(c upstream.Check, level api.Level, version api.Version) upstream.CheckPodFn {
	if level == api.LevelPrivileged || level == api.LevelBaseline && c.Level != level {
		return nil
	}
	run := c.Versions[0].CheckPod // Kubernetes' checks have one at least
	for _, r := range c.Versions[1:] {
		if !version.Older(r.MinimumVersion) {
			run = r.CheckPod
		}
	}
	return run
}

// Check reports whether a pod meets the standard. An error means that the pod could not be
// read, and implies nothing about the standard.
func (s *Standard) Check(pod *Pod) (Result, error) {
	result := Result{Level: s.level, Version: s.version}
	if len(s.checks) == 0 {
		return result, nil
	}
	typed, err := pod.typed()
	if err != nil {
		return Result{}, fmt.Errorf("pod security %s: %w", s.level, err)
	}
	for _, c := range s.checks {
		answer := c.run(&typed.meta, &typed.spec)
		if answer.Allowed {
			continue
		}
		f := finder{check: c.run, meta: &typed.meta, spec: &typed.spec}
		result.Violations = append(result.Violations, Violation{
			ID: c.id, Control: c.control, Reason: answer.ForbiddenReason, Detail: answer.ForbiddenDetail,
			path: pod.path, faults: f.find(c.id),
		})
	}
	return result.Except(s.exclusions), nil
}

// Except returns the result without further excluded violations.
func (r Result) Except(more ...*Exclusions) Result {
	var left []Violation
	for _, v := range r.Violations {
		if v, ok := v.except(more); !ok {
			left = append(left, v)
		}
	}
	r.Violations = left
	return r
}

// except removes the excluded fields, and reports whether none is left. A violation
// without known fields stays.
func (v Violation) except(more []*Exclusions) (Violation, bool) {
	if len(v.faults) == 0 {
		return v, false
	}
	v.faults = slices.DeleteFunc(slices.Clone(v.faults), func(f fault) bool {
		return anyOf(more, func(e exclusion) bool { return e.covers(v.ID, f) })
	})
	if anyOf(more, func(e exclusion) bool { return e.ofPodAlone(v.ID) }) {
		v.needsImages = slices.ContainsFunc(v.faults, func(f fault) bool { return f.container })
	}
	return v, len(v.faults) == 0
}

func anyOf(all []*Exclusions, is func(exclusion) bool) bool {
	return slices.ContainsFunc(all, func(e *Exclusions) bool { return e != nil && slices.ContainsFunc(e.list, is) })
}
