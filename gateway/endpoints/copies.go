package endpoints

import (
	"context"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
)

// Copies determines by the current mirrors whether an image is a copy.
type Copies struct{ State *gate.Current }

// IsCopy implements admission.Copies.
func (c Copies) IsCopy(copied, written image.Ref) bool {
	now, err := c.State.Snapshot(context.Background())
	return err == nil && now.Mirrors.IsCopy(copied, written)
}
