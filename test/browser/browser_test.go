package browser

import (
	"context"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

func dialSocket(path string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}
}

// tab is one page of a browser that a test looks at.
type tab struct {
	t       testing.TB
	ctx     context.Context
	mu      sync.Mutex
	asked   []string // every address that was asked for
	scripts []string // what failed or was thrown or logged as an error
}

// newTab opens a page in a browser of its own; without a browser the test is skipped.
func newTab(t testing.TB) *tab {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("no browser (Debian package chromium)")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("force-color-profile", "srgb"),
		chromedp.WSURLReadTimeout(90*time.Second))
	allocator, free := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(free)
	ctx, leave := chromedp.NewContext(allocator)
	t.Cleanup(leave)
	ctx, cancel := context.WithTimeout(ctx, 8*time.Minute)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx}
	chromedp.ListenTarget(ctx, func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			b.asked = append(b.asked, e.Request.URL)
		case *cdpruntime.EventExceptionThrown:
			b.scripts = append(b.scripts, e.ExceptionDetails.Error())
		case *cdpruntime.EventConsoleAPICalled:
			if e.Type == cdpruntime.APITypeError {
				b.scripts = append(b.scripts, "console: "+string(e.Args[0].Value)+e.Args[0].Description)
			}
		case *page.EventJavascriptDialogOpening:
			b.scripts = append(b.scripts, "dialog: "+e.Message)
		}
	})
	b.do(network.Enable(), cdpruntime.Enable())
	b.size(1440, 900)
	return b
}

func (b *tab) do(actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		b.t.Fatalf("%v\nconsole: %v", err, b.scripts)
	}
}

func (b *tab) size(width, height int64) {
	b.t.Helper()
	b.do(emulation.SetDeviceMetricsOverride(width, height, 1, false))
}

func (b *tab) scheme(name string) {
	b.t.Helper()
	b.do(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"}}))
}

// see goes to an address and waits for something.
func (b *tab) see(address, selector string) {
	b.t.Helper()
	b.do(chromedp.Navigate(address), chromedp.WaitVisible(selector, chromedp.ByQuery))
}

// eval returns what an expression comes to.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	var value T
	b.do(chromedp.Evaluate(expression, &value))
	return value
}

// await waits until an expression is true.
func (b *tab) await(expression string) {
	b.t.Helper()
	var done bool
	if err := chromedp.Run(b.ctx, chromedp.Poll(expression, &done, chromedp.WithPollingTimeout(15*time.Second))); err != nil {
		b.t.Fatalf("%s: %v; the page has %q; console: %v", expression, err, eval[string](b, "document.body.innerText.slice(0, 800)"), b.scripts)
	}
}

// clean fails if a script failed, or another host was asked.
func (b *tab) clean(host string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, what := range b.scripts {
		b.t.Errorf("a script: %s", what)
	}
	for _, address := range b.asked {
		if u, err := url.Parse(address); err != nil || u.Host != host {
			b.t.Errorf("asked %s, which is not %s", address, host)
		}
	}
	if len(b.asked) == 0 {
		b.t.Error("no request was seen, so that nothing was tested")
	}
}

// shoot leaves a picture of the whole page.
func (b *tab) shoot(name string) {
	b.t.Helper()
	if *screenshots == "" {
		return
	}
	var picture []byte
	height := int64(eval[float64](b, "document.documentElement.scrollHeight"))
	width := int64(eval[float64](b, "innerWidth"))
	b.do(chromedp.ActionFunc(func(ctx context.Context) error {
		var err error
		picture, err = page.CaptureScreenshot().WithCaptureBeyondViewport(true).WithClip(&page.Viewport{Width: float64(width), Height: float64(height), Scale: 1}).Do(ctx)
		return err
	}))
	check(b.t, os.MkdirAll(*screenshots, 0o755))
	check(b.t, os.WriteFile(filepath.Join(*screenshots, name+".png"), picture, 0o644))
}
