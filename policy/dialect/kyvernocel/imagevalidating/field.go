package imagevalidating

import "github.com/quaymaster/quaymaster/policy/internal/field"

// FieldError is a fault of a document with its path.
type FieldError = field.Error
