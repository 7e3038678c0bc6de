package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/scan"
	"github.com/quaymaster/quaymaster/workload"
)

// scanProgress implements scan.Observer: one progress line on a terminal.
type scanProgress struct {
	t     command.Terminal
	done  int
	shown bool
}

// Began implements scan.Observer.
func (*scanProgress) Began(scan.Position) {}

// Ended implements scan.Observer.
func (*scanProgress) Ended(scan.Summary, error) {}

// Looked draws the line.
func (p *scanProgress) Looked(kind scan.Kind, objects int, remaining int64) {
	p.done += objects
	if command.IsTerminal(p.t.Err) {
		p.shown = true
		fmt.Fprintf(p.t.Err, "\rlooked at %d objects; %s: %d to go\x1b[K", p.done, kind.Resource, remaining)
	}
}

// Refused prints nothing: the summary lists refusals.
func (*scanProgress) Refused(scan.Kind, error) {}

// Failed warns of an error that is retried, or of unknown data.
func (p *scanProgress) Failed(err error) {
	p.clear()
	p.t.Warn(err.Error())
}

func (p *scanProgress) clear() {
	if p.shown {
		p.shown = false
		fmt.Fprint(p.t.Err, "\r\x1b[K")
	}
}

// scanNamespaces implements scan.Namespaces with the foundation's namespaces.
type scanNamespaces struct{ from *foundation }

// Labels implements scan.Namespaces. For files, a namespace that none of them describes has
// unknown labels; only policies that select by labels are affected.
func (n scanNamespaces) Labels(ctx context.Context, name string) (map[string]string, error) {
	if n.from.reader != nil {
		request := gate.Request{}
		request.Subject.Namespace = name
		n.from.reader.Describe(ctx, &request)
		if request.Subject.NamespaceKnown {
			return request.Subject.NamespaceLabels, nil
		}
		return nil, errors.New("they could not be looked up")
	}
	labels, ok := n.from.known.Labels(name)
	if !ok {
		return nil, scan.ErrUnknown
	}
	return labels, nil
}

func objectsOf(requests []gate.Request) []workload.Object {
	objects := make([]workload.Object, len(requests))
	for i, request := range requests {
		objects[i] = request.Object
	}
	return objects
}
