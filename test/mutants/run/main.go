// Command run mutates the packages that are named, tries the mutants, and compares those
// that survive with the lists of test/mutants/survivors. It fails where they differ.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/quaymaster/quaymaster/test/mutants"
	"github.com/quaymaster/quaymaster/test/peers"
)

func main() {
	expression := flag.String("match", "", "only mutants with names that match this expression; nothing is compared then")
	verbose := flag.Bool("v", false, "say of each mutant what became of it")
	flag.Parse()
	if err := run(context.Background(), *expression, *verbose, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, expression string, verbose bool, patterns []string) error {
	checkout, err := peers.Checkout()
	if err != nil {
		return err
	}
	folder := filepath.Join(checkout, "test", "mutants")
	plan, err := mutants.ReadPlan(folder)
	if err != nil {
		return err
	}
	chosen, err := plan.Select(patterns...)
	if err != nil {
		return err
	}
	var match *regexp.Regexp
	if expression != "" {
		match, err = regexp.Compile(expression)
		if err != nil {
			return err
		}
	}
	log := io.Discard
	if verbose {
		log = os.Stdout
	}
	failed := 0
	for _, c := range chosen {
		problems, err := try(ctx, checkout, folder, c, match, log)
		if err != nil {
			return err
		}
		failed += problems
	}
	if failed > 0 {
		return fmt.Errorf("differences from the lists of survivors: %d; write a test that kills the mutant, or list it with the reason why it does not matter", failed)
	}
	return nil
}

// try runs the mutants of one package, and returns the number of differences.
func try(ctx context.Context, checkout, folder string, c mutants.Chosen, match *regexp.Regexp, log io.Writer) (int, error) {
	start := time.Now()
	list, err := mutants.ReadSurvivors(folder, c.Path)
	if err != nil {
		return 0, err
	}
	p, err := mutants.Open(ctx, checkout, c.Path)
	if err != nil {
		return 0, err
	}
	some := match
	if some == nil {
		some = c.Match()
	}
	result, err := p.Run(ctx, c.Tests, some, log)
	if err != nil {
		return 0, err
	}
	fmt.Printf("%-36s %5d mutants: %5d killed, %3d timed out, %3d survived (%d do not compile), %s\n",
		c.Path, result.Tried, result.Killed, result.TimedOut, len(result.Survived), result.Unviable, time.Since(start).Round(time.Second))
	if match != nil {
		return 0, nil
	}
	problems := list.Compare(result.Survived)
	for _, problem := range problems {
		fmt.Println("  " + problem)
	}
	return len(problems), nil
}
