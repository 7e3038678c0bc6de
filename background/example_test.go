package background_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/background"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate/record"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/set"
)

// nobody leads in this example, and there is nothing to be done.
type nobody struct{}

func (nobody) Policies() *set.Set                                        { return nil }
func (nobody) Changed() <-chan struct{}                                  { return nil }
func (nobody) Gone(context.Context, string) (bool, error)                { return false, errors.New("unknown") }
func (nobody) Labels(context.Context, string) (map[string]string, error) { return nil, nil }
func (nobody) Load(context.Context) (background.Progress, error)         { return background.Progress{}, nil }
func (nobody) Save(context.Context, background.Progress) error           { return nil }
func (nobody) Worked(w background.Work)                                  { fmt.Println(w.Action, w.Object) }
func (nobody) Failed(err error)                                          { fmt.Println(err) }

func Example() {
	keeper, err := record.New(make([]byte, 32))
	if err != nil {
		fmt.Println(err)
		return
	}
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: rand.Reader})
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := background.New(background.Options{
		Cluster: newServer(engine), Policies: nobody{}, Namespaces: nobody{}, Records: keeper, Memory: nobody{}, Observer: nobody{},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // the lead was lost
	c.Run(ctx)
	fmt.Println("done")
	// Output: done
}
