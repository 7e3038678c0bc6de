package footprint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// KeepHeap writes a heap profile of a gateway into a file.
func KeepHeap(ctx context.Context, g *gateway.Gateway, file string) error {
	if err := keepHeap(ctx, "http://"+g.Configuration.Listen.Profiling+"/debug/pprof/heap?gc=1", file); err != nil {
		return fmt.Errorf("keep a heap profile: %w", err)
	}
	return nil
}

func keepHeap(ctx context.Context, url, file string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	to, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, response.Body)
	return errors.Join(err, to.Close())
}
