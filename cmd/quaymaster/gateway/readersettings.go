package gateway

import (
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
)

// Configuration returns that of the Reader.
func (r *Reader) Configuration() config.Configuration { return r.g.configuration }
