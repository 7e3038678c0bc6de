package equality

import (
	"context"
	"maps"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy/convert/equality/internal/sampling"
	"github.com/quaymaster/quaymaster/workload"
)

// Running is an object of a cluster.
type Running struct {
	Object workload.Object
	// Resource is the name of its kind's resource, ClusterScoped whether its objects are in no namespace.
	Resource      string
	ClusterScoped bool
	// NamespaceLabels are those of its namespace.
	NamespaceLabels map[string]string
}

// Live compares the forms for objects of a cluster, each as if it were created, with its look-ups: Options.Live.
// An error means that ctx ended.
func (c *Checker) Live(ctx context.Context, objects []Running) error {
	c.source.world.SetLive(true)
	c.result.world.SetLive(true)
	defer c.source.world.SetLive(false)
	defer c.result.world.SetLive(false)
	for len(objects) > 0 {
		batch := objects[:min(batchSize, len(objects))]
		objects = objects[len(batch):]
		var samples []Sample
		var requests []gate.Request
		for i := range batch {
			of := &batch[i]
			one := sampling.Existing(of.Object.Content(), of.Resource, of.ClusterScoped, maps.Clone(of.NamespaceLabels))
			request, err := one.Request()
			if err != nil {
				return err
			}
			samples, requests = append(samples, *one), append(requests, request)
		}
		before := len(c.report.Differences)
		if err := c.evaluate(ctx, nil, samples, requests, func(*Sample, *Verdict, *Verdict) {}); err != nil {
			return err
		}
		c.report.Running += len(batch)
		for i := range c.report.Differences[before:] {
			mask(&c.report.Differences[before+i])
		}
	}
	return nil
}

// mask hides the data of Secrets of a cluster.
func mask(d *Difference) {
	d.Sample.Object, d.Sample.Old = masked(d.Sample.Object), masked(d.Sample.Old)
	for _, v := range []*Verdict{&d.Source, &d.Result} {
		v.Object = masked(v.Object)
		for _, list := range [][]map[string]any{v.Made, v.Altered} {
			for i := range list {
				list[i] = masked(list[i])
			}
		}
	}
}

func masked(object map[string]any) map[string]any {
	if object["kind"] != "Secret" {
		return object
	}
	out := maps.Clone(object)
	for _, name := range []string{"data", "stringData"} {
		data, _ := out[name].(map[string]any)
		hidden := map[string]any{}
		for key := range data {
			hidden[key] = "***"
		}
		if data != nil {
			out[name] = hidden
		}
	}
	return out
}
