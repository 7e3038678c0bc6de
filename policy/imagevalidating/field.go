package imagevalidating

import "github.com/quaymaster/quaymaster/policy/internal/field"

// FieldError says what is wrong with a document, and where in it.
type FieldError = field.Error
