package kyvernocel

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	celgo "github.com/google/cel-go/cel"

	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/policy/lang/cel/authorizer"
	"github.com/quaymaster/quaymaster/policy/lang/cel/library"
)

// The names that expressions read.
const (
	ObjectName    = "object"
	OldObjectName = "oldObject"
	RequestName   = "request"
	NamespaceName = "namespaceObject"
	// exceptionsName is the variable of what exceptions allow.
	exceptionsName = "exceptions"
)

// TriggerPrefix is before the names of the variables for request.object and request.oldObject where object
// is another one than that of the request.
const TriggerPrefix = "__trigger_"

// OfTrigger are the variables of an admission request, and its objects apart from the object that an
// expression is about.
func OfTrigger() []cel.Variable {
	return append(OfObject(), cel.Variable{Name: TriggerPrefix + ObjectName, Type: celgo.DynType},
		cel.Variable{Name: TriggerPrefix + OldObjectName, Type: celgo.DynType})
}

// OfObject are the variables of an admission request.
func OfObject() []cel.Variable {
	return []cel.Variable{
		{Name: ObjectName, Type: celgo.DynType}, {Name: OldObjectName, Type: celgo.DynType},
		{Name: RequestName, Type: library.RequestType()}, {Name: NamespaceName, Type: library.NamespaceType()},
	}
}

// WithExceptions are the variables of an admission request, and those values that exceptions allow.
func WithExceptions() []cel.Variable {
	return append(OfObject(), cel.Variable{Name: exceptionsName, Type: library.ExceptionsType()})
}

// known are the members of variables of which not all members are known here.
func known(variable string) []string {
	switch variable {
	case RequestName:
		return []string{"kind", "resource", "subResource", "requestKind", "requestResource", "requestSubResource", "name", "namespace",
			"operation", "userInfo", "dryRun", "options"}
	case NamespaceName:
		return []string{"metadata"}
	}
	return nil
}

// ReadsKnown refuses reads of request and namespace fields that are unknown to the gateway.
func ReadsKnown(p *cel.Program) error {
	var errs []error
	for _, read := range p.Reads() {
		if members := known(read.Variable); members != nil && read.Field != "" && !slices.Contains(members, read.Field) {
			errs = append(errs, field.Fail(p.Path(), "%s.%s is not known here: of %s there are %s", read.Variable,
				read.Field, read.Variable, strings.Join(members, ", ")))
		}
	}
	return errors.Join(errs...)
}

// ReadsRequester reports whether one of the expressions may read the requester: as a member of the
// request, or with the request as a whole. A nil expression reads nothing.
func ReadsRequester(programs ...*cel.Program) bool {
	return slices.ContainsFunc(programs, func(p *cel.Program) bool {
		return p != nil && slices.ContainsFunc(p.Reads(), func(read cel.Read) bool {
			return read.Variable == RequestName && (read.Field == "" || read.Field == "userInfo") ||
				read.Variable == authorizer.Name || read.Variable == authorizer.ResourceName
		})
	})
}

// OmitFromScans makes scans omit a policy with an expression that may read the requester, because
// the requester of an existing object is unknown. The expressions decide, not the text of the
// document: a description may contain the same words.
func OmitFromScans(out *policy.Policy, programs ...*cel.Program) {
	if out.Unscanned == "" && ReadsRequester(programs...) {
		out.Unscanned = "an expression reads request.userInfo or authorizer, and the requester of an existing object is unknown"
	}
}

// IsOfObject reports whether something of the object or of the request is read.
func IsOfObject(read cel.Read) bool {
	name := strings.TrimPrefix(read.Variable, TriggerPrefix)
	return slices.Contains([]string{ObjectName, OldObjectName, RequestName, NamespaceName, authorizer.Name, authorizer.ResourceName}, name)
}

// UnknownHere is the error for a field that is unknown to the gateway.
func UnknownHere(what string) error {
	return fmt.Errorf("only images and their namespace are known here, and the policy asks for %s; the admission webhook knows the whole object", what)
}

// Shorten cuts a text for a message, to 200 bytes.
func Shorten(s string) string { return limit.Text(s, 200) }

// Bounded truncates the result of an author's expression.
func Bounded(text string) string { return limit.Text(text, MaxMessage) }
