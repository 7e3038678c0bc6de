package cel

import (
	"fmt"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/quaymaster/quaymaster/policy/lang/cel/library"
)

// httpFunctions are the functions of the variable http and of the result of http.Client.
func httpFunctions() []celgo.EnvOption {
	text, headers := celgo.StringType, celgo.MapType(celgo.StringType, celgo.StringType)
	bodyless := [][]*celgo.Type{{httpType(), text}, {httpType(), text, headers}}
	withBody := [][]*celgo.Type{{httpType(), text, celgo.DynType}, {httpType(), text, celgo.DynType, headers}}
	all := contactFunction("http_get", httpCall("GET"), celgo.DynType, bodyless, "Get", "get")
	all = append(all, contactFunction("http_post", httpCall("POST"), celgo.DynType, withBody, "Post", "post")...)
	all = append(all, contactFunction("http_put", httpCall("PUT"), celgo.DynType, withBody, "Put", "put")...)
	return append(all, contactFunction("http_client", httpClient, httpType(), [][]*celgo.Type{{httpType(), text}}, "Client", "client")...)
}

func httpClient(c libraryContext, arguments []ref.Val) ref.Val {
	c.bundle = textOf(arguments[0])
	return c
}

func httpCall(method string) func(libraryContext, []ref.Val) ref.Val {
	return func(c libraryContext, arguments []ref.Val) ref.Val {
		request := HTTPRequest{Method: method, URL: textOf(arguments[0]), CABundle: c.bundle}
		rest := arguments[1:]
		if method != "GET" {
			body, err := library.Native(rest[0])
			if err != nil {
				return types.NewErr("http.%s: %v", method, err)
			}
			request.Body, rest = body, rest[1:]
		}
		var err error
		request.Headers, err = textMap(rest)
		if err != nil {
			return types.WrapErr(fmt.Errorf("http.%s: %w", method, err))
		}
		return c.activation.ask("http "+method, request, func() (any, error) {
			if c.activation.inputs.Outside.HTTP == nil {
				return nil, errNotSupplied(httpName)
			}
			return inDoubles(c.activation.inputs.Outside.HTTP.Do(c.activation.ctx, request))
		})
	}
}
