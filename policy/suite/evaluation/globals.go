package evaluation

import (
	"crypto/rand"
	"time"

	"github.com/quaymaster/quaymaster/policy/globalcontext"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
)

// Globals evaluates GlobalContextEntries into a store.
type Globals struct {
	// Expressions compiles the expressions of values.
	Expressions *jmespath.Engine
	compiler    *globalcontext.Compiler
	store       *globalcontext.Store
}

// NewGlobals evaluates into a store.
func NewGlobals(store *globalcontext.Store) (*Globals, error) {
	expressions, err := jmespath.New(jmespath.Options{Now: time.Now, Random: rand.Reader})
	if err != nil {
		return nil, err
	}
	compiler, err := globalcontext.NewCompiler(expressions)
	return &Globals{Expressions: expressions, compiler: compiler, store: store}, err
}

// Put compiles an entry and stores its value, or the error that rules reading it receive.
func (g *Globals) Put(text []byte, value func(*globalcontext.Entry) (any, error)) error {
	entry, err := g.compiler.Compile(text)
	if err != nil {
		return err
	}
	if err := g.store.Put(entry); err != nil {
		return err
	}
	found, err := value(entry)
	if err != nil {
		g.store.Fail(entry.Name, entry.Hash, err)
		return nil
	}
	return g.store.Answer(entry.Name, entry.Hash, found)
}
