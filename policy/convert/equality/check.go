package equality

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/convert/equality/internal/facts"
	"github.com/quaymaster/quaymaster/policy/convert/equality/internal/sampling"
	"github.com/quaymaster/quaymaster/policy/convert/equality/internal/world"
	"github.com/quaymaster/quaymaster/policy/suite/evaluation"
	"github.com/quaymaster/quaymaster/workload"
)

// Sample is a request about an object, as an API server sends it.
type Sample = sampling.Sample

// User is the user of a Sample.
type User = sampling.User

// Live are the look-ups of a cluster.
type Live = world.Live

// Options are the inputs of a check.
type Options struct {
	// Source and Result are the two forms of one policy, or of policies that belong together; required.
	Source, Result []workload.Object
	// Beside are documents that the policies look up, exceptions, and definitions of custom kinds.
	Beside []workload.Object
	// Given are objects that are evaluated besides the generated ones.
	Given []workload.Object
	// Requests are evaluated besides them, such as those of suites.
	Requests []Given
	// Objects is how many samples are evaluated; 0 means DefaultObjects.
	Objects int
	// Seed selects the samples: the same seed makes the same ones.
	Seed uint64
	// UntilDifferent ends the check with the first batch in which a sample differs.
	UntilDifferent bool
	// Live serves look-ups about the objects of Checker.Live; nil means that nothing else exists.
	Live *Live
	// Progress receives the number of evaluated samples; nil for none.
	Progress func(done int)
}

const (
	// DefaultObjects is the number of samples for a policy: with fewer, changes of single operators in the
	// policies of the tests are missed, and more find none besides.
	DefaultObjects = 4000
	// MaxObjects bounds the samples for one policy.
	MaxObjects = 10_000_000
	// maxDifferences bounds the differences that are reported of one policy, each of another sort.
	maxDifferences = 5
	// batchSize is the number of samples that are evaluated at once.
	batchSize = 64
	// lookingBatch is that of policies which look up other objects: those are drawn for each batch.
	lookingBatch = 8
)

// Difference is an object for which the two forms differ.
type Difference struct {
	// By is the gravest of ByVerdict, ByObject and ByMessage.
	By string `json:"by"`
	// Sample is the smallest one that was found.
	Sample Sample  `json:"sample"`
	Source Verdict `json:"source"`
	Result Verdict `json:"result"`
}

// Report is the result of a check.
type Report struct {
	// Seed repeats the run.
	Seed uint64 `json:"seed"`
	// Objects is the number of evaluated samples, Matched how many of them a rule of the source matched.
	Objects int `json:"objects"`
	Matched int `json:"matched"`
	// Running is the number of the samples that are objects of a cluster.
	Running int `json:"running,omitempty"`
	// Verdicts counts the verdicts of the source.
	Verdicts map[string]int `json:"verdicts"`
	// Untried are rules of the source, with the result that no sample had: equality says nothing of it.
	Untried []string `json:"untried,omitempty"`
	// Differing is the number of samples that differ, Differences one of each sort.
	Differing int `json:"differing"`
	// Known is the number of samples with the text of a pattern with operators as a value, which differ: the source
	// takes such a value, and a form in CEL does not.
	Known int `json:"known,omitempty"`
	// Schedules are times at which one form alone would delete.
	Schedules   []string     `json:"schedules,omitempty"`
	Differences []Difference `json:"differences,omitempty"`
}

// Equal reports whether no sample differs, and no time of deletions.
func (r *Report) Equal() bool { return r.Differing == 0 && len(r.Schedules) == 0 }

// Checker compares two forms of a policy. It is not safe for concurrent use.
type Checker struct {
	options        Options
	source, result *side
	found          *facts.Facts
	report         Report
	sorts          map[string]bool // of differences
	results        map[string]map[string]bool
	own            map[string]bool // the texts of patterns of the source
}

// New compiles both forms. An error means that one of them cannot be read.
func New(ctx context.Context, o Options) (*Checker, error) {
	if o.Objects == 0 {
		o.Objects = DefaultObjects
	}
	if o.Objects < 1 || o.Objects > MaxObjects {
		return nil, fmt.Errorf("%d objects: want 1 to %d", o.Objects, MaxObjects)
	}
	source, err := compile(ctx, o.Source, o)
	if err != nil {
		return nil, fmt.Errorf("the source: %w", err)
	}
	result, err := compile(ctx, o.Result, o)
	if err != nil {
		return nil, fmt.Errorf("the result: %w", err)
	}
	c := &Checker{options: o, source: source, result: result, found: facts.New(), sorts: map[string]bool{}, results: map[string]map[string]bool{}}
	c.report = Report{Seed: o.Seed, Verdicts: map[string]int{}}
	for _, document := range o.Source {
		c.found.Read(document.Content())
	}
	c.own = maps.Clone(c.found.Own)
	for _, document := range o.Result {
		c.found.Read(document.Content())
	}
	return c, nil
}

// Targets are the kinds that both forms match.
func (c *Checker) Targets() []policy.Target { return slices.Concat(c.source.kinds(), c.result.kinds()) }

// Check compares the two forms. An error means that one of them cannot be read, or that ctx ended: nothing is said
// about their equality then.
func Check(ctx context.Context, o Options) (*Report, error) {
	c, err := New(ctx, o)
	if err != nil {
		return nil, err
	}
	return c.Finish(ctx)
}

// Finish compares the forms for the given objects and generated ones, and returns the report of all.
func (c *Checker) Finish(ctx context.Context) (*Report, error) {
	var given []*Sample
	for _, object := range c.options.Given {
		if content := object.Content(); content["kind"] != nil {
			given = append(given, sampling.Creation(content))
		}
	}
	own, err := c.requested()
	if err != nil {
		return nil, err
	}
	if err := c.given(ctx, slices.Concat(own, given)); err != nil {
		return nil, err
	}
	if err := c.generated(ctx, c.options, sampling.NewGenerator(c.found, c.Targets(), c.options.Seed, given)); err != nil {
		return nil, err
	}
	c.report.Untried = c.untried()
	c.report.Schedules = schedules(c.source, c.result)
	return &c.report, nil
}

// generated evaluates generated samples. Those of a batch are in one cluster.
func (c *Checker) generated(ctx context.Context, o Options, g *sampling.Generator) error {
	size := batchSize
	if g.Looks() {
		size = lookingBatch
	}
	o.Objects += c.report.Running
	for c.report.Objects < o.Objects && (!o.UntilDifferent || c.report.Equal()) {
		around := g.World()
		samples := make([]Sample, min(size, o.Objects-c.report.Objects))
		requests := make([]gate.Request, len(samples))
		for i := range samples {
			samples[i], requests[i] = g.Next()
		}
		learn := func(s *Sample, source, result *Verdict) {
			g.Learn(s, slices.Concat([]string{source.Result, result.Result}, source.rules, result.rules, source.Messages, result.Messages)...)
		}
		if err := c.evaluate(ctx, around, samples, requests, learn); err != nil {
			return err
		}
		if o.Progress != nil {
			o.Progress(c.report.Objects)
		}
	}
	return nil
}

// given evaluates the given objects as they are.
func (c *Checker) given(ctx context.Context, given []*Sample) error {
	for _, one := range given {
		request, err := one.Request()
		if err != nil {
			return fmt.Errorf("a given object: %w", err)
		}
		if err := c.evaluate(ctx, one.Existing, []Sample{*one}, []gate.Request{request}, func(*Sample, *Verdict, *Verdict) {}); err != nil {
			return err
		}
	}
	return nil
}

// evaluate evaluates samples on both sides, and reports differences.
func (c *Checker) evaluate(
	ctx context.Context, around []map[string]any, samples []Sample, requests []gate.Request, learn func(s *Sample, source, result *Verdict),
) error {
	sources, results, err := c.verdicts(ctx, around, requests)
	if err != nil {
		return err
	}
	for i := range samples {
		source, result := &sources[i], &results[i]
		c.count(source)
		learn(&samples[i], source, result)
		switch by := differ(source, result); {
		case by == "":
		case c.hasOwnText(samples[i].Object), c.hasOwnText(samples[i].Old):
			c.report.Known++
		default:
			c.report.Differing++
			c.differs(ctx, by, &samples[i], source, result)
		}
	}
	return nil
}

// hasOwnText reports whether a value is the text of a pattern of the source.
func (c *Checker) hasOwnText(value any) bool {
	switch value := value.(type) {
	case string:
		return c.own[value]
	case []any:
		return slices.ContainsFunc(value, c.hasOwnText)
	case map[string]any:
		for _, one := range value {
			if c.hasOwnText(one) {
				return true
			}
		}
	}
	return false
}

// verdicts evaluates requests on both sides, where other objects exist.
func (c *Checker) verdicts(ctx context.Context, around []map[string]any, requests []gate.Request) (sources, results []Verdict, err error) {
	for _, s := range []*side{c.source, c.result} {
		if err := s.exist(around); err != nil {
			return nil, nil, err
		}
	}
	sources, err = c.source.verdicts(ctx, requests)
	if err != nil {
		return nil, nil, err
	}
	results, err = c.result.verdicts(ctx, requests)
	return sources, results, err
}

func (c *Checker) count(source *Verdict) {
	c.report.Objects++
	c.report.Verdicts[source.Result]++
	if source.matched {
		c.report.Matched++
	}
	for _, rule := range source.rules {
		name, result, _ := strings.Cut(rule, "=")
		if c.results[name] == nil {
			c.results[name] = map[string]bool{}
		}
		c.results[name][result] = true
	}
}

// untried returns the rules with results that no sample had: of validations violated and satisfied, of others that they
// changed, generated or deleted.
func (c *Checker) untried() (all []string) {
	for place := range c.source.evaluator.Policies() {
		of := c.source.evaluator.Policy(place)
		want := func(rule string, results ...string) {
			for _, result := range results {
				if !c.results[rule][result] {
					all = append(all, rule+": "+result)
				}
			}
		}
		for _, rule := range of.Validations {
			want(rule.Name(), evaluation.Pass, evaluation.Fail)
		}
		for _, rule := range of.Mutations {
			want(rule.Name(), evaluation.Pass)
		}
		for _, rule := range of.Generations {
			want(rule.Name(), evaluation.Pass)
		}
		for _, rule := range of.Deletions {
			want(rule.Name(), evaluation.Pass, evaluation.Fail)
		}
	}
	return all
}

// differs reports the first difference of its sort, as small as it gets.
func (c *Checker) differs(ctx context.Context, by string, s *Sample, source, result *Verdict) {
	sort := strings.Join(slices.Concat(
		[]string{by, source.Result, result.Result}, source.Reported, source.rules, []string{"|"}, result.Reported, result.rules), " ")
	if c.sorts[sort] || len(c.report.Differences) >= maxDifferences {
		return
	}
	c.sorts[sort] = true
	d := Difference{By: by, Source: *source, Result: *result}
	d.Sample = sampling.Shrink(*s, func(next *Sample) bool {
		request, err := next.Request()
		if err != nil {
			return false
		}
		left, right, err := c.verdicts(ctx, next.Existing, []gate.Request{request})
		if err != nil || differ(&left[0], &right[0]) != by || left[0].Result != source.Result || right[0].Result != result.Result {
			return false
		}
		d.Source, d.Result = left[0], right[0]
		return true
	})
	d.Sample = d.Sample.Stored()
	c.report.Differences = append(c.report.Differences, d)
}
