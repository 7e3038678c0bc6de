// Command build writes the documentation of the checkout around it as HTML.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/quaymaster/quaymaster/test/docs"
	"github.com/quaymaster/quaymaster/test/peers"
)

func main() {
	folder := flag.String("o", "", "folder that the pages are written to")
	flag.Parse()
	if err := build(*folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func build(folder string) error {
	if folder == "" {
		return fmt.Errorf("say where to: -o FOLDER")
	}
	checkout, err := peers.Checkout()
	if err != nil {
		return err
	}
	site, err := docs.Load(checkout)
	if err != nil {
		return err
	}
	return site.Build(folder)
}
