package endpoints

import (
	"net/http"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gateway/reporting"
	"github.com/quaymaster/quaymaster/webhook/admission"
	"github.com/quaymaster/quaymaster/webhook/api"
	"github.com/quaymaster/quaymaster/webhook/externaldata"
	"github.com/quaymaster/quaymaster/webhook/imagepolicy"
)

// Images makes the endpoints of other systems than the API server's admission webhooks, which ask
// about images.
type Images struct {
	Decider    *gate.Gate
	Namespaces admission.Namespaces
	State      *gate.Current
	Queue      *admission.Queue
	Recorder   reporting.Recorder
	Shadow     bool
}

// Review makes the endpoint of ImageReview.
func (i Images) Review() (http.Handler, error) {
	return imagepolicy.New(imagepolicy.Config{
		Decider: i.Decider, Namespaces: i.Namespaces, Failure: Failure{State: i.State}, Queue: i.Queue,
		Recorder: reporting.ImageRecorder{Recorder: i.Recorder, Shadow: i.Shadow}, Shadow: i.Shadow,
	})
}

// ExternalData makes an endpoint of an external data provider.
func (i Images) ExternalData(endpoint externaldata.Endpoint) (http.Handler, error) {
	return externaldata.New(externaldata.Config{
		Endpoint: endpoint, Decider: i.Decider, Namespaces: i.Namespaces, Queue: i.Queue,
		Recorder: reporting.DataRecorder{Recorder: i.Recorder, Shadow: i.Shadow}, Shadow: i.Shadow,
	})
}

// API makes the API's endpoint. Without users and groups all authenticated callers may use it.
func (i Images) API(authenticator api.Authenticator, callers api.Callers) (http.Handler, error) {
	c := api.Config{
		Authenticator: authenticator, Decider: i.Decider, Namespaces: i.Namespaces,
		Recorder: reporting.APIRecorder{Recorder: i.Recorder, Endpoint: "api"}, Shadow: i.Shadow,
	}
	if len(callers.Users)+len(callers.Groups) > 0 {
		c.Callers = &callers
	}
	return api.New(c)
}

// socketUser is the user of requests at the socket: the file's permissions control access.
const socketUser = "unix-socket"

// Socket makes the endpoint at a unix socket.
func (i Images) Socket() (http.Handler, error) {
	return api.New(api.Config{
		User: socketUser, Decider: i.Decider, Namespaces: i.Namespaces, Recorder: reporting.APIRecorder{Recorder: i.Recorder, Endpoint: "socket"},
	})
}
