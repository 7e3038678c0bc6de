package scan

import (
	"context"
	"errors"
	"fmt"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/output"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/setup"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/scan"
)

// scanProgress implements scan.Observer: one progress line on a terminal.
type scanProgress struct {
	line *output.Progress
	t    command.Terminal
	done int
}

// Began implements scan.Observer.
func (*scanProgress) Began(scan.Position) {}

// Ended implements scan.Observer.
func (*scanProgress) Ended(scan.Summary, error) {}

// Looked draws the line.
func (p *scanProgress) Looked(kind scan.Kind, objects int, remaining int64) {
	p.done += objects
	p.line.Print(fmt.Sprintf("looked at %d objects; %s: %d to go", p.done, kind.Resource, remaining))
}

// Refused prints nothing: the summary lists refusals.
func (*scanProgress) Refused(scan.Kind, error) {}

// Failed warns of an error that is retried, or of unknown data.
func (p *scanProgress) Failed(err error) {
	p.line.Clear()
	p.t.Warn(err.Error())
}

// scanNamespaces implements scan.Namespaces with the foundation's namespaces.
type scanNamespaces struct{ from *setup.Inputs }

// Labels implements scan.Namespaces. For files, a namespace that none of them describes has
// unknown labels; only policies that select by labels are affected.
func (n scanNamespaces) Labels(ctx context.Context, name string) (map[string]string, error) {
	if n.from.Reader != nil {
		request := gate.Request{}
		request.Subject.Namespace = name
		n.from.Reader.Describe(ctx, &request)
		if request.Subject.NamespaceKnown {
			return request.Subject.NamespaceLabels, nil
		}
		return nil, errors.New("they could not be looked up")
	}
	labels, ok := n.from.Known.Labels(name)
	if !ok {
		return nil, scan.ErrUnknown
	}
	return labels, nil
}
