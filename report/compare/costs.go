package compare

import (
	"cmp"
	"maps"
	"slices"
)

// costs returns the costs of calls as far as they are reported: by the API server, which measures
// all webhooks alike, or by each engine.
func (c *Collector) costs() ([]Cost, Saved) {
	measured := maps.Clone(c.metrics)
	if c.own.calls > 0 {
		measured[timingKey{Quaymaster, ByItself}] = c.own
	}
	costs := []Cost{}
	mean := map[timingKey]float64{}
	for _, key := range slices.SortedFunc(maps.Keys(measured),
		func(a, b timingKey) int { return cmp.Or(cmp.Compare(a.by, b.by), cmp.Compare(a.engine, b.engine)) }) {
		t := measured[key]
		if t.calls == 0 {
			continue
		}
		one := Cost{Engine: key.engine, By: key.by, Calls: t.calls, Milliseconds: t.milliseconds / float64(t.calls)}
		if key.engine == Quaymaster && key.by == ByItself {
			requests := c.ownRequests
			one.Requests = &requests
		}
		mean[key] = one.Milliseconds
		costs = append(costs, one)
	}
	return costs, saved(mean)
}

// saved compares two measurements of the same source. The API server's take precedence.
func saved(mean map[timingKey]float64) Saved {
	s := Saved{Unreported: []string{"requests: no other engine counts its requests to registries"}}
	for _, by := range []Account{ByAPIServer, ByItself} {
		ours, told := mean[timingKey{Quaymaster, by}]
		if !told {
			continue
		}
		for _, engine := range []Engine{Kyverno, PolicyController, Connaisseur} {
			if theirs, ok := mean[timingKey{engine, by}]; ok {
				less := theirs - ours
				s.Milliseconds, s.By = &less, by
				return s
			}
		}
	}
	s.Unreported = append(s.Unreported, "milliseconds: no source reports the duration of both engines' calls")
	return s
}
