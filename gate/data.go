package gate

import (
	"context"
	"encoding/json"
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/quaymaster/quaymaster/gate/internal/panics"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
)

// maxConfig bounds an image's configuration, in bytes. It holds a line for each
// step of the build and the environment; the largest seen have some hundred
// kilobytes.
const maxConfig = 4 << 20

// dataKey identifies the data of an image (its manifest and configuration). The data of a
// digest never changes. The scope is part of the key, so only callers with read access
// receive it.
type dataKey struct {
	digest image.Digest
	scope  string
	want   policy.Data
}

// wantsData returns how much of the image's own content the checks read.
func (w *work) wantsData() policy.Data {
	want := policy.NoData
	for _, check := range w.checks {
		switch check.WantsData {
		case policy.DataEach:
			return policy.DataEach
		case policy.DataOne:
			want = policy.DataOne
		}
	}
	return want
}

// recallData reports whether the cache holds the image data that the checks read.
func (w *work) recallData(pinned image.Pinned) bool {
	want := w.wantsData()
	if want == policy.NoData {
		return true
	}
	data, ok := w.gate.memory.data.Get(dataKey{digest: pinned.Digest(), scope: w.scope, want: want})
	if ok {
		w.data = data
	}
	return ok
}

// fetchData starts to read the image data that the checks need, in parallel with the
// search for evidence. The returned function waits for the end.
func (w *work) fetchData(ctx context.Context) func() {
	want := w.wantsData()
	if want == policy.NoData || w.recallData(w.pinned) {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := panics.Catch(func() { w.data, w.dataErr = w.readData(ctx, want) }); err != nil {
			w.dataErr = err
		}
		if w.dataErr == nil {
			w.gate.memory.data.Put(dataKey{digest: w.pinned.Digest(), scope: w.scope, want: want}, w.data, w.gate.options.age)
		}
	}()
	return func() { <-done }
}

// readData reads the manifests and configurations of an image.
func (w *work) readData(ctx context.Context, want policy.Data) (policy.ImageData, error) {
	descriptor, body, err := w.manifest(ctx, w.pinned)
	if err != nil {
		return policy.ImageData{}, err
	}
	data := policy.ImageData{Descriptor: descriptor}
	if !descriptor.IsIndex() {
		child, err := w.readConfig(ctx, policy.ImageManifest{Descriptor: descriptor, Manifest: body})
		data.Children = []policy.ImageManifest{child}
		return data, err
	}
	data.Index = body
	family := w.family(ctx, w.pinned)
	if family.err != nil {
		return data, family.err
	}
	children := family.children
	if one := image.Usual(children); want == policy.DataOne && len(children) > 0 {
		children = children[one : one+1]
	}
	data.Children = make([]policy.ImageManifest, len(children))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(w.gate.options.images)
	for i, child := range children {
		group.Go(func() error {
			return w.readChild(ctx, child, &data.Children[i])
		})
	}
	return data, group.Wait()
}

func (w *work) readChild(ctx context.Context, child image.Descriptor, into *policy.ImageManifest) (err error) {
	panicked := panics.Catch(func() {
		var body []byte
		_, body, err = w.manifest(ctx, w.pinned.Child(child))
		if err == nil {
			*into, err = w.readConfig(ctx, policy.ImageManifest{Descriptor: child, Manifest: body})
		}
	})
	if panicked != nil {
		return panicked
	}
	return err
}

// readConfig adds the configuration that a manifest names.
func (w *work) readConfig(ctx context.Context, m policy.ImageManifest) (policy.ImageManifest, error) {
	var manifest struct {
		Config image.Descriptor `json:"config"`
	}
	corrupt := func(err error) error {
		return &image.Error{Kind: image.Corrupt, Op: "read manifest", On: w.pinned.Repository().String() + "@" + m.Descriptor.Digest.String(), Err: err}
	}
	if err := json.Unmarshal(m.Manifest, &manifest); err != nil {
		return m, corrupt(err)
	}
	if manifest.Config.Digest.IsZero() {
		return m, corrupt(errors.New("it names no configuration, so it is no image"))
	}
	var err error
	m.Config, err = w.session.Blob(ctx, w.pinned.Repository(), manifest.Config, maxConfig)
	return m, err
}
